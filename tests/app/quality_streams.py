"""Records about outputs as a real comparison of a small model would send them, and an experiment that holds them."""

import math
import random

import msgspec
from tests_app_streams import CAPABILITIES, PEAKS, PLAIN, UNIX, WORKLOAD, Clock, run_records

from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.records import (
    Capabilities,
    ExperimentFinished,
    ExperimentStarted,
    FineTune,
    FineTuned,
    LayerErrors,
    LeverInfo,
    LeverOptionInfo,
    ModelLoaded,
    ModuleError,
    PromptComparison,
    Quality,
    Record,
    RunFinished,
    ScaleHistory,
    ScaleSeries,
    StepSamples,
    TextScore,
)

INT8 = Variant(precision="int8-dynamic", options={"int8-dynamic": {"granularity": "tensor"}})
INFERENCE = ("prefill", "decode", "generate")
_OPTIONS = (
    LeverOptionInfo(
        name="granularity", title="weight scales", kind="choice", default="channel", choices=("channel", "tensor"),
        summary="One scale per output channel, or one per matrix.",
    ),
    LeverOptionInfo(name="keep", title="keep unquantized", kind="text", default="", summary="Layers that stay."),
    LeverOptionInfo(
        name="keep-worst", title="keep the worst", kind="whole", default=0, least=0, summary="So many layers stay."
    ),
    LeverOptionInfo(
        name="alpha", title="alpha", kind="number", default=0.5, least=0, most=1, summary="How much is moved."
    ),
    LeverOptionInfo(name="head", title="quantize the head", kind="switch", default=True, summary="The largest matrix."),
    LeverOptionInfo(name="embedding", title="quantize the table", kind="switch", default=True, summary="The table."),
)  # fmt: skip
_FP8 = "FP8 delayed (emulated) is emulated on a CPU: its numbers are exact, but no speedup is to be expected."
RICH_CAPABILITIES: Capabilities = msgspec.structs.replace(
    CAPABILITIES,
    levers=(
        *CAPABILITIES.levers,
        LeverInfo(
            name="int8-weight-only", group="precision", title="INT8 weight-only", summary="Weights in INT8.",
            workloads=INFERENCE, options=_OPTIONS,
        ),
        LeverInfo(
            name="int8-dynamic", group="precision", title="INT8 dynamic", summary="Weights and activations in INT8.",
            workloads=INFERENCE, options=_OPTIONS,
        ),
        LeverInfo(
            name="fp8-delayed", group="precision", title="FP8 delayed (emulated)", summary="8-bit products.",
            warning=_FP8,
            options=(
                LeverOptionInfo(name="keep", title="kept in BF16", kind="text", default="lm_head", summary="Stay."),
            ),
        ),
        LeverInfo(
            name="nvfp4", group="precision", title="NVFP4", summary="4-bit products.",
            unavailable_reason="torch.compile cannot trace the emulation of NVFP4; leave the fusion compile out.",
        ),
        LeverInfo(name="heads", group="pruning", title="Heads", summary="Removes heads.", workloads=INFERENCE),
        LeverInfo(
            name="2:4", group="pruning", title="2:4 pattern", summary="Two of four.", workloads=INFERENCE,
            unavailable_reason="The 2:4 pattern is only faster on an NVIDIA GPU, Ampere or newer.",
        ),
        LeverInfo(
            name="prompt-lookup", group="speculation", title="Prompt lookup", summary="Guesses from the text.",
            workloads=("decode", "generate"),
            options=(
                LeverOptionInfo(
                    name="drafts", title="Guesses per step", kind="whole", default=6, least=1, most=32,
                    summary="At most.",
                ),
            ),
        ),
    ),
)  # fmt: skip
_PROMPTS = (
    "The lighthouse keeper climbed the stairs every evening because",
    "In a small village there was",
    "Water boils when",
    "The main cause of the war",
    "def fibonacci(n):",
    "Once upon a time",
    "The capital of France is",
    "To make bread you need",
)
_WORDS = ("the", "ships", "in", "bay", "needed", "a", "light", "to", "find", "harbour", "and", "had", "done", "years")


