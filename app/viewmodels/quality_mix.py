"""Keep the worst modules unquantized: what each number of them costs and brings, as far as the map can tell."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Axis, ChartData, Level, Line, floats
from gptscope.app.viewmodels.charts.layer_map import module_title
from gptscope.app.viewmodels.lever_options import fields, lever_called
from gptscope.app.viewmodels.scales import linear_axis, log_axis
from gptscope.app.viewmodels.variant_names import precision_title
from gptscope.profiling.experiment import Variant
from gptscope.profiling.metrics.compare import SAME_OUTPUT_KL
from gptscope.profiling.quality import mixed
from gptscope.profiling.records import Capabilities, LayerErrors

MOST = 30
"""Of the worst modules, so many can be kept with the slider; more with clicks on the map."""
_BF16_MORE_BYTES = 1.0
"""Per parameter of a kept module: BF16 instead of INT8."""


@dataclass(frozen=True)
class Speeds:
    """Measured milliseconds of one step; None: not measured."""

    baseline_ms: float | None
    candidate_ms: float | None
    weight_bytes: int | None


@dataclass(frozen=True)
class Mix:
    """A proposal in words. Each figure is (before, after, how it was got)."""

    kept: tuple[str, ...]
    count: str
    figures: tuple[tuple[str, str, str, str], ...]
    names: str


def worst(errors: LayerErrors, count: int) -> tuple[str, ...]:
    """Paths of the worst modules, worst first."""
    return tuple(one.module for one in mixed.worst_first(errors)[:count])


def first_count(errors: LayerErrors, measured_kl: float | None = None) -> int:
    """How many to propose first: the fewest that are predicted to pass the gate; else a tenth, at least one.

    The map reads fewer tokens than the comparison: where that missed the gate, at least one is proposed.
    """
    least = 1 if measured_kl is not None and measured_kl > SAME_OUTPUT_KL and errors.modules else 0
    most = min(MOST, len(errors.modules))
    for count in range(least, most + 1):
        predicted = mixed.propose(errors, count).predicted_kl
        if predicted is not None and predicted <= SAME_OUTPUT_KL:
            return count
    return max(1, most // 10)


def reason_against(variant: Variant | None, capabilities: Capabilities | None) -> str | None:
    """Why this variant cannot leave modules alone, or None."""
    if variant is None:
        return "The run's setting is not known."
    if capabilities is None:
        return "Waiting for the engine, which knows the recipes of this machine."
    lever = lever_called(capabilities, "precision", variant.precision)
    if lever is None:
        return f"{precision_title(variant.precision)} is not known on this machine."
    if all(field.name != mixed.KEEP for field in fields(lever, variant)):
        return f"{lever.title} has no setting that leaves single modules alone."
    return None


def mixed_variant(variant: Variant, kept: Sequence[str], capabilities: Capabilities | None) -> Variant:
    """The recipe with these modules kept, besides those that it leaves alone already (by default, too)."""
    lever = lever_called(capabilities, "precision", variant.precision)
    field = next((field for field in fields(lever, variant) if field.name == mixed.KEEP), None)
    if field is not None and field.value and not field.changed:
        options = {**variant.options, variant.precision: {**variant.options.get(variant.precision, {})}}
        options[variant.precision][mixed.KEEP] = field.value
        variant = msgspec.structs.replace(variant, options=options)
    return msgspec.structs.replace(mixed.mixed_variant(variant, tuple(kept)), name="")


def describe(errors: LayerErrors, kept: Sequence[str], speeds: Speeds, *, int8: bool) -> Mix:
    """What to expect of a mix."""
    proposal = mixed.keep(errors, list(kept))
    before, after = _speedup(errors, None, speeds), _speedup(errors, proposal, speeds)
    figures = [("KL mean", fmt.number(errors.kl_all), fmt.number(proposal.predicted_kl), "predicted")]
    if after is not None:
        figures.append(("Speed", fmt.ratio(before), fmt.ratio(after), "predicted"))
    else:
        whole = mixed.keep(errors, [])
        figures.append(("Time saved", _duration(whole.saved_us), _duration(proposal.saved_us), "per step"))
    if int8 and speeds.weight_bytes is not None:
        more = sum(one.parameters for one in errors.modules if one.module in set(kept)) * _BF16_MORE_BYTES
        sizes = (fmt.quantity(size, "bytes") for size in (speeds.weight_bytes, speeds.weight_bytes + more))
        figures.append(("Weights", *sizes, "predicted"))  # type: ignore[arg-type]
    return Mix(
        kept=tuple(kept),
        count=f"{len(kept)} of {len(errors.modules)}",
        figures=tuple(figures),
        names=_names(errors, kept),
    )


def _duration(saved_us: float) -> str:
    return fmt.duration(saved_us * 1e-6)


def _speedup(errors: LayerErrors, proposal: mixed.Mixed | None, speeds: Speeds) -> float | None:
    if not speeds.baseline_ms or not speeds.candidate_ms:
        return None
    lost_us = 0.0 if proposal is None else mixed.keep(errors, []).saved_us - proposal.saved_us
    return speeds.baseline_ms / max(speeds.candidate_ms + lost_us * 1e-3, 1e-9)


def _names(errors: LayerErrors, kept: Sequence[str]) -> str:
    """`down 1, 27, 28, gate 1, lm_head`."""
    chosen = {one.module: one for one in errors.modules if one.module in set(kept)}
    by_part: dict[str, list[int]] = {}
    for module in kept:
        one = chosen.get(module)
        if one is not None:
            title = module_title(one).rsplit(", ", 1)[-1]
            by_part.setdefault(title, []).extend([one.layer] if one.layer is not None else [])
    said = [f"{part} {', '.join(str(n) for n in sorted(layers))}".rstrip() for part, layers in by_part.items()]
    return ", ".join(said) or "none"


def curve(errors: LayerErrors | None, kept: Sequence[str], speeds: Speeds) -> ChartData:
    """Predicted KL over predicted speed (or time saved) for every number of kept modules; the chosen mix on it."""
    nothing = Axis(low=0, high=1)
    if errors is None or not errors.kl_all:
        empty = "Appears with the layer map." if errors is None else "Nothing changed, so nothing has to be kept."
        return ChartData(x_axis=nothing, y_axis=nothing, empty=empty)
    most = min(MOST, len(errors.modules))
    ranked = list(worst(errors, most))
    points = [_point(errors, ranked[:count], speeds) for count in range(most + 1)]
    known = [(x, y, count) for count, (x, y) in enumerate(points) if y is not None and y > 0]
    chosen_x, chosen_y = _point(errors, kept, speeds)
    at = [(chosen_x, chosen_y)] if chosen_y else []
    xs, ys = [x for x, _, _ in known] + [x for x, _ in at], [y for _, y, _ in known] + [y for _, y in at]
    if not ys:
        return ChartData(x_axis=nothing, y_axis=nothing, empty="Nothing changed, so nothing has to be kept.")
    room = 0.06 * ((max(xs) - min(xs)) or abs(max(xs)) or 1.0)
    measured = bool(speeds.baseline_ms and speeds.candidate_ms)
    lines = [
        Line(name="worst k kept", x=floats([x for x, _, _ in known]), y=floats([y for _, y, _ in known]), role="other")
    ]
    if at:
        lines.append(
            Line(
                name="this mix", x=floats([chosen_x]), y=floats([chosen_y or 0.0]), role="current", live=True,
                end_label=f"k = {len(kept)}",
            )
        )  # fmt: skip
    return ChartData(
        x_axis=linear_axis(
            min(xs) - room, max(xs) + room, wanted=3, exact=True,
            title="speedup, predicted" if measured else "ms saved", named=True,
        ),
        y_axis=log_axis(min(*ys, SAME_OUTPUT_KL), max(*ys, SAME_OUTPUT_KL), title="predicted KL, nats"),
        lines=tuple(lines),
        levels=(Level(y=SAME_OUTPUT_KL, label="gate 0.01", role="warn"),),
        summary=f"With {len(kept)} modules kept the KL is predicted as {fmt.number(chosen_y)} nats.",
    )  # fmt: skip


def _point(errors: LayerErrors, kept: Sequence[str], speeds: Speeds) -> tuple[float, float | None]:
    proposal = mixed.keep(errors, list(kept))
    speedup = _speedup(errors, proposal, speeds)
    return (speedup if speedup is not None else proposal.saved_us * 1e-3), proposal.predicted_kl
