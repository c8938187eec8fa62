"""A trace as strict Chrome JSON that Perfetto and chrome://tracing open without losing an event.

Text is escaped, there is no inf or nan, times have all their digits, and what viewers would drop or mistake is written
so that they do not: events that cross others get tracks of their own, times that a double does not hold count from
`baseTimeNanoseconds` (as Kineto writes them), and an event without an end only begins. Which tracks were made is
written too, so that our reader puts these events back.
"""

import gzip
import io
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from gptscope.profiling.export.files import write_whole
from gptscope.profiling.export.own_tracks import OwnTracks
from gptscope.profiling.export.trace_rows import nesting_lanes, rows_in
from gptscope.profiling.trace import Trace
from gptscope.profiling.trace.own_exports import OVERLAPPING_KEY

_BLOCK = 2000
"""Events that are put into one piece of text."""
_EXACT_NS = 2**52
"""Later than this a viewer that reads microseconds as a double is off by nanoseconds."""
_SECOND_NS = 1_000_000_000
_encode = msgspec.json.Encoder().encode


def export_perfetto(
    trace: Trace, path: Path, range_ns: tuple[int, int] | None = None, *, overwrite: bool = False
) -> Path:
    """Write a trace, or a range of it; gzipped when the name ends in `.gz`.

    Raises:
        ExportError: The file cannot be written.
    """
    pieces = perfetto_json(trace, range_ns)
    return write_whole(path, gzipped(pieces) if path.name.endswith(".gz") else pieces, overwrite=overwrite)


def perfetto_json(
    trace: Trace, range_ns: tuple[int, int] | None = None, categories: dict[str, str] | None = None
) -> Iterator[bytes]:
    """The text, piece by piece.

    Args:
        trace: From `open_trace`; its file is read again for the arguments.
        range_ns: Only what lies in this time.
        categories: Other names for some categories, for readers that know only old ones.
    """
    rows = rows_in(trace, range_ns)
    lanes = nesting_lanes(trace, rows)
    own = OwnTracks(trace, rows, lanes)
    head = {**trace.metadata, "displayTimeUnit": trace.metadata.get("displayTimeUnit", "ms")}
    head.pop("traceEvents", None)
    made = own.made_threads()
    if made:
        head[OVERLAPPING_KEY] = made
    base_ns = _base_ns(trace)
    if base_ns:
        before = head.get("baseTimeNanoseconds")
        head["baseTimeNanoseconds"] = base_ns + (before if isinstance(before, int) else 0)
    yield _encode(head)[:-1] + b',"traceEvents":[\n'
    first = True
    slices = _slices(trace, zip(rows.tolist(), lanes.tolist(), strict=True), own, categories or {}, base_ns)
    beside = (make(trace, range_ns, own, base_ns) for make in (_instants, _counters, _flows))
    for block in _blocks(chain(own.metadata(), slices, chain.from_iterable(beside))):
        yield (b"" if first else b",\n") + b",\n".join(block)
        first = False
    yield b"\n]}\n"


def _base_ns(trace: Trace) -> int:
    """What is taken off all times; 0 where a double holds them: early ones, and whole microseconds."""
    columns = (trace.start_ns, trace.instants.time_ns, trace.counters.time_ns, trace.flows.time_ns)
    filled = [column for column in columns if column.size]
    exact = all(int(np.abs(c).max()) < _EXACT_NS or not (c % 1000).any() for c in filled)
    if exact:
        return 0
    first = min(int(column.min()) for column in filled)
    return first - first % _SECOND_NS


def _blocks(events: Iterator[dict[str, Any]]) -> Iterator[list[bytes]]:
    block: list[bytes] = []
    for event in events:
        block.append(_encode(event))
        if len(block) == _BLOCK:
            yield block
            block = []
    if block:
        yield block


