"""Memory of the worker over time, with what the weights alone take."""

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Axis, ChartData, Level, Line
from gptscope.app.viewmodels.experiment_view import Sensors
from gptscope.app.viewmodels.run_view import RunView
from gptscope.app.viewmodels.scales import memory_axis, time_axis

WAITING = "Memory over time appears here once a run has been sampled."


def build(run: RunView | None, sensors: Sensors, zero_ns: int | None) -> ChartData:
    """Resident memory in MB; every worker of the experiment shares the time axis."""
    x, y = sensors.rss_bytes.points(zero_ns or 0)
    if run is None or x.size < 2:
        return ChartData(x_axis=Axis(low=0, high=1), y_axis=Axis(low=0, high=1), empty=WAITING)
    y = y / 1e6
    levels = []
    if run.loaded is not None:
        weights = run.loaded.model.weight_bytes / 1e6
        levels.append(Level(y=weights, label=f"weights {_size(weights)}", role="context"))
    last = float(y[-1])
    return ChartData(
        x_axis=time_axis(max(0.0, float(x[0])), float(x[-1]) * 1.12),
        y_axis=memory_axis(1.15 * float(y.max())),
        lines=(Line(name="resident memory", x=x, y=y, end_label=_size(last)),),
        levels=tuple(levels),
        summary=f"Memory of the worker, loading and profiling included: {_size(last)} at the end, at most "
        f"{_size(float(y.max()))}. Peak memory is of the measured steps alone.",
    )


def _size(megabytes: float) -> str:
    return fmt.quantity(megabytes * 1e6, "bytes")


def read_out(chart: ChartData, x: float) -> str:
    """`10.4 s   523 MB`."""
    sample = chart.lines[0].at(x) if chart.lines else None
    return f"{fmt.number(sample[0])} s   {_size(sample[1])}" if sample is not None else ""
