"""Copies and fills on devices with their bandwidth."""

from dataclasses import dataclass

import numpy as np

from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.grouping import group_by


@dataclass(frozen=True, slots=True)
class CopySums:
    """One kind of copy, by its name."""

    name: str
    kind: str
    """`gpu_memcpy` or `gpu_memset`."""
    calls: int
    total_ns: int
    bytes: int | None
    """As the device counted; None when it did not."""
    bytes_per_s: float | None
    """Of those copies whose bytes are known, taken together; None when they took no time that was measured."""
    pageable: bool
    """The host's memory was not pinned."""


def copy_sums(linked: Linked) -> list[CopySums]:
    """Rows by falling time."""
    trace = linked.trace
    rows = linked.work[trace.in_categories("gpu_memcpy", "gpu_memset")[linked.work]]
    groups = group_by(trace.name[rows], trace.category[rows])
    moved, duration = trace.moved_bytes[rows].astype(np.int64), trace.duration_ns[rows]
    counted = moved >= 0  # also those of no measured time: whole microseconds are rounded both ways
    total, calls, known = groups.sums(duration), groups.sizes(), groups.sums((moved >= 0).astype(np.int64))
    n_bytes = groups.sums(np.maximum(moved, 0))
    rated_bytes, rated_ns = groups.sums(np.where(counted, moved, 0)), groups.sums(np.where(counted, duration, 0))
    table = []
    for i, entry in enumerate(groups.first.tolist()):
        row = int(rows[entry])
        table.append(
            CopySums(
                name=trace.name_of(row),
                kind=trace.category_of(row),
                calls=int(calls[i]),
                total_ns=int(total[i]),
                bytes=int(n_bytes[i]) if known[i] else None,
                bytes_per_s=float(rated_bytes[i]) / float(rated_ns[i]) * 1e9 if rated_ns[i] else None,
                pageable="Pageable" in trace.name_of(row),
            )
        )
    return sorted(table, key=lambda r: (-r.total_ns, r.name))