def gzipped(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same text packed."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=6, mtime=0) as packed:
        for piece in pieces:
            packed.write(piece)
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def time_us(ns: int) -> msgspec.Raw:
    """Microseconds with every digit."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    whole, rest = divmod(ns, 1000)
    return msgspec.Raw(f"{sign}{whole}.{rest:03d}".encode() if rest else f"{sign}{whole}".encode())


def _slices(
    trace: Trace, placed: Iterable[tuple[int, int]], own: OwnTracks, categories: dict[str, str], base_ns: int
) -> Iterator[dict[str, Any]]:
    """Rows with their lanes as events."""
    category_names = [categories.get(name, name) for name in trace.categories]
    for row, lane in placed:
        unfinished = bool(trace.unfinished[row])
        event: dict[str, Any] = {
            "ph": "B" if unfinished else "X",
            "cat": category_names[trace.category[row]],
            "name": trace.names[trace.name[row]],
            **own.place(int(trace.track[row]), lane),
            "ts": time_us(int(trace.start_ns[row]) - base_ns),
        }
        if not unfinished:
            event["dur"] = time_us(int(trace.duration_ns[row]))
        args = trace.args(row)
        if args:
            event["args"] = args
        yield event


def _inside(time_ns: Any, range_ns: tuple[int, int] | None) -> list[int]:
    if range_ns is None:
        return list(range(time_ns.size))
    found: list[int] = np.flatnonzero((time_ns >= range_ns[0]) & (time_ns < range_ns[1])).tolist()
    return found


def _instants(trace: Trace, range_ns: tuple[int, int] | None, own: OwnTracks, base_ns: int) -> Iterator[dict[str, Any]]:
    instants, reader = trace.instants, trace.args_reader
    for i in _inside(instants.time_ns, range_ns):
        yield {
            "ph": "i",
            "cat": trace.categories[instants.category[i]],
            "name": trace.names[instants.name[i]],
            **own.moment(int(instants.track[i])),
            "ts": time_us(int(instants.time_ns[i]) - base_ns),
            "args": {} if reader is None else reader.of(int(instants.place[i])),
        }


def _counters(trace: Trace, range_ns: tuple[int, int] | None, own: OwnTracks, base_ns: int) -> Iterator[dict[str, Any]]:
    counters = trace.counters
    for i in _inside(counters.time_ns, range_ns):
        pid, name, key = counters.series[counters.serie[i]]
        where = {} if pid is None else {"pid": own.pid(pid)}
        value, time = float(counters.value[i]), time_us(int(counters.time_ns[i]) - base_ns)
        yield {"ph": "C", "name": name, **where, "ts": time, "args": {key: value}}


def _flows(trace: Trace, range_ns: tuple[int, int] | None, own: OwnTracks, base_ns: int) -> Iterator[dict[str, Any]]:
    flows = trace.flows
    steps = _flow_steps(trace)
    inside = np.array(_inside(flows.time_ns, range_ns), dtype=np.int64)
    # a beginning stands before an end of the same moment, else viewers find no beginning
    for i in inside[np.lexsort((~flows.begins[inside], flows.time_ns[inside]))].tolist():
        number, time = int(flows.track[i]), int(flows.time_ns[i])
        category = flows.categories[flows.category[i]]
        begins = bool(flows.begins[i])
        event: dict[str, Any] = {
            "ph": "s" if begins else "t" if steps[i] else "f",
            "cat": category,
            "name": category,
            "id": int(flows.ident[i]),
            **own.place_at(number, time),
            "ts": time_us(time - base_ns),
        }
        if not begins:
            event["bp"] = "e"
        yield event


def _flow_steps(trace: Trace) -> npt.NDArray[np.bool_]:
    """Which ends of arrows others follow: in files that have such steps all but the last of an id."""
    flows = trace.flows
    steps = np.zeros(len(flows), dtype=bool)
    if trace.phases.get("t"):
        ends = np.flatnonzero(~flows.begins)
        order = ends[np.lexsort((flows.time_ns[ends], flows.ident[ends], flows.category[ends]))]
        ident, category = flows.ident[order], flows.category[order]
        steps[order[:-1]] = (ident[1:] == ident[:-1]) & (category[1:] == category[:-1])
    return steps
