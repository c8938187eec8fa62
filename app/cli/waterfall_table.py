"""Where the time of one step went, per category: baseline, candidates, and the difference, adding up exactly."""

from collections.abc import Sequence

from gptscope.app.cli.console import Cell, Column, Console, Style
from gptscope.app.viewmodels.charts.waterfall import Scale, scale_for
from gptscope.app.viewmodels.variant_names import short_names
from gptscope.profiling.metrics.waterfall import GAPS, UNATTRIBUTED, Waterfall


def print_waterfalls(console: Console, waterfalls: Sequence[Waterfall | None]) -> None:
    """One table for all candidates that have one."""
    baseline_name, *letters = short_names(len(waterfalls) + 1)
    known = [(letter, w) for letter, w in zip(letters, waterfalls, strict=True) if w is not None]
    if not known:
        return
    first = known[0][1]
    rows = [{row.name: row for row in w.rows} for _, w in known]
    names = list(dict.fromkeys(row.name for _, w in known for row in w.rows if row.name not in (GAPS, UNATTRIBUTED)))
    names += [GAPS, UNATTRIBUTED]
    scale = scale_for(max(first.baseline_ns, *(w.candidate_ns for _, w in known)))
    columns = [Column("", "left"), Column(baseline_name)]
    for letter, _ in known:
        columns += [Column(letter), Column("change")]
    table: list[list[str | Cell]] = []
    for name in names:
        baseline = next((found[name].baseline_ns for found in rows if name in found), 0)
        candidates = [found[name].candidate_ns if name in found else 0 for found in rows]
        table.append(_row(name, baseline, candidates, scale))
    table.append(_row("measured step", first.baseline_ns, [w.candidate_ns for _, w in known], scale))
    console.line()
    console.table(columns, table, f"Where the time of one step went, {scale.unit} (kernels as profiled)")


def _row(name: str, baseline_ns: int, candidates_ns: Sequence[int], scale: Scale) -> list[str | Cell]:
    cells: list[str | Cell] = [name, scale.text(baseline_ns)]
    for candidate_ns in candidates_ns:
        change = scale.change(candidate_ns - baseline_ns)
        style: Style = "" if change == "0" else "good" if candidate_ns < baseline_ns else "bad"
        cells += [scale.text(candidate_ns), Cell(change, style)]
    return cells
