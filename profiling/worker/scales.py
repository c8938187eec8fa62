"""From a model's scale log to a record of bounded size."""

from gptscope.models.precision.fp8_linear import scale_log_of
from gptscope.models.precision.scale_log import ScaleSeries as LoggedSeries
from gptscope.models.prepare import PreparedModel
from gptscope.profiling.records import ScaleHistory, ScaleSeries
from gptscope.profiling.worker.output import Output

MOST_VALUES = 1 << 15
"""Numbers in one record: some hundred kilobytes of JSON."""
LEAST_POINTS = 4


def send_scales(prepared: PreparedModel, output: Output, run_id: str) -> None:
    """Send what the model's narrow layers have logged since the last time; nothing when it has none."""
    log = scale_log_of(prepared.model)
    logged = log.take() if log is not None else []
    if not logged:
        return
    points = max(LEAST_POINTS, MOST_VALUES // (2 * len(logged)))
    series = tuple(_record(one, points) for one in logged)
    output.emit(ScaleHistory(run_id=run_id, recipe=prepared.context.precision, series=series))


def _record(logged: LoggedSeries, points: int) -> ScaleSeries:
    """At most `points` readings, evenly spread, the last one among them."""
    every = -(-len(logged.steps) // points)
    kept = range(len(logged.steps) - 1, -1, -every)[::-1]
    return ScaleSeries(
        layer=logged.layer,
        tensor=logged.role,
        largest=logged.largest,
        steps=tuple(logged.steps[index] for index in kept),
        amax=tuple(logged.amax[index] for index in kept),
        scale=tuple(logged.scale[index] for index in kept),
    )
