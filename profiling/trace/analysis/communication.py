"""Collectives: their time, and how much of it no computation hides."""

from dataclasses import dataclass

import numpy as np

from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.grouping import group_by
from gptscope.profiling.trace.intervals import Cover
from gptscope.profiling.trace.names import short_name
from gptscope.profiling.trace.table import Trace


@dataclass(frozen=True, slots=True)
class CollectiveSums:
    """One collective, by the name that the trace gives it, or else by its kernel's."""

    name: str
    calls: int
    total_ns: int
    exposed_ns: int
    """While no other kernel ran on the device, each call by itself."""
    mean_ns: float
    longest_ns: int


def collective_name(trace: Trace, row: int) -> str:
    """What the trace calls the collective of a kernel, or else the kernel's name."""
    named = trace.texts[trace.collective[row]].decode(errors="replace")
    return named or short_name(trace.name_of(row))


def collective_sums(linked: Linked) -> list[CollectiveSums]:
    """Rows by falling time."""
    trace = linked.trace
    talking = linked.work[linked.communicates]
    if not talking.size:
        return []
    is_copy = trace.in_categories("gpu_memcpy", "gpu_memset")[linked.work]
    computing = linked.work[~linked.communicates & ~is_copy]
    exposed = np.zeros(talking.size, dtype=np.int64)
    for device in linked.devices:
        here = trace.device[talking] == device
        rows = computing[trace.device[computing] == device]
        cover = Cover.of_rows(trace, rows)
        start, end = trace.start_ns[talking[here]], trace.ends(talking[here])
        exposed[here] = end - start - cover.within(start, end)
    collective = trace.collective[talking]
    groups = group_by(collective, np.where(collective > 0, 0, trace.name[talking]))
    duration = trace.duration_ns[talking]
    columns = (groups.sizes(), groups.sums(duration), groups.sums(exposed), groups.most(duration))
    table = []
    for entry, calls, total, bare, longest in zip(groups.first.tolist(), *(c.tolist() for c in columns), strict=True):
        name = collective_name(trace, int(talking[entry]))
        table.append(CollectiveSums(name, calls, total, bare, total / calls, longest))
    return sorted(table, key=lambda r: (-r.total_ns, r.name))
