"""Turns decoded events into growing numpy columns, with exact times."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.events import Args, Event, decode_digits, written
from gptscope.profiling.trace.health import HealthReport
from gptscope.profiling.trace.table import GPU_CATEGORIES, OLD_CATEGORIES, Bools, Int32, Int64, TraceTable, Track

EXACT_DOUBLE_US = 8.79e12
"""Below this many microseconds a double times 1000 rounds to the right nanosecond (2^53 / 1000, with room)."""
MISSING_NS = np.iinfo(np.int64).min
_INT64 = range(-(2**63), 2**63)
_NO_ARGS = Args()
_MOST_DIGITS = 40
_FLOAT_TIME = re.compile(r"[0-9.eE+-]+")


class _Interner:
    """Gives every distinct value a number, in order of appearance."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._number: dict[Any, int] = {}

    def __call__(self, value: Any) -> int:
        number = self._number.get(value)
        if number is None:
            number = self._number[value] = len(self.values)
            self.values.append(value)
        return number


class ColumnBuilder:
    """Takes pieces of events; `build` joins them into a `TraceTable`."""

    def __init__(self, health: HealthReport) -> None:
        self._health = health
        self._names, self._categories, self._tracks, self._texts = _Interner(), _Interner(), _Interner(), _Interner()
        self._texts(b"")
        self._pieces: dict[str, list[npt.NDArray[Any]]] = {}
        self.phases: Counter[str] = Counter()
        self.latest_ns = MISSING_NS

    def add(self, events: Sequence[Event], text: bytes) -> None:
        """Append the complete events of one piece; `text` is read again where a double does not hold a time exactly."""
        self.phases.update([e.ph for e in events])
        complete = [i for i, e in enumerate(events) if e.ph == "X"]
        if not complete:
            return
        rows = [events[i] for i in complete]
        start = _exact_ns([e.ts for e in rows], lambda: _digits(text, complete, "ts"))
        duration = _exact_ns([e.dur for e in rows], lambda: _digits(text, complete, "dur"))
        timeless = start == MISSING_NS
        if timeless.any():
            self._health.add("put_aside", "events without a time", count=int(timeless.sum()))
            keep = np.flatnonzero(~timeless)
            rows, start, duration = [rows[i] for i in keep], start[keep], duration[keep]
            if not rows:
                return
        ends = start + np.where(duration == MISSING_NS, 0, np.maximum(duration, 0))
        self.latest_ns = max(self.latest_ns, int(ends.max()))
        self._append("start_ns", start)
        self._append("duration_ns", duration)
        self._append_texts(rows)
        self._append_args([e.args or _NO_ARGS for e in rows])

    def _append(self, name: str, values: npt.NDArray[Any]) -> None:
        self._pieces.setdefault(name, []).append(values)

    def _append_texts(self, rows: list[Event]) -> None:
        names, categories, tracks = self._names, self._categories, self._tracks
        self._append("name", np.array([names(e.name) for e in rows], dtype=np.int32))
        modern = OLD_CATEGORIES.get
        self._append("category", np.array([categories(modern(e.cat, e.cat)) for e in rows], dtype=np.int32))
        keys = [tracks(Track(_hashable(e.pid), _hashable(e.tid))) for e in rows]
        self._append("track", np.array(keys, dtype=np.int32))

    def _append_args(self, args: list[Args]) -> None:
        texts = self._texts
        self._append("shapes", np.array([texts(bytes(a.shapes)) for a in args], dtype=np.int32))
        self._append("types", np.array([texts(bytes(a.types)) for a in args], dtype=np.int32))
        self._append("values", np.array([texts(bytes(a.values)) for a in args], dtype=np.int32))
        ids = [a.old_external_id if a.external_id is None else a.external_id for a in args]
        self._append("external_id", self._integers(ids, 0))
        self._append("correlation", self._integers([a.correlation for a in args], 0))
        self._append("sequence", self._integers([a.sequence for a in args], -1))
        self._append("forward_thread", self._integers([a.forward_thread for a in args], -1))
        self._append("device", self._integers([a.device for a in args], -1))
        self._append("stream", self._integers([a.stream for a in args], -1))
        self._append("moved_bytes", self._integers([a.moved_bytes for a in args], -1))

    def _integers(self, values: list[Any], missing: int) -> Int64:
        return np.array([self._integer(v, missing) if v.__class__ is not int else _within(v, missing) for v in values])

    def _integer(self, value: Any, missing: int) -> int:
        if value is None:
            return missing
        try:
            hexadecimal = isinstance(value, str) and value.lower().startswith("0x")  # streams on ROCm
            return _within(int(value, 16) if hexadecimal else int(value), missing)
        except (TypeError, ValueError, OverflowError):
            self._health.add("repaired", "an id or a count is not a number; it is treated as missing")
            return missing

    def build(self, metadata: dict[str, Any]) -> TraceTable:
        """Join all pieces, put aside what lies outside the trace's time, and mark unfinished events."""
        columns = {name: np.concatenate(self._pieces.pop(name)) for name in list(self._pieces)}
        if not columns:
            self._health.add("empty", "no events")
        start = columns.get("start_ns", np.empty(0, dtype=np.int64))
        keep = ~_at_zero_among_absolute(start)
        if not keep.all():
            message = "events at time 0 among absolute times"
            self._health.add("put_aside", message, count=int((~keep).sum()))
        duration = columns.get("duration_ns", np.empty(0, dtype=np.int64))
        unfinished = duration < 0
        if (unfinished & keep).any():
            message = "events without a usable duration; they are in no sum"
            self._health.add("unfinished", message, count=int((unfinished & keep).sum()))
        if start.size:
            columns["duration_ns"] = np.where(unfinished, np.maximum(self.latest_ns - start, 0), duration)
        ignored = {ph: n for ph, n in self.phases.items() if ph in "BEbeSTpFnG" and ph}
        if ignored:
            self._health.add("ignored", "events with separate begin and end", count=sum(ignored.values()))

        if start.size:
            columns["device"] = self._devices(columns["device"], columns["category"], columns["track"])

        def integers(name: str) -> Int64:
            return columns[name][keep] if name in columns else np.empty(0, dtype=np.int64)

        def numbers(name: str) -> Int32:
            return columns[name][keep] if name in columns else np.empty(0, dtype=np.int32)

        return TraceTable(
            names=self._names.values,
            categories=self._categories.values,
            tracks=self._tracks.values,
            texts=self._texts.values,
            name=numbers("name"),
            category=numbers("category"),
            track=numbers("track"),
            start_ns=integers("start_ns"),
            duration_ns=integers("duration_ns"),
            unfinished=unfinished[keep],
            correlation=integers("correlation"),
            external_id=integers("external_id"),
            sequence=integers("sequence"),
            forward_thread=integers("forward_thread"),
            device=integers("device"),
            stream=integers("stream"),
            moved_bytes=integers("moved_bytes"),
            shapes=numbers("shapes"),
            types=numbers("types"),
            values=numbers("values"),
            phases=dict(self.phases),
            metadata=metadata,
            health=tuple(self._health.notes()),
        )

    def _devices(self, device: Int64, category: Int32, track: Int32) -> Int64:
        """Device numbers; device work that does not name its device has it as process id."""
        on_device = np.array([c in GPU_CATEGORIES for c in self._categories.values], dtype=bool)
        pids = [t.pid if isinstance(t.pid, int) and t.pid in _INT64 else -1 for t in self._tracks.values]
        return np.where(on_device[category] & (device < 0), np.array(pids, dtype=np.int64)[track], device)


