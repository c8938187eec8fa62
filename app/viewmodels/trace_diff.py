"""Two traces beside each other as a table: before, after, change and ratio of everything on one level."""

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.tables import Table
from gptscope.app.viewmodels.trace_columns import NS_PER_MS, numbers, table, text
from gptscope.profiling.trace.analysis.diff import DiffRow, Level, TraceDiff
from gptscope.profiling.trace.names import short_name

LEVEL_TITLES: dict[Level, str] = {
    "kernel": "Kernels",
    "category": "Categories",
    "operator": "Operators",
    "module": "Modules",
    "step": "Steps",
}
_STATUS = {"both": "in both", "new": "new", "vanished": "vanished", "replaced": "other kernels"}


def diff_table(diff: TraceDiff) -> Table:
    """Biggest changes first; the changes add up to the difference in the total row."""
    rows = diff.rows
    ratio = [row.after_ns / row.before_ns if row.before_ns else None for row in rows]
    unit = "ms per step" if diff.per_step else "ms"
    columns = [
        text(LEVEL_TITLES[diff.level][:-1] if diff.level != "category" else "Category",
             [_name(row, diff.level) for row in rows], width=340, stretch=True),
        text("State", [_STATUS[row.status] for row in rows], width=96),
        numbers(f"Before, {unit}", [row.before_ns for row in rows], scale=NS_PER_MS, width=124),
        numbers(f"After, {unit}", [row.after_ns for row in rows], scale=NS_PER_MS, width=124),
        numbers(f"Change, {unit}", [row.change_ns for row in rows], scale=NS_PER_MS, width=128, strong=True,
                tip="After minus before", shown=fmt.signed, tone=_tone),
        numbers("After / before", ratio, width=104, shown=fmt.ratio),
        numbers("Calls before", [row.before_calls for row in rows], width=92),
        numbers("Calls after", [row.after_calls for row in rows], width=92),
    ]  # fmt: skip
    total = diff.after_ns - diff.before_ns
    footer = {
        0: f"{fmt.count(len(rows))} rows",
        2: fmt.number(diff.before_ns / NS_PER_MS),
        3: fmt.number(diff.after_ns / NS_PER_MS),
        4: fmt.signed(total / NS_PER_MS),
        5: fmt.ratio(diff.after_ns / diff.before_ns if diff.before_ns else None),
    }
    keys = [f"{number}\n{row.name}" for number, row in enumerate(rows)]
    return table(columns, keys, footer=footer, empty="Neither trace has anything on this level.", sortable=False)


def _name(row: DiffRow, level: Level) -> str:
    if level not in {"kernel", "operator"}:
        return row.name or "outside any module"
    name = short_name(row.name)
    return f"{name} → {row.other_name}" if row.other_name else name


def _tone(change: float) -> str:
    return "good" if change < 0 else "bad" if change > 0 else ""
