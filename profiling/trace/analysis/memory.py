"""Allocations: peaks per device, and which operators allocated most."""

from dataclasses import dataclass, fields

import numpy as np

from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.grouping import group_by
from gptscope.profiling.trace.points import MemoryEvents
from gptscope.profiling.trace.table import Bools
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


def memory_events(linked: Linked) -> MemoryEvents:
    """Allocations and frees in the range, or all."""
    memory = linked.trace.memory
    if linked.range_ns is None:
        return memory
    return _some(memory, (memory.time_ns >= linked.range_ns[0]) & (memory.time_ns < linked.range_ns[1]))


def _some(memory: MemoryEvents, chosen: Bools) -> MemoryEvents:
    return MemoryEvents(**{field.name: getattr(memory, field.name)[chosen] for field in fields(memory)})


def allocators(linked: Linked) -> list[tuple[str, MemoryEvents]]:
    """Every device's allocator that was recorded; where several processes allocate (merged ranks), of each."""
    trace, memory = linked.trace, memory_events(linked)
    process = trace.process_of_track[memory.track]
    groups = group_by(memory.device_type, memory.device_id, process)
    several = len(np.unique(process)) > 1
    found = []
    for number, entry in enumerate(groups.first.tolist()):
        kind = _DEVICE_TYPES.get(int(memory.device_type[entry]), f"device type {memory.device_type[entry]}")
        number_of = int(memory.device_id[entry])
        name = kind if number_of < 0 else f"{kind} {number_of}"
        name = f"{name} of process {trace.tracks[memory.track[entry]].pid}" if several else name
        found.append((name, _some(memory, groups.of == number)))
    return found


def device_memory(linked: Linked) -> list[DeviceMemory]:
    """One row per allocator."""
    table = []
    for name, memory in allocators(linked):
        change, allocated, reserved = memory.bytes, memory.allocated, memory.reserved
        best = int(np.argmax(allocated))
        table.append(
            DeviceMemory(
                device=name,
                allocations=int((change > 0).sum()),
                frees=int((change < 0).sum()),
                allocated_bytes=int(change[change > 0].sum()),
                peak_bytes=int(allocated[best]) if allocated[best] >= 0 else None,
                peak_ns=int(memory.time_ns[best]),
                reserved_bytes=int(reserved.max()) if reserved.max() > 0 else None,
                kept_bytes=int(change.sum()),
            )
        )
    return table


def operator_memory(linked: Linked) -> list[OperatorMemory]:
    """Rows by falling sum of allocations, over all devices."""
    trace, memory = linked.trace, memory_events(linked)
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
