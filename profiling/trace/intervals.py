"""Sums over intervals of time, in exact nanoseconds."""

import numpy as np

from gptscope.profiling.trace.table import Int64, Trace


def union_ns(start_ns: Int64, end_ns: Int64) -> int:
    """Length of the union of intervals, so that overlaps count once. Intervals that end before they start are empty."""
    if start_ns.size == 0:
        return 0
    order = np.argsort(start_ns, kind="stable")
    start, end = start_ns[order], np.maximum(end_ns[order], start_ns[order])
    reached = np.maximum.accumulate(end)
    uncovered_from = np.concatenate((start[:1], np.maximum(start[1:], reached[:-1])))
    return int(np.maximum(end - uncovered_from, 0).sum())


def merged(start_ns: Int64, end_ns: Int64) -> tuple[Int64, Int64]:
    """The union as disjoint intervals in order of time; intervals of no length vanish."""
    long = end_ns > start_ns
    start, end = (start_ns, end_ns) if long.all() else (start_ns[long], end_ns[long])
    if not start.size:
        return start, end
    if not (start[1:] >= start[:-1]).all():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reached = np.maximum.accumulate(end)
    first = np.flatnonzero(np.concatenate(([True], start[1:] > reached[:-1])))
    return start[first], reached[np.append(first[1:] - 1, start.size - 1)]


class Cover:
    """A union of intervals that can be asked how much of other intervals it covers."""

    def __init__(self, start_ns: Int64, end_ns: Int64) -> None:
        self.start_ns, self.end_ns = merged(start_ns, end_ns)
        self._before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(self.end_ns - self.start_ns)))

    @property
    def total_ns(self) -> int:
        """Length of the union."""
        return int(self._before[-1])

    def until(self, time_ns: Int64) -> Int64:
        """How much it covers before each moment."""
        index = np.searchsorted(self.start_ns, time_ns, side="right")
        whole = self._before[np.maximum(index - 1, 0)]
        if not self.start_ns.size:
            return np.zeros(time_ns.size, dtype=np.int64)
        last = np.maximum(index - 1, 0)
        inside = np.minimum(time_ns, self.end_ns[last]) - self.start_ns[last]
        return np.where(index > 0, whole + inside, 0)

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
    work = np.flatnonzero(trace.gpu_work())
    order = work[np.lexsort((trace.start_ns[work], trace.stream[work], trace.device[work]))]
    same = (trace.stream[order][1:] == trace.stream[order][:-1]) & (trace.device[order][1:] == trace.device[order][:-1])
    return int((same & (trace.start_ns[order][1:] < trace.ends(order)[:-1])).sum())
