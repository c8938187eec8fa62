"""How long steps took: a histogram with p50, p95, p99 and the baseline's outline."""

import numpy as np

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Axis, Bars, ChartData, Mark
from gptscope.app.viewmodels.run_view import RunView
from gptscope.app.viewmodels.scales import linear_axis

BINS = 56
WAITING = "The spread of step times appears here once steps are measured."
TITLES = {"decode": "Latency per token", "prefill": "Latency per prompt", "train": "Time per step"}


def build(run: RunView | None, baseline: RunView | None) -> ChartData:
    """Histogram of the measured steps; the x range holds the middle 99 % of both runs."""
    flat = Axis(low=0, high=1)
    if run is None or run.latency.total == 0:
        return ChartData(x_axis=flat, y_axis=flat, empty=WAITING)
    shown = [run] + ([baseline] if baseline is not None and baseline.latency.total else [])
    lows = [one.latency.quantile_ms(0.005) or 0.0 for one in shown]
    highs = [one.latency.quantile_ms(0.99) or 0.0 for one in shown]
    low, high = min(lows), max(highs)
    pad = max(0.08 * (high - low), 0.04 * high)
    axis = linear_axis(max(0.0, low - pad), high + pad, wanted=5, unit="ms", title="milliseconds", exact=True)
    edges = np.linspace(axis.low, axis.high, BINS + 1)
    bars, marks = [], []
    heights = run.latency.binned(edges)
    top = float(heights.max())
    if len(shown) > 1:
        base_heights = shown[1].latency.binned(edges)
        used = np.flatnonzero(base_heights > 0)
        first, last = int(used[0]), int(used[-1]) + 1
        bars.append(
            Bars(name="baseline", edges=edges[first : last + 1], heights=base_heights[first:last], role="baseline")
        )
        top = max(top, float(base_heights.max()))
    bars.append(Bars(name=run.name, edges=edges, heights=heights))
    for fraction, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
        value = run.latency.quantile_ms(fraction)
        if value is not None:
            marks.append(Mark(x=value, label=f"{name} {fmt.number(value)}"))
    if len(shown) > 1:
        value = shown[1].latency.quantile_ms(0.5)
        assert value is not None
        marks.append(Mark(x=value, label=f"baseline p50 {fmt.number(value)}", role="baseline"))
    words = ", ".join(mark.label for mark in marks)
    return ChartData(
        x_axis=axis,
        y_axis=Axis(low=0, high=1.05 * top),
        bars=tuple(bars),
        marks=tuple(marks),
        summary=f"Milliseconds per step: {words}.",
    )


def source(run: RunView | None) -> str:
    """`ms, 1 420 steps` for the panel's header."""
    return f"ms, {fmt.count(run.latency.total)} steps" if run is not None and run.latency.total else "ms"