def _within(value: int, missing: int) -> int:
    """Ids beyond 64 bits identify nothing that we look up."""
    return value if value in _INT64 else missing


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) else str(value)


def _at_zero_among_absolute(start_ns: Int64) -> Bools:
    """Events at time 0 while the others lie at times since the machine's start or since 1970."""
    at_zero = start_ns == 0
    if not at_zero.any() or at_zero.all():
        return np.zeros(start_ns.size, dtype=bool)
    hour_ns = 3_600_000_000_000
    return at_zero if int(np.median(start_ns[~at_zero])) > hour_ns else np.zeros(start_ns.size, dtype=bool)


def _exact_ns(values: list[Any], digits: Callable[[], list[str] | None]) -> Int64:
    """Microseconds in any spelling -> whole nanoseconds; missing or unusable ones become `MISSING_NS`."""
    kinds = {v.__class__ for v in values}
    if kinds == {int} and all(-9_000_000_000_000_000 < v < 9_000_000_000_000_000 for v in values):
        return np.array(values, dtype=np.int64) * 1000
    if kinds <= {int, float} and all(-EXACT_DOUBLE_US < v < EXACT_DOUBLE_US for v in values):
        return np.rint(np.array(values, dtype=np.float64) * 1000.0).astype(np.int64)
    texts = digits() if float in kinds else None
    if texts is None:
        texts = [_text(v) for v in values]
    return np.array([_decimal_ns(text) for text in texts], dtype=np.int64)


def _text(value: Any) -> str:
    """A time in decimal digits; empty for none, and for numbers too long to be one."""
    if value is None or (isinstance(value, int) and value not in _INT64):
        return ""
    return str(value)


def _decimal_ns(text: str) -> int:
    """Exact nanoseconds of a decimal number of microseconds."""
    text = text.strip().strip('"').strip()
    if not _FLOAT_TIME.fullmatch(text):
        return MISSING_NS
    try:
        microseconds = Decimal(text)
        if abs(microseconds.adjusted()) > _MOST_DIGITS:  # no time has so many digits, and making them takes forever
            return 0 if microseconds.adjusted() < 0 or not microseconds else MISSING_NS
        nanoseconds = int((microseconds * 1000).to_integral_value())
    except (InvalidOperation, OverflowError, ValueError):
        return MISSING_NS
    return nanoseconds if abs(nanoseconds) < 2**61 else MISSING_NS  # so that start plus duration fits as well


def _digits(text: bytes, rows: list[int], field: str) -> list[str] | None:
    """A time column as it is written in the file; None when the events were decoded one by one."""
    if not text:
        return None
    events = decode_digits(text)
    return [written(getattr(events[i], field)) or "" for i in rows]