def prompts() -> tuple[PromptComparison, ...]:
    made = []
    for index, prompt in enumerate(_PROMPTS):
        generator = random.Random(index)
        base = tuple(f" {generator.choice(_WORDS)}" for _ in range(48))
        margins = tuple(round(abs(generator.gauss(3, 2)) + 0.1, 3) for _ in base)
        outcome = "equal" if index in (2, 6) else "near_tie" if index == 5 else "changed"
        equal = len(base) if outcome == "equal" else 5 + 4 * index
        other = (
            base
            if outcome == "equal"
            else (*base[:equal], " <b>&", *(f" {generator.choice(_WORDS)}" for _ in base[equal + 1 :]))
        )
        if outcome == "near_tie":
            margins = (*margins[:equal], 0.02, *margins[equal + 1 :])
        made.append(
            PromptComparison(
                prompt=prompt, baseline=base, candidate=other, equal=equal, outcome=outcome, margins=margins,
                forced_gaps=tuple(0.0 if i < equal else 0.8 for i in range(len(other))),
            )
        )  # fmt: skip
    return tuple(made)


def quality(run_id: str = "r1", baseline: str = "r0", **changes: object) -> Quality:
    made = Quality(
        run_id=run_id,
        baseline_run_id=baseline,
        tokens=8192,
        perplexity=17.92,
        perplexity_error=0.61,
        baseline_perplexity=14.86,
        baseline_perplexity_error=0.48,
        perplexity_change=3.06,
        perplexity_change_error=0.21,
        kl_mean=0.19,
        kl_median=0.071,
        kl_p99=1.62,
        top1_agreement=0.841,
        greedy_tokens=384,
        greedy_equal=171,
        near_ties=1,
        real_changes=5,
        near_tie_margin=0.05,
        logit_sqnr_db=12.8,
        logit_cosine=0.97431,
        text="the evaluation text that comes with gptscope",
        prompts=prompts(),
    )
    return msgspec.structs.replace(made, **changes)


def layer_errors(run_id: str = "r1", layers: int = 30) -> LayerErrors:
    generator = random.Random(3)
    parts = {"attn.qkv.q": 0.33, "attn.qkv.k": 0.11, "attn.qkv.v": 0.11, "attn.out": 0.33}
    parts |= {"mlp.gate": 0.9, "mlp.up": 0.9, "mlp.down": 0.9}
    worst = {(1, "mlp.down"): 0.08, (29, "mlp.down"): 0.058, (28, "mlp.down"): 0.05, (27, "mlp.down"): 0.031}
    worst |= {(1, "mlp.gate"): 0.02, (0, "attn.qkv.q"): 0.018}
    modules = [
        ModuleError(
            module=f"blocks.{layer}.{part}", layer=layer, part=part, parameters=int(885_000 * size),
            kl_mean=worst.get((layer, part), 10 ** generator.uniform(-3.6, -2.6)), logit_sqnr_db=31.0,
            output_sqnr_db=34.0, output_cosine=0.9996, reference_us=260 * size, candidate_us=90 * size,
        )
        for layer in range(layers)
        for part, size in parts.items()
    ]  # fmt: skip
    modules.append(
        ModuleError(
            module="lm_head", layer=None, part="lm_head", parameters=28_311_552, kl_mean=0.0041, logit_sqnr_db=36.0,
            output_sqnr_db=36.0, output_cosine=0.9999, reference_us=6100.0, candidate_us=2000.0,
        )
    )  # fmt: skip
    stream = tuple(36 - 0.7 * layer - (6 if layer else 0) + generator.uniform(-0.8, 0.8) for layer in range(layers))
    return LayerErrors(
        run_id=run_id, baseline_run_id="r0", modules=tuple(modules), stream_sqnr_db=stream, tokens=1024, timed_tokens=1,
        kl_all=0.19, reference="an FP32 copy of the model", text="the evaluation text that comes with gptscope",
        seconds=84.0,
    )  # fmt: skip


