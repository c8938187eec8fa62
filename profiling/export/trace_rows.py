"""What all exporters of traces need: which rows lie in a range, and tracks on which events only nest."""

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace import Trace
from gptscope.profiling.trace.lanes import free_lanes
from gptscope.profiling.trace.nested import nest_rows

Int64 = npt.NDArray[np.int64]
_MOST_STACKS = 64


def rows_in(trace: Trace, range_ns: tuple[int, int] | None) -> Int64:
    """Rows that lie in a range at least partly, in the order of the file; all without a range."""
    if range_ns is None:
        return np.arange(len(trace))
    start, end = trace.start_ns, trace.end_ns
    return np.flatnonzero((start < range_ns[1]) & ((end > range_ns[0]) | (start >= range_ns[0])))


def nesting_lanes(trace: Trace, rows: Int64) -> npt.NDArray[np.int16]:
    """For each of the rows a number within its track such that rows of one number only nest and never cross.

    Viewers drop or misplace events that cross others on their track. Most tracks need only number 0.
    """
    lanes = np.zeros(rows.size, dtype=np.int16)
    nested = nest_rows(trace.track[rows], trace.start_ns[rows], trace.duration_ns[rows])
    if not nested.crossing:
        return lanes
    end = trace.end_ns[rows][nested.order]
    inside = np.flatnonzero(nested.parent >= 0)
    crossed = inside[end[inside] > end[nested.parent[inside]]]
    of_order = trace.track[rows][nested.order]
    for track in np.unique(of_order[crossed]):
        places = nested.order[of_order == track]
        stacks: list[list[int]] = []
        for place, start, stop in zip(
            places.tolist(), trace.start_ns[rows[places]].tolist(), trace.end_ns[rows[places]].tolist(), strict=True
        ):
            lane = _fitting(stacks, start, stop)
            if lane == _MOST_STACKS:  # hardly anything nests here
                lanes[places] = free_lanes(trace.start_ns[rows[places]], trace.end_ns[rows[places]])
                break
            if lane == len(stacks):
                stacks.append([])
            stacks[lane].append(stop)
            lanes[place] = lane
    return lanes


def _fitting(stacks: list[list[int]], start: int, stop: int) -> int:
    """The first lane where an open event holds this one wholly, else one where none is open, else a new one."""
    empty = len(stacks)
    for lane, stack in enumerate(stacks):
        while stack and stack[-1] <= start:
            stack.pop()
        if stack and stop <= stack[-1]:
            return lane
        if not stack:
            empty = min(empty, lane)
    return empty
