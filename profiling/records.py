"""Every message between worker, engine and client, and every value a saved run consists of.

Frozen typed structs in two unions (`Record` flows towards the client, `Command` towards the worker), told apart by the
field `type`. A saved run is the stream of its records: opening one replays them through the same code as a live run.
Fields may be added with a default; any other change raises `SCHEMA_VERSION`.
"""

from typing import Literal

import msgspec

from gptscope.profiling.experiment import DEFAULT_SEED, Experiment, OptionValue, Variant, Workload

SCHEMA_VERSION = 1

Phase = Literal["start", "fetch", "load", "compile", "warmup", "measure", "profile", "evaluate", "peaks", "train"]
StepKind = Literal["train", "prefill", "decode"]
FailureKind = Literal[
    "usage",  # the request cannot be run as asked
    "model",  # missing, damaged, foreign or unsupported weights
    "memory",  # does or did not fit
    "worker_died",
    "timeout",
    "offline",
    "disk",
    "internal",
    "cancelled",  # a question (capabilities, peaks, inspection, download); experiments say it by their outcome
]


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=_snake):
    """Base of all records and commands."""


# ---------------------------------------------------------------------------------------------------- plain values


class LeverOptionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of a lever, as forms show it."""

    name: str
    title: str
    kind: Literal["choice", "whole", "number", "switch", "text"]
    default: OptionValue
    summary: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None


class LeverInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One choice of one lever, as menus and forms show it."""

    name: str
    group: Literal["precision", "fusion", "kv_cache", "pruning", "speculation"]
    title: str
    summary: str
    """One or two sentences: what it does and when it helps."""
    unavailable_reason: str | None = None
    warning: str | None = None
    workloads: tuple[str, ...] = ("train", "prefill", "decode", "generate")
    options: tuple[LeverOptionInfo, ...] = ()


class MachineInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The computer a run happened on. None means unknown; the reason is in `unknown` under the field's name."""

    hostname: str
    system: str
    cpu_name: str
    physical_cores: int
    logical_cores: int
    memory_bytes: int
    cpu_features: tuple[str, ...]
    device: Literal["cpu", "cuda"]
    device_name: str
    compiler: str | None
    gpu_name: str | None = None
    gpu_driver: str | None = None
    gpu_memory_bytes: int | None = None
    compute_capability: tuple[int, int] | None = None
    unknown: dict[str, str] = {}


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a loaded or inspected model is. Sizes in bytes are at the variant's precision."""

    name: str
    source: str
    """`bundled`, `preset`, `hf_folder`, `hf_hub`, `gguf`, `nanogpt`."""
    family: str
    n_layer: int
    d_model: int
    n_head: int
    n_kv_head: int
    d_head: int
    d_ff: int
    vocab_size: int
    context_length: int
    parameters: int
    weight_bytes: int
    kv_bytes_per_token: float
    random_weights: bool
    """True for presets: good for speed, meaningless for quality."""
    has_tokenizer: bool
    gated_mlp: bool = False
    tied_embeddings: bool = True
    learned_positions: bool = False
    notes: tuple[str, ...] = ()
    fetch_bytes: int | None = None
    """What must be downloaded before it can be loaded; None when it is on this machine."""
    activation_bytes: float | None = None
    """Bytes of one activation as the variant computes; None: as its precision's name says."""
    read_weight_bytes: int | None = None
    """Bytes of the weights that every step reads, look-up tables left out; None: they follow from `weight_bytes`."""


class KernelRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel (CPU: one operator that does work itself) summed over the profiled steps."""

    name: str
    category: str
    calls: int
    self_time_us: float
    total_time_us: float
    share: float
    """Self time over the self time of all kernels, 0 to 1."""
    module: str = ""
    input_shapes: str = ""
    dtypes: tuple[str, ...] = ()
    bytes: int | None = None
    """Modelled: each input read once, each output written once, all calls together; None when shapes are unknown."""
    flops: int | None = None
    label: str = ""
    """Short name for people, such as `mlp.down, bf16 GEMV`; empty: use `name`."""


class OperatorRow(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of one operator on tensors of the same shapes in the profiled steps, on the CPU's threads."""

    name: str
    calls: int
    self_time_us: float
    """Without the operators inside it."""
    total_time_us: float
    """With everything inside it; a call within a call of the same operator is counted once."""
    input_shapes: str = ""
    category: str = "other"
    module: str = ""
    """Where most of its time was spent; empty: outside any module."""
    modules: int = 1
    """How many different modules call it."""
    device_self_time_us: float | None = None
    """Time of the kernels that it launched itself; None without a device."""
    device_total_time_us: float | None = None
    """The same with the operators inside it."""
    kernels: tuple[str, ...] = ()
    """Names of the kernels that it launched itself, longest first; empty on a CPU, where operators are the kernels."""


