"""What one lane of the timeline shows per pixel column: exact, and nothing that exists is invisible.

A lane holds events that do not overlap. For a row of pixel edges it answers, per column, which events touch it, how
much of it is busy, and the longest event in it. The cost grows with the pixels, hardly with the events.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]

MIN_INK = 0.35
"""Whatever touches a pixel column is drawn at least this strongly, also an event of no length."""
_BLOCK = 16
"""Events per entry of the coarser level; a column with more events takes its maximum from there."""
_CODE_BITS = 8


@dataclass(frozen=True)
class LaneEvents:
    """Events of one lane in order of time. Times count from the trace's beginning; whole nanoseconds are exact."""

    rows: Int32
    """Row in the trace; -1 - i is the i-th instant."""
    start: Floats
    end: Floats
    code: Bytes
    """What colour, see `timeline_codes`."""
    busy: Floats = field(repr=False)
    """Sum of the lengths of all events before each; one more than there are events."""
    keys: Int64 = field(repr=False)
    """Length and code in one number, so that the largest tells the longest event's colour; one more, too."""
    maxima: Int64 = field(repr=False)
    """Largest key of each block of events."""

    @classmethod
    def build(cls, rows: Int32, start: Floats, end: Floats, code: Bytes) -> "LaneEvents":
        """Sums and maxima are made once, here.

        Args:
            rows: Row in the trace of each event.
            start: Beginnings in rising order.
            end: Ends; no event begins before the one before it has ended.
            code: Colour of each event.
        """
        length = end - start
        busy = np.zeros(start.size + 1)
        np.cumsum(length, out=busy[1:])
        key = np.zeros(start.size + 1, np.int64)  # one more, so that the place after the last event is a place
        key[:-1] = (length.astype(np.int64) << _CODE_BITS) | code
        whole = start.size // _BLOCK * _BLOCK
        blocks = np.zeros(whole // _BLOCK + 1, np.int64)
        blocks[:-1] = key[:whole].reshape(-1, _BLOCK).max(axis=1, initial=0)
        return cls(rows, start, end, code, busy, key, blocks)

    def __len__(self) -> int:
        return int(self.start.size)

    def at(self, time: float, tolerance: float) -> int | None:
        """Position of the event at a moment, or else of the nearest one within the tolerance."""
        if not len(self):
            return None
        place = int(np.searchsorted(self.start, time, side="right")) - 1
        best, distance = None, tolerance
        for candidate in (place, place + 1):
            if 0 <= candidate < len(self):
                start, end = float(self.start[candidate]), float(self.end[candidate])
                apart = max(start - time, time - end, 0.0)
                if apart <= distance:
                    best, distance = candidate, apart
        return best


@dataclass(frozen=True)
class Columns:
    """One lane on a row of pixels; arrays have one entry per column."""

    first: Int64
    """Position of the first event that touches the column."""
    after: Int64
    """Position after the last one; equal to `first`: none."""
    ink: npt.NDArray[np.float32]
    """How strongly to draw, 0 to 1: the busy share, at least `MIN_INK` where anything is."""
    code: Bytes
    """Colour of the longest event in the column."""

    @property
    def touched(self) -> npt.NDArray[np.bool_]:
        """Whether any event lies in the column."""
        return self.after > self.first


def columns(lane: LaneEvents, edges: Floats) -> Columns:
    """Put a lane on pixels.

    Args:
        lane: Its events.
        edges: Rising moments, one more than there are columns; column p holds the moments from edge p up to, not
            including, edge p + 1.
    """
    size = edges.size - 1
    if not len(lane):
        nothing = np.zeros(size, np.int64)
        return Columns(nothing, nothing, np.zeros(size, np.float32), np.zeros(size, np.uint8))
    begun = np.searchsorted(lane.start, edges, side="left")
    # Of the events that began before an edge only the last one can go on beyond it: they do not overlap.
    last = np.maximum(begun - 1, 0)
    until = np.minimum(lane.end[last], edges)
    busy_before = np.where(begun > 0, lane.busy[last] + (until - lane.start[last]), 0.0)
    goes_on = (begun > 0) & (lane.end[last] > edges)
    first, after = begun[:-1] - goes_on[:-1], begun[1:]
    touched = after > first
    width = np.diff(edges)
    busy = np.diff(busy_before)
    ink = np.where(touched, np.clip(busy / width, MIN_INK, 1.0), 0.0).astype(np.float32)
    code = np.zeros(size, np.uint8)
    if touched.any():
        code[touched] = _longest(lane, first[touched], after[touched]) & ((1 << _CODE_BITS) - 1)
    return Columns(first, after, ink, code)


def _longest(lane: LaneEvents, first: Int64, after: Int64) -> Int64:
    """Largest key of each range of events; ranges are not empty and rise."""
    many = after - first > 4 * _BLOCK
    if not many.any():
        return _range_max(lane.keys, first, after)
    result = np.empty(first.size, np.int64)
    few = ~many
    if few.any():
        result[few] = _range_max(lane.keys, first[few], after[few])
    low, high = first[many], after[many]
    inner_low, inner_high = -(-low // _BLOCK), high // _BLOCK
    best = _range_max(lane.maxima, inner_low, inner_high)
    # The whole blocks' neighbours, one event more on each side where a range would be empty: it is inside anyway.
    left = _range_max(lane.keys, low, np.maximum(inner_low * _BLOCK, low + 1))
    right = _range_max(lane.keys, np.minimum(inner_high * _BLOCK, high - 1), high)
    result[many] = np.maximum(np.maximum(best, left), right)
    return result


def _range_max(values: Int64, first: Int64, after: Int64) -> Int64:
    """Maximum of `values[first:after]` per range; ranges rise, neighbours share one value at most."""
    bounds = np.empty(2 * first.size, np.int64)
    bounds[::2], bounds[1::2] = first, after
    result: Int64 = np.maximum.reduceat(values[: int(after[-1]) + 1], bounds)[::2]
    return result


def wide_events(lane: LaneEvents, shown: Columns, least: float) -> Int64:
    """Positions of the events that are at least this long (four pixels or more): each has a column of its own."""
    alone = shown.after - shown.first == 1
    candidates = shown.first[alone]
    if candidates.size:
        candidates = candidates[np.concatenate(([True], candidates[1:] != candidates[:-1]))]
    long = lane.end[candidates] - lane.start[candidates] >= least
    found: Int64 = candidates[long]
    return found
