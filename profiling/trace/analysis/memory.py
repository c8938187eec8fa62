"""Allocations: peaks per device, and which operators allocated most."""

from dataclasses import dataclass

import numpy as np

from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.grouping import group_by
from gptscope.profiling.trace.work import operators_around

_DEVICE_TYPES = {0: "CPU", 1: "CUDA", 20: "HIP", 6: "HIP", 12: "XPU", 13: "MPS"}


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """The allocator of one device."""

    device: str
    allocations: int
    frees: int
    allocated_bytes: int
    """Sum of all allocations."""
    peak_bytes: int | None
    """Most that was in use at once; None when totals were not recorded."""
    peak_ns: int
    """When that was."""
    reserved_bytes: int | None
    """Most that the caching allocator held."""
    kept_bytes: int
    """Allocated but not freed within the recording."""


@dataclass(frozen=True, slots=True)
class OperatorMemory:
    """One operator's allocations; `aten::empty` and the like count for whoever called them."""

    operator: str
    allocations: int
    allocated_bytes: int
    largest_bytes: int


def device_memory(linked: Linked) -> list[DeviceMemory]:
    """One row per device whose allocator was recorded; where several processes allocate (merged ranks), for each."""
    trace, memory = linked.trace, linked.trace.memory
    process = trace.process_of_track[memory.track]
    groups = group_by(memory.device_type, memory.device_id, process)
    several = len(np.unique(process)) > 1
    table = []
    for number, entry in enumerate(groups.first.tolist()):
        here = groups.of == number
        change, allocated, reserved = memory.bytes[here], memory.allocated[here], memory.reserved[here]
        best = int(np.argmax(allocated))
        kind = _DEVICE_TYPES.get(int(memory.device_type[entry]), f"device type {memory.device_type[entry]}")
        number_of = int(memory.device_id[entry])
        name = kind if number_of < 0 else f"{kind} {number_of}"
        table.append(
            DeviceMemory(
                device=f"{name} of process {trace.tracks[memory.track[entry]].pid}" if several else name,
                allocations=int((change > 0).sum()),
                frees=int((change < 0).sum()),
                allocated_bytes=int(change[change > 0].sum()),
                peak_bytes=int(allocated[best]) if allocated[best] >= 0 else None,
                peak_ns=int(memory.time_ns[here][best]),
                reserved_bytes=int(reserved.max()) if reserved.max() > 0 else None,
                kept_bytes=int(change.sum()),
            )
        )
    return table


def operator_memory(linked: Linked) -> list[OperatorMemory]:
    """Rows by falling sum of allocations, over all devices."""
    trace, memory = linked.trace, linked.trace.memory
    taken = np.flatnonzero(memory.bytes > 0)
    if not taken.size:
        return []
    row = operators_around(trace, linked.nesting, memory.track[taken], memory.time_ns[taken])
    plain = trace.named_so(lambda name: name.startswith(("aten::empty", "aten::resize", "aten::new_empty")))
    for _ in range(8):  # an allocation is the caller's
        up = (row >= 0) & plain[row]
        if not up.any():
            break
        row = np.where(up, linked.nesting.parent[row], row)
    name = np.where(row >= 0, trace.name[row], -1)
    groups = group_by(name)
    size = memory.bytes[taken]
    columns = (groups.sizes(), groups.sums(size), groups.most(size))
    table = [
        OperatorMemory(trace.names[name[entry]] if name[entry] >= 0 else "outside operators", calls, total, largest)
        for entry, calls, total, largest in zip(groups.first.tolist(), *(c.tolist() for c in columns), strict=True)
    ]
    return sorted(table, key=lambda r: (-r.allocated_bytes, r.operator))
