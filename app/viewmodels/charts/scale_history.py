"""Largest magnitude of one tensor over the steps, beside what its scale could hold: above it values were clipped."""

import math

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Axis, ChartData, Line, floats
from gptscope.app.viewmodels.output_records import ScaleCourse
from gptscope.app.viewmodels.scales import linear_axis, log_axis

LABELS_APART = 0.12
ONE_SIZE = 20.0
EMPTY = "Appears when a run with an FP8 or narrower recipe has recorded its scales."
ZERO = "This tensor was zero at every step."
TENSORS = {"input": "input", "weight": "weight", "grad": "gradient"}


def layers(courses: dict[tuple[str, str], ScaleCourse]) -> tuple[str, ...]:
    """Layers in the order in which they were recorded."""
    return tuple(dict.fromkeys(layer for layer, _ in courses))


def tensors(courses: dict[tuple[str, str], ScaleCourse], layer: str) -> tuple[str, ...]:
    """What was recorded of one layer."""
    return tuple(tensor for tensor in TENSORS if (layer, tensor) in courses)


def clipped(course: ScaleCourse) -> int:
    """Steps whose largest value did not fit."""
    return sum(
        amax * scale > course.largest * (1 + 1e-6) for amax, scale in zip(course.amax, course.scale, strict=True)
    )


def build(course: ScaleCourse | None) -> ChartData:
    """The two curves on a logarithmic axis."""
    nothing = Axis(low=0, high=1)
    if course is None or not course.steps:
        return ChartData(x_axis=nothing, y_axis=nothing, empty=EMPTY)
    limits = [course.largest / scale if scale > 0 else math.nan for scale in course.scale]
    values = [value for value in (*course.amax, *limits) if math.isfinite(value) and value > 0]
    if not values:
        return ChartData(x_axis=nothing, y_axis=nothing, empty=ZERO)
    count = clipped(course)
    x = floats(course.steps)
    axis = _axis(min(values), max(values))
    ends = [
        next((v for v in reversed(line) if math.isfinite(v) and v > 0), max(values)) for line in (course.amax, limits)
    ]
    apart = abs(axis.position(ends[0]) - axis.position(ends[1])) > LABELS_APART
    return ChartData(
        x_axis=linear_axis(
            course.steps[0], max(course.steps[-1], course.steps[0] + 1), wanted=6, exact=True, title="step", named=True
        ),
        y_axis=axis,
        lines=(
            Line(
                name="largest that the scale holds",
                x=x,
                y=floats(limits),
                role="baseline",
                end_label="scale holds" if apart else "",
            ),
            Line(name="amax", x=x, y=floats(course.amax), role="current", end_label="amax"),
        ),
        summary=f"{course.layer}, {TENSORS.get(course.tensor, course.tensor)}: clipped at {count} of {len(x)} steps.",
    )


def _axis(low: float, high: float) -> Axis:
    """From zero while everything is of one size, else in decades."""
    if high < ONE_SIZE * low:
        return linear_axis(0.0, 1.1 * high, wanted=3, title="magnitude")
    return log_axis(low, high, title="magnitude")


def read_out(chart: ChartData, x: float) -> str:
    """`step 12: amax 3.20, scale holds 4.00`."""
    found = {line.role: at for line in chart.lines if (at := line.at(x)) is not None}
    if len(found) < 2:
        return ""
    amax, limit = found["current"], found["baseline"]
    return f"step {round(amax[0])}: amax {fmt.number(amax[1])}, scale holds {fmt.number(limit[1])}"
