"""One tab below the timeline: a table, and the chart beside it whose parts are the table's rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gptscope.app.viewmodels.chart_data import ChartData
from gptscope.app.viewmodels.charts.bars import AnyChart
from gptscope.app.viewmodels.tables import Table
from gptscope.profiling.trace.analysis.linked import Linked


@dataclass(frozen=True)
class TraceChart:
    """A chart with what its header says."""

    title: str
    source: str
    """What the axes are and their units."""
    chart: AnyChart
    read_out: Callable[[ChartData, float], str] | None = None
    """For plots with lines: what stands in the header while the pointer is over them."""
    chip: str = ""
    """How far to trust it."""
    tip: str = ""
    """What else is to be said about its numbers."""


@dataclass(frozen=True)
class TracePage:
    """What a tab shows."""

    table: Table
    chart: TraceChart | None = None
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Key of a row -> from when to when in ns it leads, where finding that again would take long."""
    by_shape: "TracePage | None" = None
    """The same told apart by shapes too, where that can be chosen."""


@dataclass(frozen=True)
class TraceTab:
    """One tab: what it is called and how what it shows is made."""

    title: str
    make: Callable[[Linked], TracePage]
