"""Any table of a trace as CSV or as numpy's npz, and all events as columns."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from gptscope.profiling.export.csv import csv_text
from gptscope.profiling.export.files import ExportError, write_whole
from gptscope.profiling.export.trace_rows import rows_in
from gptscope.profiling.trace.analysis import Linked
from gptscope.profiling.trace.analysis.tables import TABLES, table_columns

EVENTS = "events"
TABLE_NAMES = (*TABLES, EVENTS)


def export_table_csv(linked: Linked, table: str, path: Path, *, overwrite: bool = False) -> Path:
    """Write one table as CSV; `ExportError` as `write_whole`, or when there is no such table."""
    columns = named_columns(linked, table)
    rows = list(zip(*columns.values(), strict=True))
    return write_whole(path, [csv_text(tuple(columns), rows).encode()], overwrite=overwrite)


def export_table_npz(linked: Linked, table: str, path: Path, *, overwrite: bool = False) -> Path:
    """Write one table as arrays, one per column, all of one length; unknown numbers are NaN.

    The table of events has numbers instead of names; `names`, `categories`, `processes` and `threads` say what they
    mean.
    """
    buffer = io.BytesIO()
    arrays = event_arrays(linked) if table == EVENTS else _arrays(named_columns(linked, table))
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return write_whole(path, [buffer.getvalue()], overwrite=overwrite)


def named_columns(linked: Linked, table: str) -> dict[str, list[Any]]:
    """The columns of a table.

    Raises:
        ExportError: There is no table of this name, or it has no rows.
    """
    if table == EVENTS:
        return _event_columns(linked)
    if table not in TABLES:
        raise ExportError(f"There is no table {table!r}; there are {', '.join(TABLE_NAMES)}.")
    columns = table_columns(TABLES[table](linked))
    if not columns:
        raise ExportError(f"The table {table} is empty: the trace has nothing for it.")
    return columns


def _event_columns(linked: Linked) -> dict[str, list[Any]]:
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


def _arrays(columns: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: _array(values) for name, values in columns.items()}


def _array(values: list[Any]) -> Any:
    if any(isinstance(v, str) for v in values):
        return np.array(["" if v is None else str(v) for v in values], dtype=str)
    if any(v is None for v in values):
        return np.array([np.nan if v is None else float(v) for v in values], dtype=np.float64)
    return np.array(values)
