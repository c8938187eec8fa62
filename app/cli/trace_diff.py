"""Two traces side by side, for people and for programs."""

from pathlib import Path

import msgspec

from gptscope.app.cli.console import Cell, Column, Style
from gptscope.app.cli.json_output import JsonOutput
from gptscope.app.viewmodels import formatting as f
from gptscope.profiling.trace.analysis import DiffRow, Level, Linked, diff_traces
from gptscope.profiling.trace.names import short_name

Named = tuple[Path, Linked]
_STATUS = {"both": "", "unrecorded": "n/a"}


def print_diff(output: JsonOutput, before: Named, after: Named, level: Level, top: int) -> None:
    """The biggest changes first, all work at the end, and below it what is not known."""
    console = output.console()
    diff = diff_traces(before[1], after[1], level)
    rows = [_cells(row) for row in diff.rows[:top]]
    rows.append(["all", "", _ms(diff.before_ns), _ms(diff.after_ns), _change(diff.change_ns, toned=False), ""])
    columns = [Column(level, "left", name=True), Column("", "left"), Column("before"), Column("after")]
    per = " per step" if diff.per_step else "" if level == "step" else ", whole traces"
    console.table([*columns, Column("change"), Column("calls")], rows, f"{before[0]} → {after[0]}, ms{per}")
    if len(diff.rows) > top:
        console.line(f"  {f.count(len(diff.rows) - top)} more", "dim")
    for note in diff.notes:
        console.line(f"  {note}", "warn")
    names = {"before": str(before[0]), "after": str(after[0])}
    output.write("trace-diff", {**names, "diff": msgspec.to_builtins(diff)})


def _cells(row: DiffRow) -> list[str | Cell]:
    name = " → ".join(short_name(one) for one in (row.name, row.other_name) if one)
    times = (_ms(row.before_ns), _ms(row.after_ns), _change(row.change_ns))
    calls = [_calls(one) for one in dict.fromkeys((row.before_calls, row.after_calls))]
    return [name, _STATUS.get(row.status, row.status), *times, " → ".join(calls)]


def _change(ns: float | None, *, toned: bool = True) -> Cell:
    tone: Style = "good" if ns and ns < 0 else "bad" if ns and ns > 0 else ""
    return Cell(f.signed(None if ns is None else ns / 1e6), tone if toned else "")


def _calls(calls: float | None) -> str:
    return "n/a" if calls is None else f"{calls:g}"


def _ms(ns: float | None) -> str:
    return f.number(None if ns is None else ns / 1e6)
