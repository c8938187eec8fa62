"""What each step's time went to, in parts that add up to it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.intervals import Cover
from gptscope.profiling.trace.steps import step_marks
from gptscope.profiling.trace.table import Int64

PARTS = ("compute", "communication", "copy", "runtime", "data loading", "operators", "other")
"""In this order: a moment counts for the first part that has something in it."""
DATA_LOADING = ("enumerate(DataLoader)", "DataLoader", "[pl][profile][_EvaluationLoop]", "dataloader")


@dataclass(frozen=True, slots=True)
class StepTimes:
    """One step as the CPU saw it; without marked steps the whole trace."""

    name: str
    start_ns: int
    wall_ns: int
    device_busy_ns: int
    """Union of device work inside, added over devices."""
    parts_ns: dict[str, int]
    """`PARTS` -> time; they add up to `wall_ns`. Device work hides what the host did meanwhile."""
    finished: bool
    """False: the recording ended inside it."""


def data_loading_rows(linked: Linked) -> Int64:
    """Rows of ranges that PyTorch marks around loading a batch."""
    return np.flatnonzero(linked.trace.named_so(lambda name: any(part in name for part in DATA_LOADING)))


def step_times(linked: Linked) -> list[StepTimes]:
    """One row per step, in order of time; of a range the part of each step that lies in it."""
    trace = linked.trace
    windows = linked.windows
    start, end = windows.start_ns, windows.end_ns
    if linked.range_ns is not None:
        inside = (start < linked.range_ns[1]) & (end > linked.range_ns[0])
        start, end = start[inside], end[inside]
    if not start.size:
        return []
    names, finished = _names(linked, start)
    if linked.range_ns is not None:  # after the names: they are found by the marks' own beginnings
        start, end = np.maximum(start, linked.range_ns[0]), np.minimum(end, linked.range_ns[1])
    union: Cover | None = None
    covered = np.zeros(start.size, dtype=np.int64)
    parts: list[Int64] = []
    for rows in _layers(linked):
        before = covered
        if rows.size:
            union = Cover.of_rows(trace, rows, union)
            covered = union.within(start, end)
        parts.append(covered - before)
    parts.append(end - start - covered)
    busy = np.zeros(start.size, dtype=np.int64)
    for cover in linked.device_covers.values():
        busy += cover.within(start, end)
    return [
        StepTimes(
            name=names[i],
            start_ns=int(start[i]),
            wall_ns=int(end[i] - start[i]),
            device_busy_ns=int(busy[i]),
            parts_ns={part: int(column[i]) for part, column in zip(PARTS, parts, strict=True)},
            finished=finished[i],
        )
        for i in range(start.size)
    ]


def _layers(linked: Linked) -> Iterator[Int64]:
    """Rows of each of `PARTS` but the last, made when their turn comes."""
    trace, talks = linked.trace, linked.communicates
    is_copy = trace.in_categories("gpu_memcpy", "gpu_memset")[linked.work]
    yield linked.work[~talks & ~is_copy]
    yield linked.work[talks]
    yield linked.work[is_copy & ~talks]
    yield np.flatnonzero(trace.launches() & ~trace.unfinished)
    yield data_loading_rows(linked)
    yield _outermost_operators(linked)


def _outermost_operators(linked: Linked) -> Int64:
    """Also those that began before the range."""
    trace = linked.trace
    return np.flatnonzero(trace.operators() & ~trace.unfinished & (linked.nesting.parent < 0))


def _names(linked: Linked, start: Int64) -> tuple[list[str], list[bool]]:
    if not linked.windows.marked:
        return ["whole trace"] * start.size, [True] * start.size
    trace = linked.trace
    by_start = {int(trace.start_ns[row]): row for row in step_marks(trace).tolist()}
    rows = [by_start[time] for time in start.tolist()]
    return [trace.name_of(row) for row in rows], [not bool(trace.unfinished[row]) for row in rows]
