"""The profiled steps of a trace: only work inside them counts."""

from dataclasses import dataclass

import numpy as np

from gptscope.profiling.trace.table import STEP_PREFIX, Int64, Trace


@dataclass(frozen=True, slots=True)
class StepWindows:
    """Beginning and end of every profiled step, in order of time. Without any the whole trace is one window."""

    start_ns: Int64
    end_ns: Int64
    marked: bool
    """False: the trace marks no steps."""

    @property
    def count(self) -> int:
        """Number of windows."""
        return int(self.start_ns.size)

    @property
    def wall_ns(self) -> int:
        """Time inside the windows."""
        return int((self.end_ns - self.start_ns).sum())

    def index_of(self, time_ns: Int64) -> Int64:
        """Number of the window that holds each time; -1 for those outside."""
        if not self.count:
            return np.full(time_ns.size, -1, dtype=np.int64)
        index = np.searchsorted(self.start_ns, time_ns, side="right") - 1
        return np.where((index >= 0) & (time_ns < self.end_ns[np.maximum(index, 0)]), index, -1)


def step_marks(trace: Trace) -> Int64:
    """Rows of the marks around steps that count, in the order of the file."""
    marks = np.flatnonzero(trace.named_like(STEP_PREFIX) & ~trace.in_categories("gpu_user_annotation"))
    if not marks.size:
        return marks
    process = trace.process_of_track[trace.track[marks]]
    of_most: Int64 = marks[process == np.bincount(process).argmax()]
    return of_most


def step_windows(trace: Trace) -> StepWindows:
    """Windows of `ProfilerStep#N`, as the CPU saw them; the last one is never dropped.

    A step that was cut off by the end of the recording keeps its window to the trace's end. Where several processes
    mark steps (merged ranks, which go together), those of the one that marks most of them count.
    """
    marks = step_marks(trace)
    if marks.size:
        order = np.argsort(trace.start_ns[marks], kind="stable")
        return StepWindows(trace.start_ns[marks][order], trace.ends(marks)[order], marked=True)
    work = trace.gpu_work() | trace.operators() | trace.launches()
    if not work.any():
        return StepWindows(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), marked=False)
    first, last = trace.span_of(work)
    # One more than the last end: a window does not hold its own end, but an event of no length may lie there.
    return StepWindows(np.array([first], dtype=np.int64), np.array([last + 1], dtype=np.int64), marked=False)
