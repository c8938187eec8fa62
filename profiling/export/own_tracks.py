"""Processes and threads of an exported trace: the file's own ids, and new ones where a viewer would lose events."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from gptscope.profiling.trace import Trace, Track

_USUAL_IDS = range(2**31)
"""Perfetto keeps the low 32 bits of an id and takes negative, broken and missing ones for others."""
_MOST_DIGITS = 30
"""Of a text that is read as a number; longer ones are no ids."""


class OwnTracks:
    """Ids for the tracks of a trace: where rows cross others of their track, they get a thread of their own."""

    def __init__(self, trace: Trace, rows: Any, lanes: Any) -> None:
        self._trace = trace
        crossing = np.flatnonzero(lanes > 0)
        pairs = sorted({(int(trace.track[rows[i]]), int(lanes[i])) for i in crossing.tolist()})
        filled = [trace.tracks[number] for number in np.unique(trace.track[rows]).tolist()]
        pids = dict.fromkeys(track.pid for track in filled if not _is_usual(track.pid))
        threads = [track for track in filled if not _is_usual(track.tid)]
        numbers = _free_ids(trace)
        self._pids: dict[Any, int] = {pid: next(numbers) for pid in pids}
        self._threads: dict[Track, int] = {track: next(numbers) for track in threads}
        self._crossing: dict[tuple[int, int], int] = {pair: next(numbers) for pair in pairs}
        self._by_start = {
            (int(trace.track[rows[i]]), int(trace.start_ns[rows[i]])): int(lanes[i]) for i in crossing.tolist()
        }

    def pid(self, pid: Any) -> Any:
        """The process of an event."""
        return self._pids.get(pid, pid)

    def place(self, track: int, lane: int = 0) -> dict[str, Any]:
        """Process and thread of an event."""
        of = self._trace.tracks[track]
        tid = self._crossing[track, lane] if lane else self._threads.get(of, of.tid)
        return {"pid": self.pid(of.pid), "tid": tid}

    def place_at(self, track: int, time_ns: int) -> dict[str, Any]:
        """Where the event went that begins on a track at a time."""
        return self.place(track, self._by_start.get((track, time_ns), 0))

    def moment(self, track: int) -> dict[str, Any]:
        """Place and scope of an instant, which may belong to a whole process or to the whole trace."""
        of = self._trace.tracks[track]
        if of.tid is not None:
            return {"s": "t", **self.place(track)}
        return {"s": "g"} if of.pid is None else {"s": "p", "pid": self.pid(of.pid)}

    def metadata(self) -> Iterator[dict[str, Any]]:
        """Names and places of processes and threads."""
        trace = self._trace
        labels: dict[Any, str] = {**self._new_names(), **trace.labels}
        for track, label in labels.items():
            yield self._meta("thread_name" if track[1] is not None else "process_name", track, {"name": label})
        for track, index in trace.sort_indices.items():
            what = "thread_sort_index" if track[1] is not None else "process_sort_index"
            yield self._meta(what, track, {"sort_index": index})
        for pid, label in trace.process_labels.items():
            yield self._meta("process_labels", (pid, None), {"labels": label})
        for (number, lane), tid in self._crossing.items():
            track = trace.tracks[number]
            label = trace.labels.get(track) or f"thread {track.tid}"
            where = {"pid": self.pid(track.pid), "tid": tid}
            yield _event("thread_name", where, {"name": f"{label} (overlapping {lane})"})
            wanted = trace.sort_indices.get(track)
            if wanted is not None:
                yield _event("thread_sort_index", where, {"sort_index": wanted})

    def made_threads(self) -> list[dict[str, Any]]:
        """The threads that were made for rows that cross others, and which thread these rows are of."""
        made = ((self._trace.tracks[number], tid) for (number, _), tid in self._crossing.items())
        return [{"pid": self.pid(t.pid), "tid": tid, "of": self._threads.get(t, t.tid)} for t, tid in made]

    def _new_names(self) -> dict[tuple[Any, Any], str]:
        """What says which process or thread a new number stands for."""
        names: dict[tuple[Any, Any], str] = {(pid, None): f"process {_told(pid)}" for pid in self._pids}
        names |= {(t.pid, t.tid): f"thread {_told(t.tid)}" for t in self._threads if t.tid is not None}
        return names

    def _meta(self, what: str, track: tuple[Any, Any], args: dict[str, Any]) -> dict[str, Any]:
        tid = 0 if track[1] is None else self._threads.get(Track(*track), track[1])
        return _event(what, {"pid": self.pid(track[0]), "tid": tid}, args)


def _free_ids(trace: Trace) -> Iterator[int]:
    """Ids that stand nowhere in the file, not even for a mere name, above those that do as long as there are any."""
    named = (*trace.tracks, *trace.labels, *trace.sort_indices)
    found = {one for track in named for one in track} | set(trace.process_labels)
    taken = {_low_bits(one) for one in found | {pid for pid, _, _ in trace.counters.series}}
    first = max((one for one in taken if one in _USUAL_IDS), default=0) + 1
    return (one for one in chain(range(first, _USUAL_IDS.stop), range(1, first)) if one not in taken)


def _low_bits(ident: Any) -> int:
    """What a viewer takes an id for; texts of digits are numbers to it."""
    if isinstance(ident, str) and ident.isdecimal():
        ident = int(ident[-_MOST_DIGITS:])
    return int(ident) % 2**32 if isinstance(ident, int) else 0


def _event(what: str, where: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": what, **where, "ts": 0, "args": args}


def _is_usual(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, int) and value in _USUAL_IDS)


def _told(value: Any) -> str:
    return "without an id" if value is None else str(value)
