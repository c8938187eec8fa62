"""How busy each device was: union of its work, overlap of compute, copies and communication, idle time."""

from dataclasses import dataclass

import numpy as np

from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.table import Int64


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
        compute = linked.cover(rows[computes])
        busy = linked.cover(rows).total_ns
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
                compute_ns=compute.total_ns,
                copy_ns=linked.cover(rows[copies]).total_ns,
                communication_ns=linked.cover(rows[talks]).total_ns,
                exposed_copy_ns=linked.cover(rows[computes | copies]).total_ns - compute.total_ns,
                exposed_communication_ns=linked.cover(rows[computes | talks]).total_ns - compute.total_ns,
                streams=len(np.unique(trace.stream[rows])),
                name=_device_name(linked, device),
            )
        )
    return table


def host_busy_ns(linked: Linked) -> int:
    """Time during which an operator ran on any thread."""
    return linked.cover(linked.covering_operators).total_ns


def _overlap_ns(linked: Linked, rows: Int64) -> int:
    """Time covered at least twice: a running count of open intervals."""
    start, end = linked.trace.start_ns[rows], linked.trace.ends(rows)
    if linked.range_ns is not None:
        start, end = np.maximum(start, linked.range_ns[0]), np.minimum(end, linked.range_ns[1])
    time = np.concatenate((start, end))
    step = np.concatenate((np.ones(start.size, dtype=np.int64), -np.ones(end.size, dtype=np.int64)))
    order = np.lexsort((step, time))
    time, opened = time[order], np.cumsum(step[order])
    return int(np.diff(time)[opened[:-1] >= 2].sum())


def _device_name(linked: Linked, device: int) -> str:
    properties = linked.trace.metadata.get("deviceProperties")
    for one in properties if isinstance(properties, list) else ():
        if isinstance(one, dict) and one.get("id") == device:
            return str(one.get("name") or "")
    return ""
