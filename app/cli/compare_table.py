"""Baseline and candidates side by side: one row per number, a ratio beside each candidate."""

from collections.abc import Sequence

from gptscope.app.cli.console import Cell, Column, Console
from gptscope.app.viewmodels import formatting as f
from gptscope.app.viewmodels.compare_rows import ROWS, Row, verdict_tone
from gptscope.app.viewmodels.variant_names import short_names
from gptscope.profiling.metrics.run_summary import RunSummary


def print_table(console: Console, summaries: Sequence[RunSummary]) -> None:
    """One column per variant and, for each candidate, one with its ratio to the baseline."""
    baseline = summaries[0]
    first, *letters = short_names(len(summaries))
    columns = [Column("", "left"), Column(first)]
    for letter in letters:
        columns += [Column(letter), Column("ratio")]
    rows = []
    for row in ROWS:
        if baseline.headline not in row.workloads:
            continue
        values = [row.value(summary) for summary in summaries]
        if not any(values):  # unknown or zero everywhere, such as a compile time when nothing was compiled
            continue
        shown = f.column(values, row.family)
        cells: list[str | Cell] = [f"{row.title}, {shown.unit}".removesuffix(", "), shown.texts[0]]
        for value, text in zip(values[1:], shown.texts[1:], strict=True):
            cells += [text, _ratio(value, values[0], row)]
        rows.append(cells)
    console.table(columns, rows)


def _ratio(value: float | None, baseline: float | None, row: Row) -> Cell:
    if value is None or not baseline:
        return Cell(f.unknown())
    ratio = value / baseline
    return Cell(f.ratio(ratio), verdict_tone(row, ratio))