class EvidenceItem(msgspec.Struct, frozen=True, kw_only=True):
    """What the profile says about one lever that is on."""

    lever: str
    in_effect: bool | None
    sentence: str


class CpuSample(msgspec.Struct, frozen=True, kw_only=True):
    """Percent of one core unless said otherwise; None = unknown on this system."""

    worker_percent: float
    other_percent: float
    """Load of everything that is not gptscope."""
    own_percent: float
    """Load of gptscope's own engine and client processes."""
    steal_percent: float | None = None
    frequency_mhz: float | None = None
    max_frequency_mhz: float | None = None
    temperature_c: float | None = None


class GpuSample(msgspec.Struct, frozen=True, kw_only=True):
    """One NVML reading."""

    utilisation_percent: float | None = None
    memory_used_bytes: int | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    dram_active_percent: float | None = None
    """Hardware counter (GPM), Hopper and newer."""


class ScaleSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor of one layer over its steps (training) or calls (inference); long ones have steps left out."""

    layer: str
    tensor: Literal["input", "weight", "grad"]
    largest: float
    """The number format's largest value: where amax times scale is above it, values were clipped."""
    steps: tuple[int, ...]
    amax: tuple[float, ...]
    """Largest magnitude."""
    scale: tuple[float, ...]
    """What values were multiplied by before they were rounded; the smallest where rows or blocks have their own."""


class TextScore(msgspec.Struct, frozen=True, kw_only=True):
    """How well a model predicts a text."""

    perplexity: float | None
    error: float | None
    """Standard error."""


# ------------------------------------------------------------------------------------------- records, to the client


class Hello(Message, frozen=True):
    """First record of every process."""

    role: Literal["engine", "worker"]
    pid: int
    gptscope_version: str
    schema_version: int = SCHEMA_VERSION


class Capabilities(Message, frozen=True):
    """What this machine offers, every unavailable lever with its reason."""

    machine: MachineInfo
    levers: tuple[LeverInfo, ...]
    versions: dict[str, str]
    """Package name -> version, or a sentence why it is missing."""
    presets: tuple[str, ...] = ()
    catalogue: tuple[str, ...] = ()


class ExperimentStarted(Message, frozen=True):
    """The engine accepted an experiment; `run_ids` are in the order of its variants."""

    experiment_id: str
    experiment: Experiment
    run_ids: tuple[str, ...]
    started_unix_ns: int


class RunStarted(Message, frozen=True):
    """One variant's worker is up. Holds everything that repeats the run."""

    run_id: str
    experiment_id: str
    variant: Variant
    name: str
    workload: Workload
    model: str
    command: str
    """The exact command line that repeats this run."""
    started_unix_ns: int
    machine: MachineInfo
    versions: dict[str, str]
    environment: dict[str, str]
    """Environment variables that matter to speed, only those that are set."""
    threads: int
    seed: int


class Progress(Message, frozen=True):
    """How far a phase is. `total` 0 = unknown."""

    phase: Phase
    done: float
    total: float
    unit: str = ""
    """`bytes`, `steps`, `tokens`, `slices`, ...; bytes are shown as MB."""
    note: str = ""
    run_id: str | None = None


class Notice(Message, frozen=True):
    """Something a person should know that is not a failure, in one sentence."""

    message: str
    level: Literal["info", "warning"] = "info"
    run_id: str | None = None


class ModelLoaded(Message, frozen=True):
    """Weights are in memory and the levers are applied."""

    run_id: str
    model: ModelInfo
    fusions: tuple[str, ...]
    """Fusions really applied (`all` resolved)."""
    skipped: dict[str, str]
    """Fusions left out of `all` -> reason."""
    load_s: float
    start_s: float
    """Seconds from the worker process's start until it could load (imports)."""


class Compiled(Message, frozen=True):
    """torch.compile has finished its first calls."""

    run_id: str
    compile_s: float
    graph_breaks: int
    regions: int


