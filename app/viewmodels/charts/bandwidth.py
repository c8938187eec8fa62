"""Modelled memory bandwidth over time against the measured peak."""

import numpy as np

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Axis, ChartData, Level, Line
from gptscope.app.viewmodels.charts.tokens_per_second import Window, baseline_level, top_of
from gptscope.app.viewmodels.run_view import RunView
from gptscope.app.viewmodels.scales import linear_axis
from gptscope.profiling.metrics.bytes_model import StepBytes
from gptscope.profiling.metrics.mfu_mbu import memory_peak_gbps
from gptscope.profiling.records import Peaks

WAITING = "Bytes moved per second appear here as soon as the first steps run."
NO_MODEL = "n/a: the byte model does not know this precision."


def build(
    run: RunView | None, baseline: RunView | None, peaks: Peaks | None, window: Window, *, live: bool
) -> ChartData:
    """The chart of the current run."""
    x, y = run.rate.gigabytes_per_second(window.zero_ns) if run is not None else (np.zeros(0), np.zeros(0))
    known = np.flatnonzero(np.isfinite(y))
    if run is None or known.size == 0:
        empty = WAITING if x.size == 0 else NO_MODEL
        return ChartData(x_axis=window.axis(), y_axis=Axis(low=0, high=1), empty=empty)
    newest = float(y[known[-1]])
    levels, top = baseline_level(baseline, "bandwidth")
    peak, _ = memory_peak_gbps(peaks)
    note, top = "", max(top, top_of(x, y, window))
    if peak is not None:
        levels = (*levels, Level(y=peak, label=f"measured peak {fmt.number(peak)} GB/s", role="peak"))
        note = fmt.of_peak(newest / peak)
        top = max(top, peak)
    line = Line(
        name=run.name,
        x=x,
        y=y,
        end_label=f"{fmt.number(newest)} GB/s",
        end_note=f"{note} of peak" if note else "",
        live=live,
    )
    return ChartData(
        x_axis=window.axis(),
        y_axis=linear_axis(0, 1.1 * top, title="GB/s, modelled"),
        lines=(line,),
        levels=levels,
        summary=f"Modelled memory bandwidth: now {fmt.number(newest)} GB/s.",
    )


def read_out(chart: ChartData, x: float) -> str:
    """`10.4 s   16.2 GB/s   34 % of peak`."""
    sample = chart.lines[0].at(x) if chart.lines else None
    if sample is None:
        return ""
    text = f"{fmt.number(sample[0])} s   {fmt.number(sample[1])} GB/s"
    peak = next((level.y for level in chart.levels if level.role == "peak"), None)
    return f"{text}   {fmt.percent(sample[1] / peak)} of peak" if peak else text


def bytes_parts(step: StepBytes | None) -> tuple[tuple[str, float], ...]:
    """What one step's bytes consist of, largest group first as the bar under the chart shows them."""
    if step is None:
        return ()
    parts = (
        ("weights", step.weights),
        ("KV", step.kv_read + step.kv_written),
        ("activations", step.activations),
        ("gradients", step.gradients),
        ("optimizer", step.optimizer),
    )
    return tuple((name, value) for name, value in parts if value > 0)
