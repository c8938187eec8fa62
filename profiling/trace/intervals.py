"""Sums over intervals of time, in exact nanoseconds."""

from typing import Self

import numpy as np

from gptscope.profiling.trace.grouping import blocks, group_by
from gptscope.profiling.trace.table import Bools, Int64, Integers, Trace


def union_ns(start_ns: Int64, end_ns: Int64) -> int:
    """Length of the union of intervals, so that overlaps count once. Intervals that end before they start are empty."""
    start, end = merged(start_ns, end_ns)
    return int((end - start).sum())


def merged(start_ns: Int64, end_ns: Int64) -> tuple[Int64, Int64]:
    """The union as disjoint intervals in order of time; intervals of no length vanish."""
    long = end_ns > start_ns
    start, end = (start_ns, end_ns) if long.all() else (start_ns[long], end_ns[long])
    if not start.size:
        return start, end
    # Nothing is open where as many have ended as have begun: it does not matter which end belongs to which beginning.
    start, end = _sorted(start), _sorted(end)
    after = np.flatnonzero(start[1:] > end[:-1])  # the last end before each gap
    if after.size == start.size - 1:
        return start, end
    return np.append(start[:1], start[after + 1]), np.append(end[after], end[-1:])


def overlap_ns(start_ns: Int64, end_ns: Int64) -> int:
    """Time in which at least two of the intervals are open; none ends before it starts."""
    # From the second beginning to the first end, from the third to the second, and so on, in order of time.
    return union_ns(_sorted(start_ns)[1:], _sorted(end_ns)[:-1])


def _sorted(time_ns: Int64) -> Int64:
    """In order; itself, not a copy, when it is."""
    if (time_ns[1:] >= time_ns[:-1]).all():
        return time_ns
    return np.sort(time_ns, kind="stable")  # a few runs, as of threads and of unions, are merged in no time


def time_order(start_ns: Int64) -> Int64 | slice:
    """What puts columns into the order of time; a slice, which copies nothing, when they are in it."""
    if (start_ns[1:] >= start_ns[:-1]).all():
        return slice(None)
    return np.argsort(start_ns, kind="stable")


class Cover:
    """A union of intervals that can be asked how much of other intervals it covers."""

    def __init__(self, start_ns: Int64, end_ns: Int64) -> None:
        self.start_ns, self.end_ns = merged(start_ns, end_ns)
        self._before = np.zeros(self.start_ns.size + 1, dtype=np.int64)
        np.cumsum(self.end_ns - self.start_ns, out=self._before[1:])

    @classmethod
    def of_rows(cls, trace: Trace, rows: Integers, beside: "Cover | None" = None) -> Self:
        """Union of the time of some rows, and of another union."""
        parts = [] if beside is None else [(beside.start_ns, beside.end_ns)]
        # Most overlaps lie close together, so that blocks shrink before they are put together.
        parts += [merged(trace.start_ns[rows[block]], trace.ends(rows[block])) for block in blocks(rows.size)]
        if not parts:
            return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        start, end = (np.concatenate(times) for times in zip(*parts, strict=True))
        del parts
        return cls(start, end)

    @property
    def total_ns(self) -> int:
        """Length of the union."""
        return int(self._before[-1])

    def until(self, time_ns: Int64) -> Int64:
        """How much it covers before each moment."""
        if not self.start_ns.size:
            return np.zeros(time_ns.size, dtype=np.int64)
        last = np.searchsorted(self.start_ns, time_ns, side="right") - 1
        begun = last >= 0
        np.maximum(last, 0, out=last)
        covered = np.minimum(time_ns, self.end_ns[last])
        covered -= self.start_ns[last]
        covered += self._before[last]
        covered *= begun
        return covered

    def within(self, start_ns: Int64, end_ns: Int64) -> Int64:
        """How much of each interval it covers."""
        return self.until(end_ns) - self.until(start_ns)


def busy_ns_per_device(trace: Trace) -> dict[int, int]:
    """Time during which each device worked: the union of its kernels, copies and fills. Empty without device work."""
    work = trace.gpu_work()
    start, end, device = trace.start_ns[work], trace.ends(work), trace.device[work]
    return {int(one): union_ns(start[device == one], end[device == one]) for one in np.unique(device)}


def overlaps_on_streams(trace: Trace) -> int:
    """How many device events begin before an earlier one of the same stream has ended (programmatic launches do)."""
    rows, same = by_stream(trace, np.flatnonzero(trace.gpu_work()))
    return int((same & (trace.start_ns[rows][1:] < trace.ends(rows)[:-1])).sum())


def by_stream(trace: Trace, work: Int64) -> tuple[Int64, Bools]:
    """Device work stream by stream in the order of time, and for all but the last whether the next is of its stream."""
    start, stream = trace.start_ns[work], group_by(trace.device[work], trace.stream[work]).of
    in_order = (stream[1:] > stream[:-1]) | ((stream[1:] == stream[:-1]) & (start[1:] >= start[:-1]))
    if not in_order.all():
        order = np.lexsort((start, stream))
        work, stream = work[order], stream[order]
    return work, stream[1:] == stream[:-1]