def compared(
    *extra: Record, candidate: Variant = INT8, workload: Workload = WORKLOAD, model: str = "smollm2-135m"
) -> list[Record]:
    """A baseline and a candidate, measured and compared; `extra` comes after the comparison."""
    experiment = Experiment(model=model, workload=workload, variants=(PLAIN, candidate), quality=True)
    begin = ExperimentStarted(experiment_id="q1", experiment=experiment, run_ids=("r0", "r1"), started_unix_ns=UNIX)
    clock = Clock()
    runs: list[Record] = []
    for run_id, variant, ms in (("r0", PLAIN, 37.0), ("r1", candidate, 12.1)):
        runs += run_records(run_id, variant, clock, ms=ms, disturbed=None, workload=workload, experiment_id="q1")
    ends = [record for record in runs if isinstance(record, RunFinished)]
    body = [_with_sizes(record, candidate) for record in runs if not isinstance(record, RunFinished)]
    return [begin, PEAKS, *body, *extra, *ends, ExperimentFinished(experiment_id="q1", outcome="done")]


def _with_sizes(record: Record, candidate: Variant) -> Record:
    """An INT8 model says how large its weights and activations are."""
    if not isinstance(record, ModelLoaded) or record.run_id != "r1" or not candidate.precision.startswith("int8"):
        return record
    weights = round(record.model.parameters * 1.02)
    model = msgspec.structs.replace(record.model, weight_bytes=weights, activation_bytes=2.0)
    return msgspec.structs.replace(record, model=model)


def losses(run_id: str, shift: float = 0.0, steps: int = 60) -> StepSamples:
    generator = random.Random(9)
    values = tuple(2.1 + 1.9 * math.exp(-step / 18) + generator.gauss(0, 0.05) + shift for step in range(steps))
    return StepSamples(
        run_id=run_id, slice=0, phase="measure", kind="train", start_ns=tuple(range(steps)),
        duration_ns=(1,) * steps, tokens=(1024,) * steps, loss=values,
    )  # fmt: skip


def scales(run_id: str = "r1", first: int = 0, steps: int = 60) -> ScaleHistory:
    generator = random.Random(first)
    series = []
    for layer in ("blocks.0.attn.qkv.q", "blocks.0.mlp.down"):
        for tensor, size, largest in (("input", 4.0, 448.0), ("weight", 0.6, 448.0), ("grad", 2e-4, 57344.0)):
            amax = tuple(size * (1 + 0.3 * generator.random()) for _ in range(steps))
            scale = tuple(largest / (size * 1.25) for _ in range(steps))
            series.append(
                ScaleSeries(
                    layer=layer, tensor=tensor, largest=largest, steps=tuple(range(first, first + steps)), amax=amax,
                    scale=scale,
                )
            )  # fmt: skip
    return ScaleHistory(run_id=run_id, recipe="fp8-delayed", series=tuple(series))


def fine_tuned(change: float = -2.7) -> FineTuned:
    return FineTuned(
        request=FineTune(model="bundled", folder="/tuned", mode="targeted", recipe="int8-dynamic"),
        folder="/tuned", trained=("blocks.1.mlp.down", "blocks.29.mlp.down"), losses=(0.3, 0.1), seconds=42.0,
        tokens=8192, original=TextScore(perplexity=14.86, error=0.48),
        quantized_before=TextScore(perplexity=17.92, error=0.6),
        quantized_after=TextScore(perplexity=17.92 + change, error=0.5), after=TextScore(perplexity=15.0, error=0.48),
        change=TextScore(perplexity=change, error=0.2), text="the calibration text",
    )  # fmt: skip
