"""A trace as strict Chrome JSON that Perfetto and chrome://tracing open without losing an event.

Text is escaped, there is no inf or nan, times have all their digits, and events that cross others on their track get
tracks of their own, because viewers drop them otherwise.
"""

import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from gptscope.profiling.export.files import write_whole
from gptscope.profiling.export.trace_rows import nesting_lanes, rows_in
from gptscope.profiling.trace import Trace

_BLOCK = 2000
"""Events that are put into one piece of text."""
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
    head = {**trace.metadata, "displayTimeUnit": trace.metadata.get("displayTimeUnit", "ms")}
    head.pop("traceEvents", None)
    yield _encode(head)[:-1] + b',"traceEvents":[\n'
    first = True
    for block in _blocks(_events(trace, range_ns, categories or {})):
        yield (b"" if first else b",\n") + b",\n".join(block)
        first = False
    yield b"\n]}\n"


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


def _events(trace: Trace, range_ns: tuple[int, int] | None, categories: dict[str, str]) -> Iterator[dict[str, Any]]:
    rows = rows_in(trace, range_ns)
    lanes = nesting_lanes(trace, rows)
    own = _OwnTracks(trace, rows, lanes)
    yield from own.metadata()
    category_names = [categories.get(name, name) for name in trace.categories]
    for row, lane in zip(rows.tolist(), lanes.tolist(), strict=True):
        track = trace.tracks[trace.track[row]]
        event: dict[str, Any] = {
            "ph": "X",
            "cat": category_names[trace.category[row]],
            "name": trace.names[trace.name[row]],
            "pid": track.pid,
            "tid": own.tid(int(trace.track[row]), lane),
            "ts": time_us(int(trace.start_ns[row])),
            "dur": time_us(int(trace.duration_ns[row])),
        }
        args = trace.args(row)
        if trace.unfinished[row]:
            args = {**args, "unfinished": True}
        if args:
            event["args"] = args
        yield event
    yield from _instants(trace, range_ns)
    yield from _counters(trace, range_ns)
    yield from _flows(trace, range_ns, own)


class _OwnTracks:
    """Thread ids for events that cross others: new numbers beside the file's own."""

    def __init__(self, trace: Trace, rows: Any, lanes: Any) -> None:
        self._trace = trace
        crossing = np.flatnonzero(lanes > 0)
        pairs = sorted({(int(trace.track[rows[i]]), int(lanes[i])) for i in crossing.tolist()})
        used = [t.tid for t in trace.tracks if isinstance(t.tid, int) and abs(t.tid) < 2**31]
        self._tids = {pair: max(used, default=0) + 1 + i for i, pair in enumerate(pairs)}
        self._by_start = {
            (int(trace.track[rows[i]]), int(trace.start_ns[rows[i]])): int(lanes[i]) for i in crossing.tolist()
        }
        self._tracks = sorted({int(t) for t in np.unique(trace.track[rows])})

    def tid(self, track: int, lane: int) -> Any:
        """Where an event goes."""
        return self._tids[track, lane] if lane else self._trace.tracks[track].tid

    def tid_at(self, track: int, time_ns: int) -> Any:
        """Where the event went that begins on a track at a time."""
        return self.tid(track, self._by_start.get((track, time_ns), 0))

    def metadata(self) -> Iterator[dict[str, Any]]:
        """Names and places of processes and threads."""
        trace = self._trace
        for track, label in trace.labels.items():
            what = "process_name" if track[1] is None else "thread_name"
            yield _meta(what, track[0], track[1], {"name": label})
        for track, index in trace.sort_indices.items():
            what = "process_sort_index" if track[1] is None else "thread_sort_index"
            yield _meta(what, track[0], track[1], {"sort_index": index})
        for (number, lane), tid in self._tids.items():
            track = trace.tracks[number]
            label = trace.labels.get(track) or f"thread {track.tid}"
            yield _meta("thread_name", track.pid, tid, {"name": f"{label} (overlapping {lane})"})
            wanted = trace.sort_indices.get(track)
            if wanted is not None:
                yield _meta("thread_sort_index", track.pid, tid, {"sort_index": wanted})


def _meta(what: str, pid: Any, tid: Any, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": 0 if tid is None else tid, "ts": 0, "args": args}


def _inside(time_ns: Any, range_ns: tuple[int, int] | None) -> list[int]:
    if range_ns is None:
        return list(range(time_ns.size))
    found: list[int] = np.flatnonzero((time_ns >= range_ns[0]) & (time_ns < range_ns[1])).tolist()
    return found


def _instants(trace: Trace, range_ns: tuple[int, int] | None) -> Iterator[dict[str, Any]]:
    instants, reader = trace.instants, trace.args_reader
    for i in _inside(instants.time_ns, range_ns):
        track = trace.tracks[instants.track[i]]
        yield {
            "ph": "i",
            "s": "t",
            "cat": trace.categories[instants.category[i]],
            "name": trace.names[instants.name[i]],
            "pid": track.pid,
            "tid": track.tid,
            "ts": time_us(int(instants.time_ns[i])),
            "args": {} if reader is None else reader.of(int(instants.place[i])),
        }


def _counters(trace: Trace, range_ns: tuple[int, int] | None) -> Iterator[dict[str, Any]]:
    counters = trace.counters
    for i in _inside(counters.time_ns, range_ns):
        pid, name, key = counters.series[counters.serie[i]]
        value = float(counters.value[i])
        yield {"ph": "C", "name": name, "pid": pid, "ts": time_us(int(counters.time_ns[i])), "args": {key: value}}


def _flows(trace: Trace, range_ns: tuple[int, int] | None, own: _OwnTracks) -> Iterator[dict[str, Any]]:
    flows = trace.flows
    for i in _inside(flows.time_ns, range_ns):
        number, time = int(flows.track[i]), int(flows.time_ns[i])
        category = flows.categories[flows.category[i]]
        begins = bool(flows.begins[i])
        event: dict[str, Any] = {
            "ph": "s" if begins else "f",
            "cat": category,
            "name": category,
            "id": int(flows.ident[i]),
            "pid": trace.tracks[number].pid,
            "tid": own.tid_at(number, time),
            "ts": time_us(time),
        }
        if not begins:
            event["bp"] = "e"
        yield event
