"""What to run: one model, one workload, a baseline variant and its candidates. Plain values, checked on entry."""

from typing import Literal

import msgspec

WorkloadKind = Literal["train", "prefill", "decode", "generate"]
KV_CACHES = ("none", "dynamic", "static", "int8")
PRECISIONS = (
    "fp32", "tf32", "bf16", "fp16", "int8-weight-only", "int8-dynamic", "int8-static", "int8-smoothquant",
    "fp8-delayed", "fp8-current", "fp8-rowwise", "mxfp8", "nvfp4",
)  # fmt: skip
"""The levers' names stand here for processes that must not import the levers themselves, which need torch."""
FUSIONS = ("attention", "qkv", "mlp", "norm", "optimizer", "packed_linear", "compile")
PRUNINGS = ("magnitude", "2:4", "structured")
SPECULATIONS = ("prompt-lookup", "draft-model")
DEFAULT_SEED = 1234

OptionValue = bool | int | float | str


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of all levers."""

    precision: str = "fp32"
    fusions: tuple[str, ...] = ()
    """Fusion names; `all` stands for every fusion that is available here for the workload, except `compile`."""
    kv_cache: str = "dynamic"
    pruning: str = "none"
    speculation: str = "none"
    options: dict[str, dict[str, OptionValue]] = {}
    """Lever name -> its option -> value; what is missing has the lever's default."""
    model: str | None = None
    """Where this variant's weights come from, when not from the experiment's model: a fine-tuned copy, for example."""
    threads: int | None = None
    """Worker threads for kernels; None: one per physical core."""
    name: str = ""
    """Short name for people; empty: made from the levers by `variant_name`."""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """What each variant computes. Token counts are per sequence.

    `steps` counts optimizer steps (train), prompts (prefill) or whole sequences of `new_tokens` (decode, generate).
    """

    kind: WorkloadKind = "decode"
    batch: int = 1
    context: int = 128
    """Prompt tokens (prefill, decode, generate without `prompt`), or sequence length (train)."""
    new_tokens: int = 64
    steps: int = 8
    seed: int = DEFAULT_SEED
    prompt: str | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` saying which number is impossible and what to give instead."""
        for name, least in (("batch", 1), ("context", 1), ("new_tokens", 1), ("steps", 1)):
            value = getattr(self, name)
            if value < least:
                raise ValueError(f"{name} is {value}, but it must be {least} or more.")
        if self.kind == "train" and self.context < 2:
            raise ValueError(
                "context is 1, but training needs 2 or more tokens: each position predicts the next token."
            )


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """One model, one workload, one or more variants; the first variant is the baseline."""

    model: str
    """A model source: `bundled`, `preset:NAME`, a catalogue name, a folder, a file, or a hub id."""
    workload: Workload
    variants: tuple[Variant, ...]
    device: Literal["auto", "cpu", "cuda"] = "auto"
    profile_steps: int | None = None
    """Steps (train, prefill) or tokens (decode, generate) to record after measuring; 0: none; None: a default."""
    quality: bool = False
    """Compare the candidates' output with the baseline's (perplexity, KL, agreement, greedy tokens)."""
    text: str | None = None
    """Text file (UTF-8) on which outputs are compared; None: the evaluation text that comes with gptscope."""
    layer_map: bool = False
    """Besides, find out what each of a candidate's modules alone costs in output and saves in time."""
    measure: bool = True
    """False: only compare outputs; nothing is measured or profiled."""
    peaks: bool = True
    """Measure this machine's bandwidth and FLOP/s ceilings first, unless they are kept from an earlier time."""
    seeds: int = 1
    """Training: over so many seeds (order of the data, random weights) the final losses are compared; 1: only those of
    the measured run. The further ones are trained after the measurement, untimed, with the next seeds."""
    time_limit_s: float = 1800.0
    """The whole experiment is stopped, keeping what was measured, after this long."""

    def __post_init__(self) -> None:
        """Raise `ValueError` when there is nothing to run, or seeds would change nothing."""
        if not self.variants:
            raise ValueError("An experiment needs at least one variant.")
        if self.seeds < 1:
            raise ValueError(f"seeds is {self.seeds}, but it must be 1 or more.")
        if self.seeds > 1 and self.workload.kind != "train":
            raise ValueError(
                f"Several seeds compare training losses, but the workload is {self.workload.kind}. Take the workload "
                "train, or leave the seeds out."
            )


def variant_name(variant: Variant) -> str:
    """A short readable name, e.g. `BF16, attention+qkv, static KV`; the variant's own name when it has one."""
    if variant.name:
        return variant.name
    parts = [variant.precision.upper(), "+".join(variant.fusions) if variant.fusions else "plain"]
    parts.append("no KV cache" if variant.kv_cache == "none" else f"{variant.kv_cache} KV")
    parts += [lever for lever in (variant.pruning, variant.speculation) if lever != "none"]
    parts += [f"{lever} {name}={value}" for lever, name, value in flat_options(variant)]
    if variant.model is not None:
        parts.append(f"weights of {variant.model}")
    if variant.threads is not None:
        parts.append(f"{variant.threads} thread" + ("s" if variant.threads != 1 else ""))
    return ", ".join(parts)


def flat_options(variant: Variant) -> list[tuple[str, str, str]]:
    """Lever, option and value as text, in a fixed order, e.g. `("int8-static", "granularity", "channel")`."""
    return [
        (lever, name, str(value).lower() if isinstance(value, bool) else str(value))
        for lever, options in sorted(variant.options.items())
        for name, value in sorted(options.items())
    ]
