"""How the error grows through the layers: signal to error of the residual stream behind each of them."""

import math
from collections.abc import Sequence
from dataclasses import replace

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Axis, ChartData, Line, Role, floats
from gptscope.app.viewmodels.scales import linear_axis, nice_step
from gptscope.profiling.records import LayerErrors

EMPTY = "Appears with the layer map: switch it on in Setup, under Output."
ROOM_FOR_VALUE = 0.25
"""Of the axis."""
NO_ERROR = "Nothing was rounded: the stream behind every layer is the same as the reference's."


def build(chosen: LayerErrors | None, name: str, others: Sequence[tuple[str, LayerErrors]] = ()) -> ChartData:
    """The chosen run as the current line, other mapped runs as context."""
    nothing = Axis(low=0, high=1)
    if chosen is None or not chosen.stream_sqnr_db:
        return ChartData(x_axis=nothing, y_axis=nothing, empty=EMPTY)
    lines = [_line(other, title, "other") for title, other in others if other.stream_sqnr_db]
    lines.append(_line(chosen, name, "current"))
    values = [float(y) for line in lines for y in line.y if math.isfinite(y)]
    if not values:
        return ChartData(x_axis=nothing, y_axis=nothing, empty=NO_ERROR)
    count = max(line.x.size for line in lines)
    step = nice_step(10)
    low = step * math.floor(min(0.0, *values) / step) if min(values) < 0 else 10 * math.floor(min(values) / 10)
    last = [value for value in chosen.stream_sqnr_db if value is not None]
    return ChartData(
        x_axis=_layer_axis(count),
        y_axis=linear_axis(low, max(values), wanted=5, title="signal to error, dB"),
        lines=tuple(lines),
        summary=f"Signal to error falls to {fmt.number(last[-1])} dB behind the last layer." if last else "",
    )


def _layer_axis(count: int) -> Axis:
    """One tick per some layers, and room for the curve's value behind its end."""
    last = max(count - 1, 1)
    axis = linear_axis(0, last, wanted=6, exact=True, title="layer")
    whole = tuple((value, f"{value:.0f}") for value, _ in axis.ticks if value == round(value))
    return replace(axis, named=True, high=(1 + ROOM_FOR_VALUE) * last, ticks=whole)


def _line(errors: LayerErrors, name: str, role: Role) -> Line:
    ys = [math.nan if value is None else value for value in errors.stream_sqnr_db]
    known = [y for y in ys if math.isfinite(y)]
    label = f"{name} {fmt.number(known[-1])} dB" if known else ""
    return Line(name=name, x=floats(range(len(ys))), y=floats(ys), role=role, end_label=label)


def read_out(chart: ChartData, x: float) -> str:
    """`layer 7: 31.2 dB`."""
    for line in chart.lines:
        at = line.at(round(x)) if line.role == "current" else None
        if at is not None:
            return f"layer {round(at[0])}: {fmt.number(at[1])} dB"
    return ""
