"""Loss of baseline and candidate over the same training steps."""

import math
from collections.abc import Sequence

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Axis, ChartData, Line, Role, floats
from gptscope.app.viewmodels.scales import linear_axis

LABELS_APART = 0.1
"""Of the axis: curves that end closer to each other than this would write over each other's names."""
EMPTY = "Losses appear when a training run has a baseline beside it: switch Compare output on in Setup."


def build(ours: Sequence[float], theirs: Sequence[float], name: str, baseline: str) -> ChartData:
    """Both curves; what is not a number breaks a line."""
    finite = [loss for loss in (*ours, *theirs) if math.isfinite(loss)]
    if not finite:
        return ChartData(x_axis=Axis(low=0, high=1), y_axis=Axis(low=0, high=1), empty=EMPTY)
    low, high = min(finite), max(finite)
    room = 0.05 * (high - low or 1.0)
    apart = abs(_last(ours) - _last(theirs)) / (high - low or 1.0) > LABELS_APART
    lines = [_line(theirs, baseline, "baseline", label=apart), _line(ours, name, "current", label=True)]
    return ChartData(
        x_axis=linear_axis(1, max(len(ours), len(theirs), 2), wanted=6, exact=True, title="step", named=True),
        y_axis=linear_axis(low - room, high, wanted=4, title="loss, nats per token"),
        lines=tuple(line for line in lines if line.x.size),
        summary=f"Loss of {name} over {len(ours)} steps, from {fmt.number(ours[0] if ours else None)} to "
        f"{fmt.number(ours[-1] if ours else None)}.",
    )


def _last(losses: Sequence[float]) -> float:
    return next((loss for loss in reversed(losses) if math.isfinite(loss)), 0.0)


def _line(losses: Sequence[float], name: str, role: Role, *, label: bool) -> Line:
    text = f"{name} {fmt.number(losses[-1])}" if losses and label else ""
    return Line(
        name=name,
        x=floats(range(1, len(losses) + 1)),
        y=floats([loss if math.isfinite(loss) else math.nan for loss in losses]),
        role=role,
        end_label=text,
    )


def read_out(chart: ChartData, x: float) -> str:
    """`step 12: 4.31, baseline 4.30`."""
    found = {line.role: at for line in chart.lines if (at := line.at(x)) is not None}
    if "current" not in found:
        return ""
    text = f"step {round(found['current'][0])}: {fmt.number(found['current'][1])}"
    return text + (f", baseline {fmt.number(found['baseline'][1])}" if "baseline" in found else "")