class StepSamples(Message, frozen=True):
    """Consecutive steps of one kind, batched so that reporting costs nothing. Lists have equal lengths."""

    run_id: str
    slice: int
    """-1 during warm-up and profiling."""
    phase: Literal["warmup", "measure", "profile"]
    kind: StepKind
    start_ns: tuple[int, ...]
    """`time.perf_counter_ns` of the machine that runs the worker (one clock for all its processes)."""
    duration_ns: tuple[int, ...]
    tokens: tuple[int, ...]
    """Tokens that the step processed (train, prefill) or produced (decode), all sequences together."""
    context: tuple[int, ...] = ()
    """Tokens per sequence that the step attended to (decode), for the byte model."""
    loss: tuple[float, ...] = ()
    drafted: tuple[int, ...] = ()
    """Tokens guessed for the step to check, all sequences together (speculative decoding); of `tokens`, all but one
    per sequence are guesses that were accepted. Empty without speculation."""


class GeneratedText(Message, frozen=True):
    """Text as it is produced (first sequence of the batch)."""

    run_id: str
    text: str
    token_ids: tuple[int, ...]


class SliceDone(Message, frozen=True):
    """One slice of measured steps has ended."""

    run_id: str
    slice: int
    """Counts from 0; a repeated slice has the same number and a higher `attempt`."""
    attempt: int
    pair: int
    """Slices of different variants with the same pair number were measured next to each other."""
    seconds: float
    disturbed: str | None = None
    """Why this slice is not counted, e.g. `other processes used 38 % of a core`; None: undisturbed."""


class MemoryPeak(Message, frozen=True):
    """Peak memory of the worker; on CUDA also of the device allocator."""

    run_id: str
    process_bytes: int
    device_bytes: int | None = None
    kv_cache_bytes: int | None = None


class Telemetry(Message, frozen=True):
    """One sample of the machine, taken outside the measured process."""

    time_ns: int
    """`time.perf_counter_ns`, comparable with `StepSamples.start_ns`."""
    cpu: CpuSample
    worker_rss_bytes: int | None = None
    memory_available_bytes: int | None = None
    gpu: GpuSample | None = None
    gpu_reason: str | None = None
    """Why `gpu` is None."""
    run_id: str | None = None
    """The run that was being measured at that time."""


class Profile(Message, frozen=True):
    """Kernel table of the profiled steps."""

    run_id: str
    steps: int
    """Profiled steps (train, prefill) or tokens (decode, generate)."""
    overhead: float
    """Median profiled step time over median unprofiled step time."""
    wall_us: float
    busy_us: float
    """Union of kernel intervals per device, inside the profiled steps."""
    kernels: tuple[KernelRow, ...]
    device: Literal["cpu", "cuda"]
    notes: tuple[str, ...] = ()
    operators: tuple[OperatorRow, ...] = ()
    """By falling self time; empty in profiles that were recorded before there was this table."""


class EvidenceReport(Message, frozen=True):
    """For every lever that is on: what in the profile proves it."""

    run_id: str
    items: tuple[EvidenceItem, ...]


class TraceChunk(Message, frozen=True):
    """A piece (the frame's payload) of the gzipped Kineto trace as it was recorded."""

    run_id: str
    offset: int
    last: bool


class Peaks(Message, frozen=True):
    """Ceilings measured on this machine with large buffers. None = not measurable, reason in `unknown`."""

    device: Literal["cpu", "cuda"]
    device_name: str
    threads: int
    read_gbps: float | None
    """10^9 bytes read per second."""
    copy_gbps: float | None
    """10^9 bytes per second, bytes read plus bytes written."""
    gemm_tflops: dict[str, float]
    """Precision name -> 10^12 floating point operations per second of a large matrix product."""
    measured_unix_ns: int
    published: dict[str, float] = {}
    """Published figures (`memory_gbps`, `bf16_tflops`, ...), when the device is in our table."""
    published_source: str | None = None
    unknown: dict[str, str] = {}
    reused: bool = False
    disturbed: str | None = None
    """What else kept the processor busy meanwhile; such peaks are too low, and are not kept. None: nothing."""
    run_id: str | None = None


class PromptComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt continued greedily by the baseline and by a candidate."""

    prompt: str
    """The prompt's text."""
    baseline: tuple[str, ...]
    """Text of each token of the baseline's continuation."""
    candidate: tuple[str, ...]
    equal: int
    """Tokens before the first difference."""
    outcome: Literal["equal", "near_tie", "changed"]
    margins: tuple[float, ...] = ()
    """The baseline's gap between its best two logits at each of its own tokens; -1.0 where unknown."""
    forced_gaps: tuple[float, ...] = ()
    """The baseline reads the candidate's text: its best logit minus that of the candidate's token, at each of the
    candidate's tokens (0: the baseline would have said the same); -1.0 where unknown, empty when it was not asked."""


