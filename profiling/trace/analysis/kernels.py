"""Kernels by name: what the device's time went to. Without device work: operators on the CPU by their own time."""

from dataclasses import dataclass

import numpy as np

from gptscope.profiling.trace.analysis.linked import Linked, WorkEntries
from gptscope.profiling.trace.analysis.tensor_cores import uses_tensor_cores
from gptscope.profiling.trace.categories import CATEGORIES
from gptscope.profiling.trace.grouping import Groups, group_by, heaviest
from gptscope.profiling.trace.names import collapse_layers, short_name


@dataclass(frozen=True, slots=True)
class KernelSums:
    """One kernel (or copy, fill; without a device one operator) in all its calls."""

    name: str
    short: str
    category: str
    calls: int
    total_ns: int
    """Sum of durations; without a device the operator's own time."""
    mean_ns: float
    min_ns: int
    max_ns: int
    share: float
    """Of the time of all work."""
    tensor_cores: bool | None
    """By its name; None when that does not tell, or on a CPU."""
    bytes: int | None
    """Modelled from the operators' shapes, or as the device counted for copies; of the calls where it is known."""
    bytes_ns: int
    """Time of these calls."""
    flops: int | None
    """Modelled, of the calls where it is known."""
    flops_ns: int
    """Time of these calls."""
    operator: str
    """The operator that most of its time belongs to, empty for unknown."""
    module: str
    """The module that most of its time belongs to, layers counted together."""

    @property
    def bytes_per_s(self) -> float | None:
        """Achieved bandwidth."""
        return self.bytes / self.bytes_ns * 1e9 if self.bytes is not None and self.bytes_ns else None

    @property
    def flops_per_s(self) -> float | None:
        """Achieved compute."""
        return self.flops / self.flops_ns * 1e9 if self.flops is not None and self.flops_ns else None


@dataclass(frozen=True, slots=True)
class CategorySums:
    """One kind of work."""

    category: str
    calls: int
    total_ns: int
    share: float


def kernel_sums(linked: Linked) -> list[KernelSums]:
    """Rows by falling total time; their totals add up to all work."""
    trace, work = linked.trace, linked.entries
    groups = group_by(trace.name[work.row], work.code)
    total = groups.sums(work.own_ns)
    all_ns = int(total.sum())
    (n_bytes, bytes_ns), (flops, flops_ns) = _cost_sums(linked, work, groups)
    owned = work.owner >= 0
    operator = heaviest(groups, np.where(owned, trace.name[work.owner], -1), work.own_ns)
    module = heaviest(groups, np.where(owned, linked.nesting.module[work.owner], 0), work.own_ns)
    columns = (groups.first, groups.sizes(), total, groups.least(work.own_ns), groups.most(work.own_ns))
    rows = []
    for number, (entry, calls, ns, low, high) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        name = trace.names[trace.name[work.row[entry]]]
        rows.append(
            KernelSums(
                name=name,
                short=short_name(name),
                category=CATEGORIES[work.code[entry]],
                calls=calls,
                total_ns=ns,
                mean_ns=ns / calls,
                min_ns=low,
                max_ns=high,
                share=ns / all_ns if all_ns else 0.0,
                tensor_cores=uses_tensor_cores(name) if linked.has_device else None,
                bytes=n_bytes[number],
                bytes_ns=bytes_ns[number],
                flops=flops[number],
                flops_ns=flops_ns[number],
                operator=trace.names[operator[number]] if operator[number] >= 0 else "",
                module=collapse_layers(linked.nesting.modules[module[number]]),
            )
        )
    return sorted(rows, key=lambda r: (-r.total_ns, r.name, r.category))


def category_sums(linked: Linked) -> list[CategorySums]:
    """Rows by falling time; they add up to all work."""
    work = linked.entries
    groups = group_by(work.code)
    total, calls = groups.sums(work.own_ns), groups.sizes()
    all_ns = int(total.sum())
    rows = [
        CategorySums(CATEGORIES[work.code[entry]], int(calls[i]), int(total[i]), int(total[i]) / max(all_ns, 1))
        for i, entry in enumerate(groups.first.tolist())
    ]
    return sorted(rows, key=lambda r: (-r.total_ns, r.category))


def _cost_sums(linked: Linked, work: WorkEntries, groups: Groups) -> list[tuple[list[int | None], list[int]]]:
    """Bytes and FLOPs of each group with the time of the calls that they are known of.

    An operator's cost goes to its longest kernel; its other kernels count as known and move nothing.
    """
    costs, trace = linked.costs, linked.trace
    operator = np.where(work.owner >= 0, costs.counted_at[work.owner], -1)
    chosen = np.zeros(work.row.size, dtype=bool)
    candidates = np.flatnonzero(operator >= 0)
    if not linked.has_device:
        chosen[candidates[work.row[candidates] == operator[candidates]]] = True
    elif candidates.size:
        order = candidates[np.lexsort((work.own_ns[candidates], operator[candidates]))]
        chosen[order[np.append(operator[order][1:] != operator[order][:-1], [True])]] = True
    copied = trace.moved_bytes[work.row]
    sums: list[tuple[list[int | None], list[int]]] = []
    for of_row, counted in ((costs.bytes, copied), (costs.flops, None)):
        value = np.where(operator >= 0, np.where(chosen, of_row[operator], 0), -1)
        if counted is not None:
            value = np.where(counted >= 0, counted, value)
        known = value >= 0
        total, time = groups.sums(np.maximum(value, 0)), groups.sums(np.where(known, work.own_ns, 0))
        sums.append(([int(t) if t else None for t in total.tolist()], time.tolist()))
    return sums
