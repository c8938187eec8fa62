"""How long steps took: a histogram with p50, p95, p99 and the baseline's outline."""

import numpy as np

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.cards import main_distribution
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
    for value, name in zip(_percentiles_ms(run), ("p50", "p95", "p99"), strict=True):
        marks.append(Mark(x=value, label=f"{name} {fmt.number(value)}"))
    if len(shown) > 1:
        value = _percentiles_ms(shown[1])[0]
        marks.append(Mark(x=value, label=f"baseline p50 {fmt.number(value)}", role="baseline"))
    words = ", ".join(mark.label for mark in marks)
    return ChartData(
        x_axis=axis,
        y_axis=Axis(low=0, high=1.05 * top),
        bars=tuple(bars),
        marks=tuple(marks),
        summary=f"Milliseconds per step: {words}.",
    )


def _percentiles_ms(run: RunView) -> tuple[float, float, float]:
    """p50, p95, p99: the exact ones of the latency card, or the histogram's while a slice is still running."""
    exact = main_distribution(run.summary())
    if exact is not None and exact.count == run.latency.total:
        return exact.p50_ms, exact.p95_ms, exact.p99_ms
    p50, p95, p99 = (run.latency.quantile_ms(fraction) or 0.0 for fraction in (0.5, 0.95, 0.99))
    return p50, p95, p99


def source(run: RunView | None) -> str:
    """`ms, 1 420 steps` for the panel's header."""
    return f"ms, {fmt.count(run.latency.total)} steps" if run is not None and run.latency.total else "ms"
