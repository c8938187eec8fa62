"""Two traces beside each other: before, after, change and ratio of everything on one level, and the biggest changes."""

from dataclasses import dataclass

import numpy as np

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.charts.bars import BarChart, BarPart, BarRow, no_bars
from gptscope.app.viewmodels.columns import NS_PER_MS, many, numbers, table, text
from gptscope.app.viewmodels.scales import linear_axis
from gptscope.app.viewmodels.tables import Table
from gptscope.app.viewmodels.trace_page import TraceChart
from gptscope.profiling.trace.analysis.diff import DiffRow, Level, TraceDiff
from gptscope.profiling.trace.names import short_name

LEVEL_TITLES: dict[Level, str] = {
    "kernel": "Kernels",
    "category": "Categories",
    "operator": "Operators",
    "module": "Modules",
    "step": "Steps",
}
_CHANGE = 4
"""Place of the column."""
_STATUS = {"both": "in both", "new": "new", "vanished": "vanished", "replaced": "other kernels",
           "unrecorded": "n/a: not recorded"}  # fmt: skip


@dataclass(frozen=True)
class DiffPage:
    """A comparison on one level, and its table."""

    diff: TraceDiff
    table: Table

    @property
    def about(self) -> str:
        """What is not known on this level, and why."""
        return " ".join(self.diff.notes)


def diff_page(diff: TraceDiff) -> DiffPage:
    """What the tab shows on a level."""
    return DiffPage(diff, diff_table(diff))


def diff_table(diff: TraceDiff) -> Table:
    """Biggest changes first; the changes add up to the difference in the total row."""
    rows = diff.rows
    ratio = [_ratio(row) for row in rows]
    columns = [
        text(LEVEL_TITLES[diff.level][:-1] if diff.level != "category" else "Category",
             [_name(row, diff.level) for row in rows], width=340, stretch=True),
        text("State", [_STATUS[row.status] for row in rows], width=120),
        numbers("Before ms", [row.before_ns for row in rows], scale=NS_PER_MS, width=96),
        numbers("After ms", [row.after_ns for row in rows], scale=NS_PER_MS, width=96),
        numbers("Change ms", [row.change_ns for row in rows], scale=NS_PER_MS, width=104, strong=True,
                tip="After minus before", shown=fmt.signed, tone=_tone),
        numbers("After / before", ratio, width=104, shown=fmt.ratio),
        numbers("Calls before", [row.before_calls for row in rows], width=92),
        numbers("Calls after", [row.after_calls for row in rows], width=92),
    ]  # fmt: skip
    footer = {
        0: many(len(rows), "row") + (", times per step" if diff.per_step else ""),
        2: fmt.number(_ms(diff.before_ns)),
        3: fmt.number(_ms(diff.after_ns)),
        4: fmt.signed(_ms(diff.change_ns)),
        5: fmt.ratio(_ratio(diff)),
    }
    keys = [f"{diff.level}\n{number}\n{row.name}" for number, row in enumerate(rows)]
    empty = " ".join(diff.notes) or "Neither trace has anything on this level."
    return table(columns, keys, footer=footer, empty=empty, sortable=False)


def changes(table: Table) -> TraceChart:
    """The rows with the biggest changes as bars: what takes less time in the second trace, and what takes more."""
    names, change = table.columns[0].values, table.columns[_CHANGE].values
    assert isinstance(change, np.ndarray)
    rows = []
    for name, ms, key in zip(names, change.tolist(), table.keys, strict=True):
        if ms and not np.isnan(ms):
            text_of = f"{fmt.signed(ms)} ms"
            part = BarPart(value=abs(ms), look=_tone(ms), key=key, label=f"{name}: {text_of}")
            rows.append(BarRow(name=str(name), key=key, text=text_of, parts=(part,)))
    if not rows:
        return TraceChart("Changes", "", no_bars("Nothing takes more or less time than before."))
    shown = BarChart(
        axis=linear_axis(0, max(row.length for row in rows), unit="ms", title="milliseconds", exact=True),
        rows=tuple(rows),
        legend=(("good", "less time than before"), ("bad", "more time than before")),
        summary="; ".join(f"{row.name} {row.text}" for row in rows[:8]),
    )
    return TraceChart("Biggest changes", "ms, after minus before", shown)


def _name(row: DiffRow, level: Level) -> str:
    if level not in {"kernel", "operator"}:
        return row.name
    name = short_name(row.name)
    return f"{name} → {row.other_name}" if row.other_name else name


def _ratio(row: DiffRow | TraceDiff) -> float | None:
    return None if row.after_ns is None or not row.before_ns else row.after_ns / row.before_ns


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / NS_PER_MS


def _tone(change: float) -> str:
    return "good" if change < 0 else "bad" if change > 0 else ""