class Quality(Message, frozen=True):
    """A candidate's output beside the baseline's, on the same text and prompts. None = n/a, reason in `unknown`."""

    run_id: str
    baseline_run_id: str
    tokens: int
    perplexity: float | None
    perplexity_error: float | None
    """Standard error."""
    baseline_perplexity: float | None
    baseline_perplexity_error: float | None
    kl_mean: float | None
    kl_median: float | None
    kl_p99: float | None
    top1_agreement: float | None
    """0 to 1."""
    greedy_tokens: int
    greedy_equal: int
    """Greedy tokens equal to the baseline's before the first difference, over all prompts."""
    near_ties: int
    """Prompts whose first difference is a near-tie of the baseline (not a real change)."""
    real_changes: int
    first_divergence: str | None = None
    """Baseline text and candidate text around the first real change."""
    text: str = ""
    """Which text was evaluated."""
    unknown: dict[str, str] = {}
    perplexity_change: float | None = None
    """Perplexity minus the baseline's."""
    perplexity_change_error: float | None = None
    """Standard error of the change, paired window by window (far smaller than the two errors above)."""
    near_tie_margin: float | None = None
    """Top-2 logit gap of the baseline below which a first difference counts as a near-tie."""
    broken_positions: int = 0
    """Positions where the candidate's logits hold NaN or infinity; they are left out of every figure above."""
    logit_sqnr_db: float | None = None
    """Signal to quantization noise of all logits, each position's mean taken off: 10 log10(sum b² / sum (b - c)²).
    None also when there is no noise at all."""
    logit_cosine: float | None = None
    """Mean over positions of the cosine between both models' logits, each position's mean taken off."""
    forced_tokens: int = 0
    """The candidate's greedy tokens that the baseline judged while reading the candidate's own text."""
    forced_near_ties: int = 0
    """Of these: not the baseline's choice, but within `near_tie_margin` of it."""
    forced_changes: int = 0
    """Of these: tokens that the baseline finds really worse."""
    prompts: tuple[PromptComparison, ...] = ()
    text_tokens: int = 0
    """Tokens of the whole text, of which the first `tokens` and the prompts were used; 0: unknown."""


class ModuleError(msgspec.Struct, frozen=True, kw_only=True):
    """What one module of the candidate costs and saves while all others stay as in the reference."""

    module: str
    """Path in the model, such as `blocks.3.mlp.down`."""
    layer: int | None
    """None outside the layers (`lm_head`)."""
    part: str
    """The path within its layer, such as `mlp.down`."""
    parameters: int
    kl_mean: float | None
    """KL divergence of the whole model's next-token distributions to the reference's, nats; None: broken output."""
    logit_sqnr_db: float | None
    """Of the whole model's logits, as in `Quality`; None also when nothing changed."""
    output_sqnr_db: float | None
    """Of this module's own output for the reference's input; None also when nothing changed."""
    output_cosine: float | None
    reference_us: float
    """Time of one call on `LayerErrors.timed_tokens` tokens, all modules called in turn as in a real step."""
    candidate_us: float


class LayerErrors(Message, frozen=True):
    """The layer map: error added and time saved by each module of a candidate, one at a time."""

    run_id: str
    baseline_run_id: str
    modules: tuple[ModuleError, ...]
    """In the model's order."""
    stream_sqnr_db: tuple[float | None, ...]
    """Signal to error of the residual stream behind each layer, with all of the candidate's modules together."""
    tokens: int
    """Evaluated, of the evaluation text."""
    timed_tokens: int
    """Rows of each timed call: the batch when decoding, all prompt tokens else."""
    kl_all: float | None
    """KL divergence with all of the candidate's modules together; single ones do not add up to it exactly."""
    reference: str
    """What the modules are compared with, for people."""
    text: str = ""
    seconds: float = 0.0
    """How long the map took."""


class ScaleHistory(Message, frozen=True):
    """How large the tensors of narrow layers were, and their scales, since the run's last record of this kind."""

    run_id: str
    recipe: str
    series: tuple[ScaleSeries, ...]


