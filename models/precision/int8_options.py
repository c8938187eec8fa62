"""The settings that INT8 recipes have, and their reading."""

from dataclasses import dataclass
from pathlib import Path

import torch

from gptscope.models.levers import LeverOption, OptionValue
from gptscope.models.quantization.names import split_patterns
from gptscope.models.quantization.ranges import ACTIVATION_METHODS, PERCENTILES, WEIGHT_METHODS

BASES = {"bf16": torch.bfloat16, "fp32": torch.float32}
GRANULARITY = LeverOption(
    name="granularity",
    title="weight scales",
    kind="choice",
    choices=("channel", "tensor"),
    default="channel",
    summary="One scale per output channel, or one per matrix: a single large weight then coarsens all others.",
)
CLIPPING = LeverOption(
    name="clipping",
    title="weight clipping",
    kind="choice",
    choices=WEIGHT_METHODS,
    default="mse",
    summary="Which magnitude a weight's scale reaches: its largest (minmax), a percentile of it, or the one with the "
    "least squared error (mse). What lies above is clipped.",
)
PERCENTILE = LeverOption(
    name="percentile",
    title="percentile",
    kind="choice",
    choices=PERCENTILES,
    default="99.9",
    summary="Percent of the values that lie inside a range, where the method is percentile.",
)
KEEP = LeverOption(
    name="keep",
    title="keep unquantized",
    kind="text",
    default="",
    summary="Layers that stay in the base format: names or patterns, such as `blocks.0, *.mlp.down`.",
)
KEEP_WORST = LeverOption(
    name="keep-worst",
    title="keep the worst",
    kind="whole",
    default=0,
    least=0,
    summary="So many layers stay in the base format: those that change the prediction most when quantized alone. They "
    "are found on the calibration text.",
)
BASE = LeverOption(
    name="base",
    title="base format",
    kind="choice",
    choices=tuple(BASES),
    default="bf16",
    summary="Format of everything that is not quantized: norms, attention, the residual stream, layers that are kept.",
)
HEAD = LeverOption(
    name="head",
    title="quantize the output projection",
    kind="switch",
    default=True,
    summary="The largest matrix of small models, and the one nearest to the prediction.",
)
EMBEDDING = LeverOption(
    name="embedding",
    title="quantize the embedding",
    kind="switch",
    default=True,
    summary="The look-up table as INT8 with a scale per row. It saves memory, not time.",
)
TEXT = LeverOption(
    name="calibration-text",
    title="calibration text",
    kind="file",
    default="",
    summary="A text file on the machine that runs the model; empty: the text that comes with gptscope.",
)
RANGES = LeverOption(
    name="ranges",
    title="saved ranges",
    kind="file",
    default="",
    summary="A file that `gptscope calibrate` or an earlier run wrote, instead of calibrating anew.",
)
RANGE = LeverOption(
    name="range",
    title="activation range",
    kind="choice",
    choices=ACTIVATION_METHODS,
    default="mse",
    summary="Which magnitude an activation's scale reaches: the largest one seen (minmax), a percentile, the one with "
    "the least squared error (mse) or the least KL divergence (entropy).",
)


def activations_option(*choices: str) -> LeverOption:
    """The option that says where activations have their scales from; the first choice is the default."""
    known = {
        "token": "one scale per token",
        "tensor": "one for all tokens of a call, which a single large value coarsens for all of them",
        "static": "a fixed one from the calibration",
    }
    text = ", or ".join(known[choice] for choice in choices)
    return LeverOption(
        name="activations",
        title="activation scales",
        kind="choice",
        choices=choices,
        default=choices[0],
        summary=f"{text[0].upper()}{text[1:]}.",
    )


def int8_options(*own: LeverOption) -> tuple[LeverOption, ...]:
    """What every INT8 recipe has, and the recipe's own ones behind the scales of weights."""
    return (GRANULARITY, *own, CLIPPING, PERCENTILE, KEEP, KEEP_WORST, BASE, HEAD, EMBEDDING, TEXT)


@dataclass(frozen=True, slots=True)
class Int8Settings:
    """The settings that every INT8 recipe has, read."""

    per_channel: bool
    clipping: str
    percentile: str
    keep: tuple[str, ...]
    keep_worst: int
    base: torch.dtype
    head: bool
    embedding: bool
    calibration_text: Path | None
    ranges: Path | None


def read_settings(values: dict[str, OptionValue]) -> Int8Settings:
    """From checked option values."""
    text, ranges = str(values["calibration-text"]), str(values.get("ranges", ""))
    return Int8Settings(
        per_channel=values["granularity"] == "channel",
        clipping=str(values["clipping"]),
        percentile=str(values["percentile"]),
        keep=split_patterns(str(values["keep"])),
        keep_worst=int(values["keep-worst"]),
        base=BASES[str(values["base"])],
        head=bool(values["head"]),
        embedding=bool(values["embedding"]),
        calibration_text=Path(text).expanduser() if text else None,
        ranges=Path(ranges).expanduser() if ranges else None,
    )
