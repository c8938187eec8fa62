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


def busy_ns_per_device(trace: Trace) -> dict[int, int]:
    """Time during which each device worked: the union of its kernels, copies and fills. Empty without device work."""
    work = trace.gpu_work()
    start, end, device = trace.start_ns[work], trace.end_ns[work], trace.device[work]
    return {int(one): union_ns(start[device == one], end[device == one]) for one in np.unique(device)}


def overlaps_on_streams(trace: Trace) -> int:
    """How many device events begin before an earlier one of the same stream has ended (programmatic launches do)."""
    work = np.flatnonzero(trace.gpu_work())
    order = work[np.lexsort((trace.start_ns[work], trace.stream[work], trace.device[work]))]
    same = (trace.stream[order][1:] == trace.stream[order][:-1]) & (trace.device[order][1:] == trace.device[order][:-1])
    return int((same & (trace.start_ns[order][1:] < trace.end_ns[order][:-1])).sum())