class Failure(Message, frozen=True):
    """Something asked for did not happen: what, why, what to do, in `message`; nothing measured is lost."""

    kind: FailureKind
    message: str
    detail: str = ""
    """Last lines of stderr, or a traceback, for the details view."""
    run_id: str | None = None


class RunFinished(Message, frozen=True):
    """Last record of a run."""

    run_id: str
    outcome: Literal["done", "cancelled", "failed"]
    finished_unix_ns: int
    first_step_s: float | None = None
    """Seconds from the experiment's start until the first measured step."""


class ExperimentFinished(Message, frozen=True):
    """Last record of an experiment."""

    experiment_id: str
    outcome: Literal["done", "cancelled", "failed"]


class ModelInspected(Message, frozen=True):
    """Answer to `InspectModel`: what a source holds, without loading its weights."""

    model: ModelInfo
    estimated_bytes: dict[str, int]
    """Workload -> estimated memory in FP32 at batch 1."""


class ModelFetched(Message, frozen=True):
    """Answer to `FetchModel`."""

    model: str
    path: str
    bytes: int
    sha256: str | None = None


class Calibrated(Message, frozen=True):
    """Answer to `Calibrate`: the ranges of a model's activations are in a file."""

    model: str
    recipe: str
    source: str
    """The text, for people."""
    tokens: int
    inputs: int
    """Inputs of layers whose ranges were measured."""
    path: str


class FineTuned(Message, frozen=True):
    """Answer to `FineTune`: what was trained, and what it brought."""

    request: "FineTune"
    folder: str
    """Where the model is now, as a Hugging Face folder."""
    trained: tuple[str, ...]
    """Paths of the linear layers that were trained."""
    losses: tuple[float, ...]
    """Of each step, before its update."""
    seconds: float
    """The training alone."""
    tokens: int
    """Of the evaluation text that the scores are about."""
    original: TextScore
    """The model as it was, not quantized."""
    quantized_before: TextScore
    quantized_after: TextScore
    after: TextScore
    """The trained model, not quantized."""
    change: TextScore
    """Perplexity of the quantized model after minus before, its error from the same pieces of text."""
    text: str
    """What it was trained on."""


class Bye(Message, frozen=True):
    """Last record of every process that ends as planned; an end without it is a crash."""

    reason: str = ""


Record = (
    Hello
    | Capabilities
    | ExperimentStarted
    | RunStarted
    | Progress
    | Notice
    | ModelLoaded
    | Compiled
    | StepSamples
    | GeneratedText
    | SliceDone
    | MemoryPeak
    | Telemetry
    | Profile
    | EvidenceReport
    | TraceChunk
    | Peaks
    | Quality
    | LayerErrors
    | ScaleHistory
    | Failure
    | RunFinished
    | ExperimentFinished
    | ModelInspected
    | ModelFetched
    | FineTuned
    | Calibrated
    | Bye
)

# ------------------------------------------------------------------------------------ commands, towards the engine


class StartExperiment(Message, frozen=True):
    """Run this. One experiment at a time per engine."""

    experiment: Experiment
    experiment_id: str


class Cancel(Message, frozen=True):
    """Stop what is running within a second; what was measured is kept."""


class AskCapabilities(Message, frozen=True):
    """Answer with `Capabilities`."""

    device: Literal["auto", "cpu", "cuda"] = "auto"


class MeasurePeaks(Message, frozen=True):
    """Answer with `Peaks`; `fresh` ignores kept ones."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: int | None = None
    fresh: bool = False


class InspectModel(Message, frozen=True):
    """Answer with `ModelInspected` or `Failure`."""

    model: str


class FetchModel(Message, frozen=True):
    """Download a catalogue entry or hub model into the cache; answer with `Progress`…, `ModelFetched` or `Failure`."""

    model: str


class Calibrate(Message, frozen=True):
    """Measure how large a model's activations get; answer with `Progress`…, `Calibrated` or `Failure`."""

    model: str
    recipe: str
    """Which will use the ranges, such as `int8-static`."""
    text: str = ""
    """A text file; empty: the calibration text that comes with gptscope."""
    out: str = ""
    """The file to write; empty: one in the user's data folder."""
    threads: int | None = None


