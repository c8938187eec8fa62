"""Turns decoded events into growing numpy columns, with exact times."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.args import ArgsReader, Pieces
from gptscope.profiling.trace.beside import BesideBuilder
from gptscope.profiling.trace.events import TEXT_ARGS, Args, Event
from gptscope.profiling.trace.finishing import at_zero_among_absolute, device_numbers, modern_categories
from gptscope.profiling.trace.growing import (
    Columns,
    Interner,
    NameInterner,
    Positions,
    TrackInterner,
    hashable,
    narrow,
    numbers_from,
    track_numbers,
)
from gptscope.profiling.trace.health import HealthReport
from gptscope.profiling.trace.pairs import BEGIN, END, pair_up
from gptscope.profiling.trace.recorded import SEPARATOR, RecordedInterner
from gptscope.profiling.trace.source import TraceText
from gptscope.profiling.trace.table import Bools, Int32, Int64, Trace, Track
from gptscope.profiling.trace.times import MISSING_NS, Digits, exact_ns

_NO_ARGS = Args()
_NOTHING = _NO_ARGS.shapes
_INT64 = range(-(2**63), 2**63)
_MOST_SUM = 2**62
_INTEGERS: dict[str, tuple[int, Callable[[list[Args]], list[int]]]] = {
    "correlation": (0, lambda args: [a.correlation for a in args]),
    "sequence": (-1, lambda args: [a.sequence for a in args]),
    "forward_thread": (-1, lambda args: [a.forward_thread for a in args]),
    "device": (-1, lambda args: [a.device for a in args]),
    "stream": (-1, lambda args: [a.stream for a in args]),
    "moved_bytes": (-1, lambda args: [a.moved_bytes for a in args]),
}
"""Column -> what stands for a missing number, and the numbers of many events (`attrgetter` takes twice as long)."""
_IDS = frozenset({"correlation", "external_id"})
_HUGE_FROM = -(2**62)
_THREAD_ENDS = {"B": BEGIN, "E": END}
_ASYNC_ENDS = {"b": BEGIN, "e": END, "S": BEGIN, "F": END}


class ColumnBuilder:
    """Takes pieces of events; `build` joins them into a `Trace`."""

    def __init__(self, health: HealthReport) -> None:
        self._health = health
        self.names, self.categories, self.tracks = NameInterner(health), Interner(), TrackInterner()
        self.recorded = RecordedInterner()
        self.slices, self.ends = Columns(), Columns()
        self.beside = BesideBuilder(health, self.names, self.categories, self.tracks)
        self.groups, self._huge_ids = Interner(), Interner()
        self.pieces: list[tuple[int, int, int]] = []
        self.event_count = 0
        self.phases: Counter[str] = Counter()
        self.latest_ns = MISSING_NS

    @property
    def nbytes(self) -> int:
        """What the columns take up."""
        return self.slices.nbytes + self.ends.nbytes + self.beside.nbytes

    def add(self, events: Sequence[Event], text: bytes, offset: int = 0, size: int = 0, raw: bytes = b"") -> None:
        """Append the events of one piece.

        Args:
            events: Decoded.
            text: They were decoded from it as a whole, and it is read again where a double does not hold a time
                exactly; empty when they were decoded one by one.
            offset: Where the piece begins in the file's uncompressed text.
            size: Of the piece in that text.
            raw: The piece's text where its events were decoded one by one.
        """
        first = self.event_count
        self.event_count += len(events)
        self.pieces.append((offset, size, first))
        if not events:
            return
        codes = _codes([e.ph for e in events])
        found = np.flatnonzero(np.bincount(codes, minlength=1)).tolist()
        digits = Digits(text)
        for code in found:
            phase = chr(code) if code else ""
            places, rows = None, events
            if len(found) > 1:
                fits = codes == code
                places, rows = np.flatnonzero(fits), list(compress(events, fits.tobytes()))
            self.phases[phase] += len(rows)
            if phase == "X":
                self._add_slices(rows, places, digits, first)
            elif phase in _THREAD_ENDS or phase in _ASYNC_ENDS:
                self._add_ends(phase, rows, places, digits, first)
            else:
                self.beside.add(phase, rows, places, digits, first, text or raw)

    def _add_slices(self, rows: Sequence[Event], places: Positions | None, digits: Digits, first: int) -> None:
        start = exact_ns([e.ts for e in rows], digits, places, "ts")
        duration = exact_ns([e.dur for e in rows], digits, places, "dur")
        place = numbers_from(first, len(rows), places)
        timeless = start == MISSING_NS
        if timeless.any():
            self._health.add("put_aside", "events without a time", count=int(timeless.sum()))
            keep = np.flatnonzero(~timeless)
            rows, start, duration, place = [rows[i] for i in keep.tolist()], start[keep], duration[keep], place[keep]
            if not rows:
                return
        self.latest_ns = max(self.latest_ns, int((start + np.maximum(duration, 0)).max()))
        slices = self.slices
        slices.append("start_ns", start)
        slices.append("duration_ns", narrow(duration))
        slices.append("place", place)
        slices.append("name", self.names.numbers([e.name for e in rows], len(rows)))
        slices.append("category", self.categories.numbers([e.cat for e in rows], len(rows)))
        slices.append("track", track_numbers(self.tracks, rows))
        self._append_args([e.args or _NO_ARGS for e in rows])

    def _append_args(self, args: list[Args]) -> None:
        slices, size = self.slices, len(args)
        shapes = [a.shapes for a in args]
        if shapes.count(_NOTHING) == size:  # types and values are recorded together with shapes
            slices.append("recorded", np.zeros(size, dtype=np.int8))
        else:
            # One look-up for the three of them; no JSON holds the separator.
            recorded = [SEPARATOR.join((a.shapes, a.types, a.values)) for a in args]
            slices.append("recorded", self.recorded.numbers(recorded, size))
        collectives = [a.collective for a in args]
        if collectives.count(None) == size:
            slices.append("collective", np.zeros(size, dtype=np.int8))
        else:
            texts = self.recorded.texts
            encoded = [c.encode(errors="replace") if c else b"" for c in collectives]
            slices.append("collective", narrow(texts.numbers(encoded, size, np.int64)))
        external = [a.external_id for a in args]
        if 0 in external:  # old traces spell it otherwise, some of them only that of device work
            external = [a.external_id or a.old_external_id for a in args]
        self._append_integers("external_id", external, 0)
        for name, (missing, values_of) in _INTEGERS.items():
            self._append_integers(name, values_of(args), missing)

    def _append_integers(self, name: str, values: list[int], missing: int) -> None:
        try:
            self.slices.append_narrow(name, values, missing)
        except OverflowError:
            numbers = [v if v in _INT64 else self._huge_number(name, v, missing) for v in values]
            self.slices.append_narrow(name, numbers, missing)

    def _huge_number(self, name: str, value: int, missing: int) -> int:
        """A number that stands for an id beyond 64 bits: far below zero, where no id is written."""
        return _HUGE_FROM - self._huge_ids[value] if name in _IDS else missing

    def _add_ends(
        self, phase: str, rows: Sequence[Event], places: Positions | None, digits: Digits, first: int
    ) -> None:
        time = exact_ns([e.ts for e in rows], digits, places, "ts")
        place = numbers_from(first, len(rows), places)
        asynchronous = phase in _ASYNC_ENDS
        if asynchronous:
            tracks = self.tracks
            track = np.array([tracks[hashable(e.pid), f"async {e.cat or e.name}"] for e in rows], dtype=np.int32)
            keys = [("id", hashable(e.pid), e.cat, hashable(e.id)) for e in rows]
        else:
            track = track_numbers(self.tracks, rows)
            keys = [("thread", one, "", None) for one in track.tolist()]
        usable = time != MISSING_NS
        if not usable.all():
            self._health.add("put_aside", "events without a time", count=int((~usable).sum()))
        kind = (_ASYNC_ENDS if asynchronous else _THREAD_ENDS)[phase]
        names, categories, groups = self.names, self.categories, self.groups
        columns: dict[str, npt.NDArray[Any]] = {
            "kind": np.full(len(rows), kind, dtype=np.int8),
            "group": np.array([groups[key] for key in keys], dtype=np.int64),
            "name": np.array([names[e.name] for e in rows], dtype=np.int32),
            "category": np.array([categories[e.cat] for e in rows], dtype=np.int32),
            "track": track,
            "time_ns": time,
            "place": place,
        }
        for name, values in columns.items():
            self.ends.append(name, values[usable])

    @property
    def has_odd_ids(self) -> bool:
        """Some ids are no numbers of 64 bits; what stands for them means nothing to another builder."""
        return bool(self._huge_ids) or self.beside.has_text_ids

    def absorb(self, other: "ColumnBuilder") -> None:
        """Append what another one, which has no odd ids, was given of the text that follows; it is used up."""
        assert not other.has_odd_ids
        track = self.tracks.absorb(other.tracks)
        meaning = {
            "name": self.names.absorb(other.names),
            "category": self.categories.absorb(other.categories),
            "track": track,
            "recorded": self.recorded.absorb(other.recorded),
            "collective": narrow(self.recorded.texts.absorb(other.recorded.texts).astype(np.int64)),
            "group": self.groups.absorb(_on_tracks(other.groups, track)),
        }
        first = self.event_count
        self.slices.absorb(other.slices, meaning, first)
        self.ends.absorb(other.ends, meaning, first)
        self.beside.absorb(other.beside, meaning, first)
        self.pieces += [(offset, size, first + number) for offset, size, number in other.pieces]
        self.event_count += other.event_count
        self.phases += other.phases
        self.latest_ns = max(self.latest_ns, other.latest_ns)

    def _pair_ends(self) -> None:
        """Turn beginnings and ends into rows."""
        ends = self.ends
        if "kind" not in ends:
            return
        place = ends.take("place")
        order = np.argsort(place, kind="stable")  # one piece's phases were added one after another
        taken = {n: ends.take(n)[order] for n in ("kind", "group", "name", "category", "track", "time_ns")}
        time = taken["time_ns"]
        pairs = pair_up(taken["kind"], taken["group"], taken["name"], time, self.names[""])
        if pairs.stray_ends:
            self._health.add("ignored", "an end without a beginning", count=pairs.stray_ends)
        if time.size:
            self.latest_ns = max(self.latest_ns, int(time.max()))
        in_file_order = np.argsort(pairs.begin)
        begin, end = pairs.begin[in_file_order], pairs.end[in_file_order]
        size = begin.size
        if not size:
            return
        start = time[begin]
        slices = self.slices
        slices.append("start_ns", start)
        slices.append("duration_ns", np.where(end >= 0, time[end] - start, MISSING_NS))
        slices.append("place", place[order][begin])
        for name in ("name", "category", "track"):
            slices.append(name, taken[name][begin])
        for name in ("recorded", "collective", "external_id"):
            slices.append(name, np.zeros(size, dtype=np.int8))
        for name, (missing, _) in _INTEGERS.items():
            slices.append(name, np.full(size, missing, dtype=np.int8))

    def build(self, metadata: dict[str, Any], source: TraceText | None = None) -> Trace:
        """Join all pieces, put aside what lies outside the trace's time, and mark unfinished events."""
        self._pair_ends()
        slices = self.slices
        start: Int64 = slices.take("start_ns", type_=np.int64)
        if not start.size:
            self._health.add("empty", "no events with a duration" if self.phases else "no events")
        keep: Bools | None = ~at_zero_among_absolute(start)
        assert keep is not None
        if keep.all():
            keep = None
        else:
            message = "events at time 0 among absolute times"
            self._health.add("put_aside", message, count=int((~keep).sum()))
            start = start[keep]
        duration: Int64 = slices.take("duration_ns", keep, type_=np.int64)
        unfinished = (duration < 0) | self._beyond_all_sums(duration)
        if unfinished.any():
            message = "events without a usable duration; they are in no sum"
            self._health.add("unfinished", message, count=int(unfinished.sum()))
            duration = np.where(unfinished, np.maximum(self.latest_ns - start, 0), duration)
        track: Int32 = slices.take("track", keep, type_=np.int32)
        tracks = [Track(hashable(pid), hashable(tid)) for pid, tid in self.tracks.values_in_order]
        categories, category = modern_categories(
            self.categories.values_in_order, slices.take("category", keep, type_=np.int32), tracks, track
        )
        device = device_numbers(slices.take("device", keep), categories, category, tracks, track)
        beside = self.beside.build()
        recorded = self.recorded.columns(slices.take("recorded", keep))
        names = ("correlation", "external_id", "sequence", "forward_thread", "stream", "moved_bytes")
        return Trace(
            names=self.names.values_in_order,
            categories=categories,
            tracks=tracks,
            texts=self.recorded.texts.values_in_order,
            name=slices.take("name", keep, type_=np.int32),
            category=category,
            track=track,
            start_ns=start,
            duration_ns=duration,
            unfinished=unfinished,
            device=device,
            place=slices.take("place", keep),
            **{name: slices.take(name, keep) for name in (*names, "collective")},
            **dict(zip(TEXT_ARGS, recorded, strict=True)),
            instants=beside.instants,
            counters=beside.counters,
            flows=beside.flows,
            memory=beside.memory,
            labels=beside.labels,
            sort_indices=beside.sort_indices,
            process_labels=beside.process_labels,
            phases=dict(self.phases),
            metadata=metadata,
            health=tuple(self._health.notes()),
            args_reader=self._args_reader(source),
        )

    def _beyond_all_sums(self, duration: Int64) -> Bools:
        """Durations so long (years) that the sum of all would not fit into 64 bits."""
        if float(duration.sum(dtype=np.float64)) < _MOST_SUM:
            return np.zeros(duration.size, dtype=bool)
        beyond: Bools = duration > _MOST_SUM // duration.size
        self._health.add("suspicious", "durations of years cannot be true", count=int(beyond.sum()))
        return beyond

    def _args_reader(self, source: TraceText | None) -> ArgsReader | None:
        if source is None or not self.pieces:
            return None
        offset, size, first = (np.array(column, dtype=np.int64) for column in zip(*self.pieces, strict=True))
        return ArgsReader(source.path, Pieces(offset, size, first), source.checkpoints, source.bom_bytes)


def _on_tracks(groups: Interner, track: Int32) -> Interner:
    """Groups of beginnings and ends whose tracks have other numbers now."""
    return Interner(
        *((kind, int(track[one]) if kind == "thread" else one, *rest) for kind, one, *rest in groups.values_in_order)
    )


def _codes(phases: list[str]) -> npt.NDArray[np.uint8]:
    """The letter of every event's phase as a number; 0 for none and for what is no phase."""
    letters = "".join(phases)
    if len(letters) != len(phases) or not letters.isascii():
        letters = "".join(phase if len(phase) == 1 and phase.isascii() else "\0" for phase in phases)
    return np.frombuffer(letters.encode(), dtype=np.uint8)
