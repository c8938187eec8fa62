"""Tokens per second over time, with the baseline's band and what is not counted hatched."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Axis, ChartData, Floats, Level, Line
from gptscope.app.viewmodels.run_view import RunView
from gptscope.app.viewmodels.scales import linear_axis, time_axis

LEAST_SPAN_S = 5.0
WAITING = "Tokens per second appear here as soon as the first steps run."


@dataclass(frozen=True)
class Window:
    """The stretch of time that the linked time charts share."""

    zero_ns: int
    low_s: float
    high_s: float
    now_s: float

    def axis(self) -> Axis:
        """The shared time axis."""
        return time_axis(self.low_s, self.high_s)


def time_window(
    zero_ns: int | None, now_s: float | None, left_s: float | None, chosen: tuple[float, float] | None
) -> Window:
    """From 0 to the expected end while running (so that the line grows into free room), or the chosen stretch."""
    now = now_s or 0.0
    end = now + max(left_s or 0.0, 0.14 * now)
    low, high = chosen if chosen is not None else (0.0, max(end, LEAST_SPAN_S))
    return Window(zero_ns or 0, low, high, now)


def build(run: RunView | None, baseline: RunView | None, window: Window, *, live: bool) -> ChartData:
    """The chart of the current run beside its baseline."""
    x, y = run.rate.tokens_per_second(window.zero_ns) if run is not None else (np.zeros(0), np.zeros(0))
    y_axis_empty = Axis(low=0, high=1)
    if run is None or x.size == 0:
        return ChartData(x_axis=window.axis(), y_axis=y_axis_empty, empty=WAITING)
    levels, base_top = baseline_level(baseline, "rate")
    high = 1.12 * max(top_of(x, y, window), base_top)
    newest = float(y[np.flatnonzero(np.isfinite(y))[-1]])
    lines = [
        Line(
            name=run.name,
            x=x,
            y=y,
            end_label=f"{fmt.number(newest)} tok/s",
            end_note="now" if live else "last",
            live=live,
        )
    ]
    if baseline is not None and baseline.rate.revision and live_pair(run, baseline):
        bx, by = baseline.rate.tokens_per_second(window.zero_ns)
        lines.insert(0, Line(name=f"baseline {baseline.name}", x=bx, y=by, role="baseline"))
    summary = f"Tokens per second of {run.name}: now {fmt.number(newest)}."
    return ChartData(
        x_axis=window.axis(),
        y_axis=linear_axis(0, high, title="tokens per second"),
        lines=tuple(lines),
        levels=levels,
        regions=run.regions(window.zero_ns),
        summary=summary,
    )


def live_pair(run: RunView, baseline: RunView) -> bool:
    """True when both belong to one experiment, so that their clocks are the same."""
    ours, theirs = run.started, baseline.started
    return ours is not None and theirs is not None and ours.experiment_id == theirs.experiment_id


def top_of(x: Floats, y: Floats, window: Window) -> float:
    """The highest value inside the window; 0 when there is none."""
    inside = np.isfinite(y) & (x >= window.low_s) & (x <= window.high_s)
    return float(y[inside].max()) if inside.any() else 0.0


def baseline_level(baseline: RunView | None, what: Literal["rate", "bandwidth"]) -> tuple[tuple[Level, ...], float]:
    """The baseline's value as a dashed line with the p5 to p95 band of its measured steps, and the band's top."""
    if baseline is None or baseline.measured_steps == 0:
        return (), 0.0
    summary = baseline.last_summary()
    if what == "rate":
        middle = summary.tokens_per_s.value if summary.tokens_per_s is not None else None
        per_step = baseline.measured_tokens / baseline.measured_steps
    else:
        middle = summary.achieved_gbps
        per_step = baseline.measured_bytes / baseline.measured_steps / 1e9
    slow, quick = baseline.latency.quantile_ms(0.95), baseline.latency.quantile_ms(0.05)
    if middle is None or slow is None or quick is None or not math.isfinite(per_step):
        return (), 0.0
    low, high = per_step / slow * 1e3, per_step / quick * 1e3
    label = f"baseline {baseline.name} {fmt.number(middle)}" if what == "rate" else f"baseline {fmt.number(middle)}"
    return (Level(y=middle, label=label, role="baseline", low=low, high=high),), max(high, middle)


def read_out(chart: ChartData, x: float) -> str:
    """`10.4 s   56.6 tok/s   27.0   2.10x` for the panel's header."""
    current = next((line for line in chart.lines if line.role == "current"), None)
    sample = current.at(x) if current is not None else None
    if sample is None:
        return ""
    parts = [f"{fmt.number(sample[0])} s", f"{fmt.number(sample[1])} tok/s"]
    base = next((level.y for level in chart.levels if level.role == "baseline"), math.nan)
    if math.isfinite(base) and base > 0:
        parts += [f"baseline {fmt.number(base)}", fmt.ratio(sample[1] / base)]
    return "   ".join(parts)
