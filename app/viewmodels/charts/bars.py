"""Bars for names and columns over an order, both stacked, as plain values; each part leads back to a table's row."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from gptscope.app.viewmodels.chart_data import Axis, ChartData

Look = str
"""A kernel category, the same with `:faint` behind it, a colour token, `hatch` (waiting) or `hollow` (not known)."""
NO_AXIS = Axis(low=0, high=1)


@dataclass(frozen=True, kw_only=True)
class BarPart:
    """One stretch of a bar; `key` is the row that it stands for in the table beside the chart."""

    value: float
    look: Look
    key: str
    label: str


@dataclass(frozen=True, kw_only=True)
class BarRow:
    """One name with its bar; `text` is the number behind it."""

    name: str
    key: str
    text: str
    parts: tuple[BarPart, ...]

    @property
    def length(self) -> float:
        """Of the whole bar."""
        return sum(part.value for part in self.parts)


@dataclass(frozen=True, kw_only=True)
class BarChart:
    """Bars below each other, in order; those without room are left out and counted."""

    axis: Axis
    rows: tuple[BarRow, ...] = ()
    legend: tuple[tuple[Look, str], ...] = ()
    empty: str = ""
    summary: str = ""


@dataclass(frozen=True, kw_only=True)
class ColumnLayer:
    """One part of all columns, from the bottom up."""

    name: str
    look: Look
    heights: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class ColumnChart:
    """Columns beside each other at 0, 1, 2 ...; `ticks` of the x axis stand at places among them."""

    x_axis: Axis
    y_axis: Axis
    keys: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    """What is told about each column."""
    layers: tuple[ColumnLayer, ...] = ()
    legend: tuple[tuple[Look, str], ...] = ()
    empty: str = ""
    summary: str = ""


AnyChart = ChartData | BarChart | ColumnChart


def no_bars(reason: str) -> BarChart:
    """The sentence why there is nothing to draw."""
    return BarChart(axis=NO_AXIS, empty=reason)


def no_columns(reason: str) -> ColumnChart:
    """The sentence why there is nothing to draw."""
    return ColumnChart(x_axis=NO_AXIS, y_axis=NO_AXIS, empty=reason)


def no_plot(reason: str) -> ChartData:
    """The sentence why there is nothing to draw."""
    return ChartData(x_axis=NO_AXIS, y_axis=NO_AXIS, empty=reason)


def bars_csv(chart: BarChart | ColumnChart) -> str:
    """One row per part: bar, part, value (a part that has no size is left out)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if isinstance(chart, BarChart):
        writer.writerow(["bar", "part", chart.axis.title or "value"])
        for row in chart.rows:
            writer.writerows([row.name, part.label, repr(part.value)] for part in row.parts if part.value)
        return out.getvalue()
    writer.writerow(["column", "part", chart.y_axis.title or "value"])
    for place, label in enumerate(chart.labels):
        writer.writerows([label, one.name, repr(float(one.heights[place]))] for one in chart.layers)
    return out.getvalue()
