"""How busy each device was: union of its work, overlap of compute, copies and communication, idle time."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.grouping import group_by
from gptscope.profiling.trace.intervals import overlap_ns
from gptscope.profiling.trace.table import Bools, Int64


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """One device between its first and its last work, or in the range that is looked at; unions count overlaps once."""

    device: int
    window_ns: int
    busy_ns: int
    idle_ns: int
    work_ns: int
    """Sum of durations, overlaps counted as often as they are."""
    overlap_ns: int
    """Time in which at least two pieces of work ran at once."""
    kernels: int
    compute_ns: int
    """Union of kernels that are not communication."""
    copy_ns: int
    communication_ns: int
    exposed_copy_ns: int
    """Copies while nothing was computed."""
    exposed_communication_ns: int
    streams: int
    name: str
    """As the file's device properties call it, empty for unknown."""

    @property
    def busy_share(self) -> float:
        """Of the window."""
        return self.busy_ns / self.window_ns if self.window_ns else 0.0


def device_use(linked: Linked) -> list[DeviceUse]:
    """One row per device that worked."""
    trace = linked.trace
    is_copy = trace.in_categories("gpu_memcpy", "gpu_memset")[linked.work]
    table = []
    for device in linked.devices:
        here = trace.device[linked.work] == device
        rows = linked.work[here]
        talks, copies = linked.communicates[here], is_copy[here]
        computes = ~talks & ~copies
        busy = linked.device_covers[device].total_ns
        covered = partial(_covered_ns, linked, rows, busy)
        compute = covered(computes)
        if linked.range_ns is None:
            window = int(trace.ends(rows).max() - trace.start_ns[rows].min())
        else:
            window = linked.range_ns[1] - linked.range_ns[0]
        table.append(
            DeviceUse(
                device=device,
                window_ns=window,
                busy_ns=busy,
                idle_ns=window - busy,
                work_ns=int(trace.duration_ns[rows].sum()),
                overlap_ns=_overlap_ns(linked, rows),
                kernels=int(trace.in_categories("kernel", "mtia_ccp_events", "hpu_op")[rows].sum()),
                compute_ns=compute,
                copy_ns=covered(copies),
                communication_ns=covered(talks),
                exposed_copy_ns=covered(computes | copies) - compute,
                exposed_communication_ns=covered(computes | talks) - compute,
                streams=group_by(trace.stream[rows]).count,
                name=_device_name(linked, device),
            )
        )
    return table


def host_busy_ns(linked: Linked) -> int:
    """Time during which an operator ran on any thread."""
    return linked.cover(linked.covering_operators).total_ns


def _covered_ns(linked: Linked, rows: Int64, busy_ns: int, chosen: Bools) -> int:
    """Length of the union of some of a device's work."""
    return busy_ns if chosen.all() else linked.cover(rows[chosen]).total_ns


def _overlap_ns(linked: Linked, rows: Int64) -> int:
    """Time covered at least twice, inside the range."""
    start, end = linked.trace.start_ns[rows], linked.trace.ends(rows)
    if linked.range_ns is not None:
        start, end = np.maximum(start, linked.range_ns[0]), np.minimum(end, linked.range_ns[1])
    return overlap_ns(start, end)


def _device_name(linked: Linked, device: int) -> str:
    properties = linked.trace.metadata.get("deviceProperties")
    for one in properties if isinstance(properties, list) else ():
        if isinstance(one, dict) and one.get("id") == device:
            return str(one.get("name") or "")
    return ""
