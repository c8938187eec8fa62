"""Any table of a trace as CSV or as numpy's npz, and all events as columns."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gptscope.profiling.export.csv import csv_text
from gptscope.profiling.export.files import ExportError, write_whole
from gptscope.profiling.export.trace_rows import rows_in
from gptscope.profiling.trace import HealthNote
from gptscope.profiling.trace.analysis import Linked
from gptscope.profiling.trace.analysis.advice import advise
from gptscope.profiling.trace.analysis.checks import health_notes
from gptscope.profiling.trace.analysis.diff import TraceDiff
from gptscope.profiling.trace.analysis.tables import TABLES, table_columns

TableForm = Literal["csv", "npz"]
Columns = dict[str, list[Any]]
EVENTS = "events"


def export_table_csv(linked: Linked, table: str, path: Path, *, overwrite: bool = False) -> Path:
    """Write one table as CSV; `ExportError` as `write_whole`, or when there is no such table."""
    return _write("csv", named_columns(linked, table), path, overwrite=overwrite)


def export_table_npz(linked: Linked, table: str, path: Path, *, overwrite: bool = False) -> Path:
    """Write one table as arrays, one per column, all of one length; unknown numbers are NaN.

    The table of events has numbers instead of names; `names`, `categories`, `processes` and `threads` say what they
    mean.
    """
    if table == EVENTS:
        return _write_arrays(event_arrays(linked), path, overwrite=overwrite)
    return _write("npz", named_columns(linked, table), path, overwrite=overwrite)


def export_difference(diff: TraceDiff, form: TableForm, path: Path, *, overwrite: bool = False) -> Path:
    """Write a comparison; `ExportError` as `write_whole`, or when neither trace has anything on its level.

    Every row says in `notes` what is not known, and why.
    """
    columns = table_columns(diff.rows)
    if not columns:
        why = " ".join(diff.notes) or "Neither trace has anything for it."
        raise ExportError(f"The comparison by {diff.level} is empty. {why}")
    around: Columns = {"per_step": [diff.per_step] * len(diff.rows), "notes": [" ".join(diff.notes)] * len(diff.rows)}
    return _write(form, columns | around, path, overwrite=overwrite)


def _write(form: TableForm, columns: Columns, path: Path, *, overwrite: bool) -> Path:
    if form == "npz":
        return _write_arrays({name: _array(values) for name, values in columns.items()}, path, overwrite=overwrite)
    rows = list(zip(*columns.values(), strict=True))
    return write_whole(path, [csv_text(tuple(columns), rows).encode()], overwrite=overwrite)


def _write_arrays(arrays: dict[str, Any], path: Path, *, overwrite: bool) -> Path:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return write_whole(path, [buffer.getvalue()], overwrite=overwrite)


def named_columns(linked: Linked, table: str) -> Columns:
    """The columns of a table.

    Raises:
        ExportError: There is no table of this name, or it has no rows.
    """
    if table in _OWN_COLUMNS:
        return _OWN_COLUMNS[table](linked)
    if table not in TABLES:
        raise ExportError(f"There is no table {table!r}; there are {', '.join(TABLE_NAMES)}.")
    columns = table_columns(TABLES[table](linked))
    if not columns:
        raise ExportError(f"The table {table} is empty: the trace has nothing for it.")
    return columns


def _advice_columns(linked: Linked) -> Columns:
    found = advise(linked)
    return {
        "topic": [one.topic for one in found],
        "sentence": [one.sentence for one in found],
        "weight": [one.weight for one in found],
        "numbers": [json.dumps(one.numbers) for one in found],
    }


def _health_columns(linked: Linked) -> Columns:
    notes = health_notes(linked)
    return {name: [getattr(note, name) for note in notes] for name in HealthNote.__struct_fields__}


def _event_columns(linked: Linked) -> Columns:
    trace = linked.trace
    rows = rows_in(trace, linked.range_ns)
    tracks = [trace.tracks[i] for i in trace.track[rows].tolist()]
    return {
        "name": [trace.names[i] for i in trace.name[rows].tolist()],
        "category": [trace.categories[i] for i in trace.category[rows].tolist()],
        "process": [t.pid for t in tracks],
        "thread": [t.tid for t in tracks],
        "start_ns": trace.start_ns[rows].tolist(),
        "duration_ns": trace.duration_ns[rows].tolist(),
        "unfinished": trace.unfinished[rows].tolist(),
    }


def event_arrays(linked: Linked) -> dict[str, Any]:
    """All events as arrays of numbers, with what the numbers mean."""
    trace = linked.trace
    rows = rows_in(trace, linked.range_ns)
    columns = ("name", "category", "track", "start_ns", "duration_ns", "unfinished", "correlation", "external_id")
    arrays = {column: getattr(trace, column)[rows] for column in (*columns, "device", "stream", "moved_bytes")}
    arrays["names"] = np.array(trace.names, dtype=str)
    arrays["categories"] = np.array(trace.categories, dtype=str)
    arrays["processes"] = np.array([str(t.pid) for t in trace.tracks], dtype=str)
    arrays["threads"] = np.array([str(t.tid) for t in trace.tracks], dtype=str)
    return arrays


def _array(values: list[Any]) -> Any:
    if any(isinstance(v, str) for v in values):
        return np.array(["" if v is None else str(v) for v in values], dtype=str)
    if any(v is None for v in values):
        return np.array([np.nan if v is None else float(v) for v in values], dtype=np.float64)
    return np.array(values)


_OWN_COLUMNS: dict[str, Callable[[Linked], Columns]] = {
    "advice": _advice_columns,
    "health": _health_columns,
    EVENTS: _event_columns,
}
"""Tables that are no rows of one analysis; without rows they are written with their heading alone."""
TABLE_NAMES = (*TABLES, *_OWN_COLUMNS)
