"""Speed against output: how much faster each candidate is, and how far its output went from the baseline's."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Axis, ChartData, Level, Spot, SpotTone
from gptscope.app.viewmodels.scales import linear_axis, log_axis
from gptscope.app.viewmodels.variant_names import BASELINE
from gptscope.profiling.metrics.compare import SAME_OUTPUT_KL
from gptscope.profiling.metrics.verdict import Verdict, VerdictKind
from gptscope.profiling.records import Quality

NOT_COMPARED = "outputs were not compared in this run"
TRAINED = "training is compared by its losses, in Quality"
LEAST_KL = 1e-6
"""Nats below which a divergence is drawn as none: rounding of one token in a thousand makes more."""
_TONES: dict[VerdictKind, SpotTone] = {
    "faster_same_output": "good",
    "faster_output_changed": "warn",
    "faster_output_unknown": "good",
    "slower": "bad",
}
_ROOM_LEFT, _ROOM_RIGHT = 0.08, 0.22
"""Of the span of the ratios; labels stand on the right."""


@dataclass(frozen=True)
class SpeedOutput:
    """The chart, and a sentence about every candidate that has no place in it."""

    chart: ChartData
    missing: str


def build(
    names: Sequence[str], titles: Sequence[str], verdicts: Sequence[Verdict], qualities: Sequence[Quality | None],
    *, training: bool,
) -> SpeedOutput:  # fmt: skip
    """One symbol per candidate with a ratio and a divergence, and the baseline at 1x and no divergence.

    Args:
        names: `A`, `B`, … of the candidates.
        titles: What they are, in words.
        verdicts: With ratio and interval.
        qualities: None where the output was not compared.
        training: The runs trained, so there is no output to compare.
    """
    reasons = [
        _reason(verdict, quality, training=training) for verdict, quality in zip(verdicts, qualities, strict=True)
    ]
    placed = [
        _spot(name, title, verdict, quality)
        for name, title, verdict, quality, reason in zip(names, titles, verdicts, qualities, reasons, strict=True)
        if quality is not None and not reason
    ]
    left_out = [(name, reason) for name, reason in zip(names, reasons, strict=True) if reason]
    if not placed:
        nothing = Axis(low=0, high=1)
        why = "; ".join(dict.fromkeys(reason for _, reason in left_out))
        return SpeedOutput(ChartData(x_axis=nothing, y_axis=nothing, empty=f"n/a: {why}."), "")
    return SpeedOutput(_chart(placed), "   ".join(f"{name} n/a: {reason}." for name, reason in left_out))


def _reason(verdict: Verdict, quality: Quality | None, *, training: bool) -> str:
    """Why a candidate has no place, or nothing."""
    if training:
        return TRAINED
    if quality is None:
        return NOT_COMPARED
    if quality.kl_mean is None:
        return quality.unknown.get("kl_mean", NOT_COMPARED).rstrip(".")
    if verdict.speedup is None and verdict.plain_ratio is None:
        return verdict.sentence.removeprefix(f"{verdict.title}: ").rstrip(".")
    return ""


def _spot(name: str, title: str, verdict: Verdict, quality: Quality) -> Spot:
    found = verdict.speedup
    value = found.value if found is not None else verdict.plain_ratio
    assert value is not None
    assert quality.kl_mean is not None
    low, high = (found.low, found.high) if found is not None else (None, None)
    return Spot(
        x=value,
        y=quality.kl_mean,
        x_low=low,
        x_high=high,
        label=name,
        tip=f"{name} {title}\n{fmt.ratio(value, low, high)}, KL {fmt.number(quality.kl_mean)} nats, {verdict.title}",
        key=verdict.candidate_run_id or name,
        tone=_TONES.get(verdict.kind, ""),
        shape="triangle" if verdict.output_changed else "circle",
    )


def _chart(placed: Sequence[Spot]) -> ChartData:
    ends = [1.0, *(end for spot in placed for end in (spot.x, spot.x_low, spot.x_high) if end is not None)]
    y_axis = _kl_axis([spot.y for spot in placed])
    spots = [replace(spot, y=_inside(spot.y, y_axis)) for spot in placed]
    base = Spot(
        x=1.0, y=y_axis.high, label=BASELINE, tip=f"{BASELINE}\n1x, its own output", key=BASELINE, tone="baseline",
        shape="square",
    )  # fmt: skip
    said = ", ".join(f"{spot.label} {fmt.ratio(spot.x)} at {fmt.number(spot.y)} nats" for spot in placed)
    return ChartData(
        x_axis=_ratio_axis(min(ends), max(ends)),
        y_axis=y_axis,
        spots=(base, *spots),
        levels=(Level(y=SAME_OUTPUT_KL, label="gate 0.01", role="warn"),),
        summary=f"Speedup and KL divergence from the baseline: {said}.",
    )


def _inside(kl: float, axis: Axis) -> float:
    return kl if kl >= LEAST_KL else axis.high


def _ratio_axis(low: float, high: float) -> Axis:
    """Speedups, with room for labels."""
    span = (high - low) or 1.0
    axis = linear_axis(low - _ROOM_LEFT * span, high + _ROOM_RIGHT * span, wanted=5, exact=True)
    return replace(axis, ticks=tuple((value, f"{text}x") for value, text in axis.ticks), title="speedup", named=True)


def _kl_axis(values: Sequence[float]) -> Axis:
    """Divergence in decades, none at the top: up is better. Zero stands one decade above the last tick."""
    known = [value for value in values if value >= LEAST_KL] or [SAME_OUTPUT_KL]
    decades = log_axis(min(*known, SAME_OUTPUT_KL), max(*known, 1.01 * SAME_OUTPUT_KL))
    top = 10.0 ** (math.log10(decades.low) - 1)
    ticks = (*decades.ticks, (top, "0"))
    return Axis(low=decades.high, high=top, ticks=ticks, log=True, title="KL to the baseline, nats per token")
