"""Events whose names hold all words that were typed, in order of time."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gptscope.app.viewmodels.timeline_model import Timeline

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Found:
    """Rows in order of time."""

    words: str
    rows: Int64
    start: Int64

    def __len__(self) -> int:
        return int(self.rows.size)

    def number_of(self, row: int | None) -> int | None:
        """Position of a row, None when it was not found."""
        if row is None:
            return None
        places = np.flatnonzero(self.rows == row)
        return int(places[0]) if places.size else None

    def step(self, row: int | None, time: float, by: int) -> int | None:
        """The row after (or before, `by` -1) the chosen one, or else the first after a moment; round the ends."""
        if not len(self):
            return None
        here = self.number_of(row)
        if here is None:
            after = int(np.searchsorted(self.start, time))
            here = after - 1 if by > 0 else after
        return int(self.rows[(here + by) % len(self)])


def find(timeline: Timeline, words: str) -> Found:
    """Search names as the file has them and as they are shown; every word must be in the name."""
    trace = timeline.trace
    wanted = words.casefold().split()
    if not wanted:
        return Found(words, np.zeros(0, np.int64), np.zeros(0, np.int64))
    fits = np.array(
        [
            all(word in text for word in wanted)
            for text in (f"{name} {label}".casefold() for name, label in zip(trace.names, timeline.labels, strict=True))
        ],
        bool,
    )
    return _rows_of(timeline, words, fits)


def alike(timeline: Timeline, row: int) -> Found:
    """All events with the name of one."""
    trace = timeline.trace
    fits = np.zeros(len(trace.names), bool)
    fits[trace.name[row]] = True
    return _rows_of(timeline, trace.names[trace.name[row]], fits)


def _rows_of(timeline: Timeline, words: str, fits: npt.NDArray[np.bool_]) -> Found:
    trace = timeline.trace
    rows = np.flatnonzero(fits[trace.name] & trace.in_statistics()) if fits.size else np.zeros(0, np.int64)
    start = trace.start_ns[rows] - timeline.origin_ns
    order = np.argsort(start, kind="stable")
    return Found(words, rows[order], start[order])
