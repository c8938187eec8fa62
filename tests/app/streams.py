"""Record streams as a real run of a small model would send them, with a fixed seed and a fixed clock."""

import random
from collections.abc import Iterator

from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.records import (
    Capabilities,
    CpuSample,
    EvidenceItem,
    EvidenceReport,
    ExperimentFinished,
    ExperimentStarted,
    KernelRow,
    LeverInfo,
    MachineInfo,
    MemoryPeak,
    ModelInfo,
    ModelInspected,
    ModelLoaded,
    OperatorRow,
    Peaks,
    Profile,
    Progress,
    Quality,
    Record,
    RunFinished,
    RunStarted,
    SliceDone,
    StepSamples,
    Telemetry,
)

MS = 1_000_000
S = 1_000 * MS
START = 5_000 * S
UNIX = 1_700_000_000 * S

MACHINE = MachineInfo(
    hostname="box",
    system="Linux 6.1 x86-64",
    cpu_name="AMD EPYC 9R14",
    physical_cores=2,
    logical_cores=2,
    memory_bytes=16_000_000_000,
    cpu_features=("avx2", "avx512_bf16", "avx512f"),
    device="cpu",
    device_name="AMD EPYC 9R14, 2 cores",
    compiler="g++ 12.2",
    unknown={"gpu_name": "no NVIDIA driver found"},
)
MODEL = ModelInfo(
    name="SmolLM2-135M",
    source="gguf",
    family="llama",
    n_layer=30,
    d_model=576,
    n_head=9,
    n_kv_head=3,
    d_head=64,
    d_ff=1536,
    vocab_size=49152,
    context_length=2048,
    parameters=134_515_008,
    weight_bytes=269_030_016,
    kv_bytes_per_token=23_040,
    random_weights=False,
    has_tokenizer=True,
    gated_mlp=True,
)


def lever(
    name: str, group: str, title: str, reason: str | None = None, workloads: tuple[str, ...] | None = None
) -> LeverInfo:
    every = ("train", "prefill", "decode", "generate")
    return LeverInfo(
        name=name,
        group=group,  # type: ignore[arg-type]
        title=title,
        summary=f"What {title} does.",
        unavailable_reason=reason,
        workloads=workloads or every,
    )


CAPABILITIES = Capabilities(
    machine=MACHINE,
    levers=(
        lever("fp32", "precision", "FP32"),
        lever("tf32", "precision", "TF32", "TF32 needs an NVIDIA GPU, Ampere or newer. This machine has none."),
        lever("bf16", "precision", "BF16"),
        lever("fp16", "precision", "FP16"),
        lever("attention", "fusion", "attention"),
        lever("qkv", "fusion", "QKV"),
        lever("mlp", "fusion", "MLP gate+up"),
        lever("norm", "fusion", "norm"),
        lever("packed_linear", "fusion", "packed linear", None, ("prefill", "decode", "generate")),
        lever("optimizer", "fusion", "optimizer", None, ("train",)),
        lever("compile", "fusion", "torch.compile"),
        lever("none", "kv_cache", "none", None, ("decode", "generate")),
        lever("dynamic", "kv_cache", "dynamic", None, ("decode", "generate")),
        lever("static", "kv_cache", "static", None, ("decode", "generate")),
    ),
    versions={"torch": "2.13.0", "transformers": "5.0"},
    presets=("gpt2-124m", "llama-135m", "tiny"),
    catalogue=("smollm2-135m",),
)
INSPECTED = ModelInspected(model=MODEL, estimated_bytes={"decode": 600_000_000})
PEAKS = Peaks(
    device="cpu",
    device_name="AMD EPYC 9R14",
    threads=2,
    read_gbps=48.0,
    copy_gbps=39.0,
    gemm_tflops={"fp32": 0.12, "bf16": 0.62},
    measured_unix_ns=UNIX,
)
PLAIN = Variant(name="FP32 plain")
FUSED = Variant(
    precision="bf16", fusions=("attention", "qkv", "mlp", "norm"), kv_cache="static", name="BF16, fused, static KV"
)
WORKLOAD = Workload(kind="decode", batch=1, context=512, new_tokens=96, steps=6)
_KERNELS = (
    ("gate_up 3072x576", "GEMM", "blocks.*.mlp.gate_up", 30, 5.31, 106_168_320),
    ("lm_head 49152x576", "GEMM", "lm_head", 1, 2.86, 56_623_104),
    ("down 576x1536", "GEMM", "blocks.*.mlp.down", 30, 2.68, 53_084_160),
    ("sdpa, one query", "attention", "blocks.*.attn.sdpa", 30, 1.79, 14_745_600),
    ("qkv 960x576", "GEMM", "blocks.*.attn.qkv", 30, 1.69, 33_177_600),
    ("out 576x576", "GEMM", "blocks.*.attn.out", 30, 1.02, 19_906_560),
    ("rope, silu mul", "elementwise", "blocks.*.mlp.act", 60, 0.62, 270_000),
    ("rms_norm", "norm", "blocks.*.norm", 61, 0.50, 244_000),
    ("index_copy_", "copy", "blocks.*.attn.kv", 31, 0.24, 31_000),
    ("argmax", "reduction", "sampler", 1, 0.09, 196_608),
)


