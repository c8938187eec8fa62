"""The health of an opened trace in a few words for the banner, and every finding as a table."""

from collections.abc import Sequence
from typing import Literal

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.columns import counts, table, text
from gptscope.app.viewmodels.tables import Table
from gptscope.profiling.trace import HealthNote, Trace

_TITLES: dict[str, str] = {
    "truncated": "cut off",
    "repaired": "mended",
    "skipped": "left out",
    "put_aside": "put aside",
    "unfinished": "unfinished",
    "ignored": "not used",
    "metadata": "no metadata",
    "empty": "empty",
    "missing": "missing",
    "suspicious": "suspicious",
}
_NOT_RECORDED = frozenset({"missing", "ignored"})
"""What says nothing against what was recorded."""


def banner(trace: Trace, notes: Sequence[HealthNote]) -> tuple[str, Literal["good", "warn"]]:
    """What stands in the header."""
    events = f"{fmt.count(len(trace))} events"
    absent = sum(note.kind in _NOT_RECORDED for note in notes)
    kinds = list(dict.fromkeys(_TITLES[note.kind] for note in notes if note.kind not in _NOT_RECORDED))
    if not kinds:
        rest = f"{absent} thing{'s' if absent > 1 else ''} not recorded" if absent else "nothing missing"
        return f"healthy: {events}, nothing mended, {rest}", "good"
    shown = ", ".join(kinds[:3]) + (" and more" if len(kinds) > 3 else "")
    return f"{events}, {len(notes)} finding{'s' if len(notes) > 1 else ''}: {shown}", "warn"


def health_table(notes: Sequence[HealthNote]) -> Table:
    """Every finding with how often and where first."""
    columns = [
        text("Finding", [_TITLES.get(note.kind, note.kind) for note in notes], width=110),
        text("What it means", [note.message for note in notes], width=640, stretch=True),
        counts("Times", [note.count for note in notes]),
        text(
            "First at byte",
            [fmt.count(note.byte_offset) if note.byte_offset is not None else "" for note in notes],
            width=120,
            tip="In the uncompressed file",
        ),
    ]
    keys = [str(number) for number in range(len(notes))]
    return table(columns, keys, empty="Nothing was mended, left out or missing.", sortable=False)