class FineTune(Message, frozen=True):
    """Train a model for a recipe and save it; answer with `Progress`…, `FineTuned` or `Failure`.

    `qat` trains all linear layers, `targeted` only the `layers` ones whose quantization changes the prediction most.
    Both see the recipe's rounding in every forward pass (fake quantization with straight-through gradients).
    """

    model: str
    folder: str
    """Where to save; must not exist or be empty."""
    mode: Literal["qat", "targeted"] = "qat"
    recipe: str = "int8-static"
    options: dict[str, OptionValue] = {}
    """Of the recipe."""
    steps: int = 200
    lr: float = 2e-5
    layers: int = 3
    goal: Literal["original", "text"] = "original"
    """What is learnt: to predict as the unquantized model did, or the text itself."""
    text: str | None = None
    """A text file on the machine that trains; None: the text that comes with gptscope."""
    batch: int = 8
    context: int = 128
    seed: int = DEFAULT_SEED
    threads: int | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` saying which number is impossible and what to give instead."""
        for name, least in (("steps", 1), ("layers", 1), ("batch", 1), ("context", 2)):
            value = getattr(self, name)
            if value < least:
                raise ValueError(f"{name} is {value}, but it must be {least} or more.")
        if not 0.0 < self.lr <= 1.0:
            raise ValueError(f"The learning rate is {self.lr:g}, but it must be above 0 and at most 1; 2e-5 is usual.")


class Shutdown(Message, frozen=True):
    """End after saying `Bye`."""


# ------------------------------------------------------------------------------------- commands, engine to worker


class LoadVariant(Message, frozen=True):
    """Load the model and apply the variant's levers; answered by `ModelLoaded`."""

    run_id: str
    experiment_id: str
    experiment: Experiment
    variant_index: int


class WarmUp(Message, frozen=True):
    """Run until steady (compile, autotune, caches); answered by `CommandDone`."""


class RunSlice(Message, frozen=True):
    """Measure `steps` steps; answered by `StepSamples`… and `CommandDone`."""

    slice: int
    steps: int


class RecordProfile(Message, frozen=True):
    """Profile a bounded number of steps; answered by `Profile`, `EvidenceReport`, `TraceChunk`…, `CommandDone`."""

    steps: int


class EvaluateWindow(Message, frozen=True):
    """Send the logits of one window of the evaluation text (`Logits` frames), then `CommandDone`."""

    window: int


class GreedyPrompt(Message, frozen=True):
    """Continue one evaluation prompt greedily; answered by `GreedyTokens`."""

    prompt: int
    new_tokens: int


class ForceTokens(Message, frozen=True):
    """Read an evaluation prompt and a given continuation of it; answered by `ForcedGaps`."""

    prompt: int
    new_tokens: int
    """As in the `GreedyPrompt` that the continuation answers."""
    token_ids: tuple[int, ...]


class MapLayers(Message, frozen=True):
    """Compare the variant with an FP32 copy of the model module by module; answered by `LayerErrors`."""

    baseline_run_id: str


class Leave(Message, frozen=True):
    """End after saying `Bye`."""


Command = (
    StartExperiment
    | Cancel
    | AskCapabilities
    | MeasurePeaks
    | InspectModel
    | FetchModel
    | FineTune
    | Calibrate
    | Shutdown
    | LoadVariant
    | WarmUp
    | RunSlice
    | RecordProfile
    | EvaluateWindow
    | GreedyPrompt
    | ForceTokens
    | MapLayers
    | Leave
)

# --------------------------------------------------------------------------- worker to engine only, never stored


class CommandDone(Message, frozen=True):
    """The worker has finished one command and waits."""

    command: str


class Logits(Message, frozen=True):
    """A piece (the payload, little-endian float32) of one window's next-token logits, row after row."""

    window: int
    windows: int
    """How many windows the evaluation text has."""
    vocab_size: int
    targets: tuple[int, ...]
    """The true next token of each row in this piece."""
    offset_row: int
    text_tokens: int = 0
    """Tokens of the whole text, also of what lies in no window."""


class GreedyTokens(Message, frozen=True):
    """One greedy continuation with the gap between best and second-best logit at every token."""

    prompt: int
    prompts: int
    """How many evaluation prompts there are."""
    token_ids: tuple[int, ...]
    margins: tuple[float, ...]
    """In logits; -1.0 where they hold NaN or infinity."""
    texts: tuple[str, ...]
    """Text of each token alone."""
    prompt_text: str = ""


class ForcedGaps(Message, frozen=True):
    """How far each token of a given continuation lies below the model's own choice."""

    prompt: int
    gaps: tuple[float, ...]
    """Best logit minus the given token's, at each token; -1.0 where they hold NaN or infinity."""


WorkerRecord = Record | CommandDone | Logits | GreedyTokens | ForcedGaps
