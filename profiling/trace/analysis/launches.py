"""Launches: how many, what they cost the host, and how long kernels waited between launch and start."""

from dataclasses import dataclass

import numpy as np

from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.grouping import group_by
from gptscope.profiling.trace.table import Int64

EMPTY_QUEUE_NS = 15_000
"""A kernel that starts this soon after its launch found an empty queue: the device was waiting for it."""
_GRAPH_WORDS = ("GraphLaunch",)


@dataclass(frozen=True, slots=True)
class LaunchSums:
    """All launches of the trace."""

    launches: int
    """Calls that launched something."""
    launched: int
    """Pieces of device work that were launched by a recorded call."""
    launched_before: int
    """Pieces of device work whose launch has an id but was not recorded: launched before the recording began."""
    call_ns: int
    """Time the host spent in the calls."""
    median_call_ns: float | None
    median_delay_ns: float | None
    """From a launch's beginning to the kernel's; None without recorded launches."""
    p95_delay_ns: float | None
    empty_queue_share: float | None
    """Share of kernels that started within `EMPTY_QUEUE_NS` of their launch: high means the host is the limit."""
    negative_delays: int
    """Kernels that seem to begin before their launch: clocks of host and device differ."""


@dataclass(frozen=True, slots=True)
class GraphSums:
    """CUDA (or HIP) graphs, by the call that launched them."""

    name: str
    launches: int
    kernels: int
    most_kernels: int
    """Of one launch."""
    device_ns: int
    share: float
    """Of all device work."""


@dataclass(frozen=True, slots=True)
class LaunchCalls:
    """All launches by one runtime call."""

    name: str
    launches: int
    launched: int
    """Pieces of device work."""
    call_ns: int
    """Time the host spent in the calls."""
    median_call_ns: float
    median_delay_ns: float | None
    """From a launch's beginning to that of its first work; None where clocks make every delay negative."""
    p95_delay_ns: float | None
    longest_delay_ns: int | None
    empty_queue_share: float | None
    """Share that began within `EMPTY_QUEUE_NS`."""
    device_ns: int
    """Time of what they launched."""


def launch_delays(linked: Linked) -> tuple[Int64, Int64]:
    """Places in `work` that have a launch, and how long each began after it. One launch of a graph counts its first."""
    placed = np.flatnonzero(linked.launch >= 0)
    launch = linked.launch[placed]
    if (launch[1:] <= launch[:-1]).any():  # not one after the other, each for one piece of work
        order = np.lexsort((linked.trace.start_ns[linked.work[placed]], launch))
        launch = launch[order]
        placed = placed[order][np.append([True], launch[1:] != launch[:-1])]
    delay = linked.trace.start_ns[linked.work[placed]] - linked.trace.start_ns[linked.launch[placed]]
    return placed, delay


def launch_sums(linked: Linked) -> LaunchSums:
    """Sum up all launches."""
    trace = linked.trace
    known = linked.launch >= 0
    called = np.zeros(len(trace), dtype=bool)
    called[linked.launch[known]] = True
    calls = np.flatnonzero(called)
    _, delay = launch_delays(linked)
    durations = trace.duration_ns[calls]
    usable = delay[delay >= 0]
    return LaunchSums(
        launches=int(calls.size),
        launched=int(known.sum()),
        launched_before=int((~known & (trace.correlation[linked.work] != 0)).sum()),
        call_ns=int(durations.sum()),
        median_call_ns=float(np.median(durations)) if calls.size else None,
        median_delay_ns=float(np.median(usable)) if usable.size else None,
        p95_delay_ns=float(np.percentile(usable, 95)) if usable.size else None,
        empty_queue_share=float((usable < EMPTY_QUEUE_NS).mean()) if usable.size else None,
        negative_delays=int((delay < 0).sum()),
    )


def launch_calls(linked: Linked) -> list[LaunchCalls]:
    """Rows by falling number of launches; their launches and launched work add up to those of `launch_sums`."""
    trace = linked.trace
    placed, delay = launch_delays(linked)
    if not placed.size:
        return []
    call = linked.launch[placed]
    known = np.flatnonzero(linked.launch >= 0)
    of_call = np.searchsorted(call, linked.launch[known])
    pieces = np.bincount(of_call, minlength=call.size)
    device_ns = np.zeros(call.size, dtype=np.int64)
    np.add.at(device_ns, of_call, trace.duration_ns[linked.work[known]])
    names = trace.name[call]
    table = []
    for name in np.unique(names).tolist():
        here = names == name
        usable = delay[here & (delay >= 0)]
        durations = trace.duration_ns[call[here]]
        table.append(
            LaunchCalls(
                name=trace.names[name],
                launches=int(here.sum()),
                launched=int(pieces[here].sum()),
                call_ns=int(durations.sum()),
                median_call_ns=float(np.median(durations)),
                median_delay_ns=float(np.median(usable)) if usable.size else None,
                p95_delay_ns=float(np.percentile(usable, 95)) if usable.size else None,
                longest_delay_ns=int(usable.max()) if usable.size else None,
                empty_queue_share=float((usable < EMPTY_QUEUE_NS).mean()) if usable.size else None,
                device_ns=int(device_ns[here].sum()),
            )
        )
    return sorted(table, key=lambda r: (-r.launches, r.name))


def graph_sums(linked: Linked) -> list[GraphSums]:
    """Graph launches by name; also other calls that launched many kernels at once."""
    trace = linked.trace
    known = np.flatnonzero(linked.launch >= 0)
    launch = linked.launch[known]
    of_graph = trace.named_so(lambda name: any(word in name for word in _GRAPH_WORDS))
    if not of_graph.any() and (launch[1:] > launch[:-1]).all():  # each launched one piece of work
        return []
    per_launch = group_by(launch)
    rows = launch[per_launch.first]
    sizes, time = per_launch.sizes(), per_launch.sums(trace.duration_ns[linked.work[known]])
    is_graph = of_graph[rows] | (sizes > 1)
    all_ns = int(trace.duration_ns[linked.work].sum())
    groups = group_by(trace.name[rows[is_graph]])
    table = []
    columns = (groups.sizes(), groups.sums(sizes[is_graph]), groups.most(sizes[is_graph]), groups.sums(time[is_graph]))
    for entry, launches, kernels, most, ns in zip(
        groups.first.tolist(), *(column.tolist() for column in columns), strict=True
    ):
        name = trace.name_of(int(rows[is_graph][entry]))
        table.append(GraphSums(name, launches, kernels, most, ns, ns / all_ns if all_ns else 0.0))
    return sorted(table, key=lambda r: -r.device_ns)
