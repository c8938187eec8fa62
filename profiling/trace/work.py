"""The pieces of work of a trace that count: device work where there is a device, operators on the CPU otherwise."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gptscope.profiling.trace.intervals import union_ns
from gptscope.profiling.trace.matching import Launched, match_launches, match_operators
from gptscope.profiling.trace.nesting import Nesting
from gptscope.profiling.trace.steps import StepWindows
from gptscope.profiling.trace.table import Int32, Int64, Integers, Trace


@dataclass(frozen=True, slots=True)
class Work:
    """Work inside the profiled steps, one entry per kernel (or operator); arrays of equal length."""

    device: Literal["cpu", "cuda"]
    """`cuda` stands for any device with kernels of its own."""
    row: Int64
    """Row of the trace."""
    owner: Int64
    """Row of the operator that launched it (itself on a CPU), -1 for unknown."""
    self_ns: Int64
    module: Integers
    """Number in `Nesting.modules`."""
    step: Int64
    """Number of the step that it belongs to."""


def work_in(trace: Trace, nesting: Nesting, windows: StepWindows) -> Work:
    """Everything that did work inside the steps."""
    on_device = np.flatnonzero(trace.gpu_work())
    return _on_device(trace, nesting, windows, on_device) if on_device.size else _on_cpu(trace, nesting, windows)


def busy_ns(trace: Trace, work: Work) -> int:
    """Time during which something worked: union of the intervals per device, added over devices."""
    start, end, device = trace.start_ns[work.row], trace.ends(work.row), trace.device[work.row]
    if work.device == "cpu":
        return union_ns(start, end)
    return sum(union_ns(start[device == one], end[device == one]) for one in np.unique(device))


def _on_cpu(trace: Trace, nesting: Nesting, windows: StepWindows) -> Work:
    """Operators that spend time outside the operators in them."""
    rows = np.flatnonzero(trace.operators() & ~trace.unfinished & (nesting.self_ns > 0))
    step = windows.index_of(trace.start_ns[rows])
    rows, step = rows[step >= 0], step[step >= 0]
    return Work("cpu", rows, rows, nesting.self_ns[rows], nesting.module[rows], step)


def _on_device(trace: Trace, nesting: Nesting, windows: StepWindows, rows: Int64) -> Work:
    """Kernels, copies and fills; each belongs to the step that launched it, or else to the one it ran in."""
    launched = match_launches(trace, rows)
    launch, owner = launched.launch, owners(trace, nesting, rows, launched)
    step = steps_of(trace, windows, rows, launch)
    inside = step >= 0
    rows, owner = rows[inside], owner[inside]
    module = np.where(owner >= 0, nesting.module[np.maximum(owner, 0)], 0)
    return Work("cuda", rows, owner, trace.duration_ns[rows], module, step[inside])


def steps_of(trace: Trace, windows: StepWindows, rows: Int64, launch: Int64) -> Int64:
    """Step of each piece of device work: the one that launched it, or else the one it ran in; -1 for none."""
    decided_at = np.where(launch >= 0, trace.start_ns[np.maximum(launch, 0)], trace.start_ns[rows])
    return windows.index_of(decided_at)


def owners(trace: Trace, nesting: Nesting, rows: Int64, launched: Launched) -> Int64:
    """The innermost operator around each launch: by `External id`, or by time on the launching thread; -1 for none."""
    launch = launched.launch
    launch_id = np.where(launch >= 0, trace.external_id[np.maximum(launch, 0)], 0)
    wanted = np.where(trace.external_id[rows] != 0, trace.external_id[rows], launch_id)
    by_id = match_operators(trace, wanted, launched.process)
    missing = (by_id < 0) & (launch >= 0)
    if missing.any():
        at = launch[missing]
        by_id[missing] = operators_around(trace, nesting, trace.track[at], trace.start_ns[at])
    return np.where(by_id >= 0, nesting.stands_for[np.maximum(by_id, 0)], -1)


def operators_around(trace: Trace, nesting: Nesting, track: Int32, time_ns: Int64) -> Int64:
    """Innermost operator that holds each moment on its track, -1 for none."""
    operators = trace.operators() & ~trace.unfinished
    order = nesting.order[operators[nesting.order]]
    found = np.full(time_ns.size, -1, dtype=np.int64)
    for one in np.unique(track):
        of_track = order[trace.track[order] == one]
        if not of_track.size:
            continue
        here = np.flatnonzero(track == one)
        time = time_ns[here]
        position = np.searchsorted(trace.start_ns[of_track], time, side="right") - 1
        candidate = np.where(position >= 0, of_track[np.maximum(position, 0)], -1)
        # The last operator begun before may have ended already: climb to the one that is still open.
        for _ in range(64):
            ended = (candidate >= 0) & (trace.ends(np.maximum(candidate, 0)) <= time)
            if not ended.any():
                break
            candidate = np.where(ended, nesting.parent[np.maximum(candidate, 0)], candidate)
        found[here] = candidate
    return found