def profile(run_id: str, scale: float = 1.0, steps: int = 12) -> Profile:
    total = sum(row[4] for row in _KERNELS) * scale
    return Profile(
        run_id=run_id,
        steps=steps,
        overhead=1.06,
        wall_us=1e3 * total * steps * 1.05,
        busy_us=1e3 * total * steps,
        kernels=tuple(
            KernelRow(
                name=name,
                category=category,
                calls=calls * steps,
                self_time_us=1e3 * ms * scale * steps,
                total_time_us=1e3 * ms * scale * steps,
                share=ms * scale / total,
                module=module,
                input_shapes="[1, 576] [3072, 576]",
                dtypes=("c10::BFloat16",),
                bytes=moved * steps,
                flops=moved * steps,
            )
            for name, category, module, calls, ms, moved in _KERNELS
        ),
        device="cpu",
        operators=(
            *(
                OperatorRow(
                    name=name,
                    calls=calls * steps,
                    self_time_us=1e3 * ms * scale * steps,
                    total_time_us=1e3 * ms * scale * steps,
                    input_shapes="[1, 576] [3072, 576]",
                    category=category,
                    module=module,
                )
                for name, category, module, calls, ms, _ in _KERNELS
            ),
            OperatorRow(
                name="aten::linear",
                calls=121 * steps,
                self_time_us=60.0 * scale * steps,
                total_time_us=13_700.0 * scale * steps,
                category="GEMM",
                module="blocks.*.mlp.gate_up",
                modules=5,
            ),
        ),
    )


def started(run_id: str, variant: Variant, workload: Workload = WORKLOAD, experiment_id: str = "e1") -> RunStarted:
    return RunStarted(
        run_id=run_id,
        experiment_id=experiment_id,
        variant=variant,
        name=variant.name or variant.precision,
        workload=workload,
        model="smollm2-135m",
        command=f"gptscope run --model smollm2-135m --precision {variant.precision}",
        started_unix_ns=UNIX,
        machine=MACHINE,
        versions={"torch": "2.13.0"},
        environment={},
        threads=2,
        seed=1234,
    )


class Clock:
    """The worker's clock and a seeded source of noise."""

    def __init__(self, start_ns: int = START) -> None:
        self.now = start_ns
        self.random = random.Random(7)

    def steps(
        self,
        run_id: str,
        slice_number: int,
        phase: str,
        kind: str,
        count: int,
        ms: float,
        context: int,
        slow: float = 1.0,
    ) -> StepSamples:
        starts, durations = [], []
        for index in range(count):
            warm = 1.0 + (2.5 * 0.93**index if phase == "warmup" else 0.0)
            duration = int(MS * ms * slow * warm * self.random.gauss(1.0, 0.015))
            starts.append(self.now)
            durations.append(duration)
            self.now += duration + 20_000
        return StepSamples(
            run_id=run_id,
            slice=slice_number,
            phase=phase,  # type: ignore[arg-type]
            kind=kind,  # type: ignore[arg-type]
            start_ns=tuple(starts),
            duration_ns=tuple(durations),
            tokens=tuple([1 if kind == "decode" else context] * count),
            context=tuple(context + i for i in range(count)) if kind == "decode" else (),
        )

    def telemetry(self, run_id: str | None, other: float = 2.0, rss: int = 523_000_000) -> Telemetry:
        return Telemetry(
            time_ns=self.now,
            cpu=CpuSample(
                worker_percent=self.random.gauss(196, 1.5),
                other_percent=other + abs(self.random.gauss(0, 0.4)),
                own_percent=3.0,
                frequency_mhz=self.random.gauss(3410, 12),
                max_frequency_mhz=3550.0,
            ),
            worker_rss_bytes=rss,
            gpu_reason="no NVIDIA driver",
            run_id=run_id,
        )


def run_records(
    run_id: str,
    variant: Variant,
    clock: Clock,
    *,
    ms: float,
    slices: int = 6,
    disturbed: int | None = 3,
    workload: Workload = WORKLOAD,
    experiment_id: str = "e1",
) -> Iterator[Record]:
    """One run from its start to its end, without the experiment's own records."""
    half = variant.precision != "fp32"
    weights = MODEL.parameters * (2 if half else 4)
    yield started(run_id, variant, workload, experiment_id)
    yield Progress(phase="load", done=0, total=0, run_id=run_id)
    clock.now += S
    for _ in range(4):
        clock.now += 200 * MS
        yield clock.telemetry(run_id, rss=weights // 2)
    import msgspec

    model = msgspec.structs.replace(MODEL, weight_bytes=weights, kv_bytes_per_token=23_040 * (1 if half else 2))
    yield ModelLoaded(run_id=run_id, model=model, fusions=variant.fusions, skipped={}, load_s=1.9, start_s=2.1)
    yield Progress(phase="warmup", done=1, total=4, unit="steps", run_id=run_id)
    yield clock.steps(run_id, -1, "warmup", "prefill", 1, 8 * ms, workload.context)
    yield clock.steps(run_id, -1, "warmup", "decode", 60, ms, workload.context)
    yield clock.telemetry(run_id)
    for number in range(slices):
        slow = 1.35 if number == disturbed else 1.0
        yield Progress(phase="measure", done=number, total=slices, unit="slices", run_id=run_id)
        yield clock.steps(run_id, number, "measure", "prefill", 1, 8 * ms, workload.context)
        for _ in range(4):
            yield clock.steps(run_id, number, "measure", "decode", workload.new_tokens // 4, ms, workload.context, slow)
            yield clock.telemetry(run_id, other=38.0 if slow > 1 else 2.0)
        reason = "other processes used 38 % of a core" if slow > 1 else None
        yield SliceDone(run_id=run_id, slice=number, attempt=0, pair=number, seconds=1.8, disturbed=reason)
        clock.now += 300 * MS
    if disturbed is not None:
        yield clock.steps(run_id, disturbed, "measure", "decode", workload.new_tokens, ms, workload.context)
        yield SliceDone(run_id=run_id, slice=disturbed, attempt=1, pair=disturbed, seconds=1.8)
    yield MemoryPeak(run_id=run_id, process_bytes=weights + 254_000_000, kv_cache_bytes=14_000_000)
    yield Progress(phase="profile", done=0, total=12, unit="steps", run_id=run_id)
    yield clock.steps(run_id, -1, "profile", "decode", 12, ms * 1.06, workload.context)
    yield profile(run_id, ms / 17.5)
    items = [EvidenceItem(lever=name, in_effect=True, sentence="found in the profile") for name in variant.fusions[:-1]]
    items += [
        EvidenceItem(lever=name, in_effect=False, sentence="no fused kernel ran") for name in variant.fusions[-1:]
    ]
    yield EvidenceReport(run_id=run_id, items=tuple(items))
    yield RunFinished(run_id=run_id, outcome="done", finished_unix_ns=UNIX + 60 * S, first_step_s=4.2)


def experiment_records(
    variant: Variant = FUSED,
    *,
    ms: float = 17.5,
    run_id: str = "r1",
    experiment_id: str = "e1",
    workload: Workload = WORKLOAD,
    slices: int = 6,
) -> list[Record]:
    """A whole one-variant experiment."""
    experiment = Experiment(model="smollm2-135m", workload=workload, variants=(variant,))
    clock = Clock()
    begin = ExperimentStarted(
        experiment_id=experiment_id, experiment=experiment, run_ids=(run_id,), started_unix_ns=UNIX
    )
    body = list(
        run_records(run_id, variant, clock, ms=ms, slices=slices, workload=workload, experiment_id=experiment_id)
    )
    return [begin, PEAKS, *body, ExperimentFinished(experiment_id=experiment_id, outcome="done")]


NORM = Variant(precision="fp32", fusions=("norm",), name="FP32, fused norm")
DYNAMIC = Variant(precision="bf16", fusions=("attention", "qkv", "mlp"), name="BF16, fused, dynamic KV")


def quality(run_id: str, baseline_run_id: str = "v0", **changes: object) -> Quality:
    """Output that is the same as the baseline's, but for `changes`."""
    import msgspec

    same = Quality(
        run_id=run_id,
        baseline_run_id=baseline_run_id,
        tokens=8192,
        perplexity=14.88,
        perplexity_error=0.3,
        baseline_perplexity=14.86,
        baseline_perplexity_error=0.3,
        kl_mean=0.0021,
        kl_median=0.001,
        kl_p99=0.018,
        top1_agreement=0.989,
        greedy_tokens=1152,
        greedy_equal=1152,
        near_ties=0,
        real_changes=0,
        perplexity_change=0.02,
        perplexity_change_error=0.11,
    )
    return msgspec.structs.replace(same, **changes)


def comparison_records() -> list[Record]:
    """A baseline and three candidates measured alternately: faster, faster with other output, no different."""
    settings = ((PLAIN, 37.0), (FUSED, 11.2), (DYNAMIC, 12.0), (NORM, 37.08))
    run_ids = tuple(f"v{number}" for number in range(len(settings)))
    variants = tuple(variant for variant, _ in settings)
    experiment = Experiment(model="smollm2-135m", workload=WORKLOAD, variants=variants, quality=True)
    begin = ExperimentStarted(experiment_id="x", experiment=experiment, run_ids=run_ids, started_unix_ns=UNIX)
    records: list[Record] = [begin, PEAKS]
    clock = Clock()
    for run_id, (variant, ms) in zip(run_ids, settings, strict=True):
        records += run_records(run_id, variant, clock, ms=ms, experiment_id="x")
    changed = quality(
        "v2", kl_mean=0.19, kl_p99=1.62, top1_agreement=0.841, greedy_equal=220, near_ties=1, real_changes=9,
        perplexity=17.92, perplexity_change=3.06, perplexity_change_error=0.21,
    )  # fmt: skip
    equal = quality("v3", kl_mean=0.0, kl_p99=0.0, perplexity=14.86, perplexity_change=0.0, top1_agreement=1.0)
    return [*records, quality("v1"), changed, equal, ExperimentFinished(experiment_id="x", outcome="done")]
