"""Kernels by name: what the device's time went to. Without device work: operators on the CPU by their own time."""

from dataclasses import dataclass

import numpy as np

from gptscope.profiling.trace.analysis.linked import Linked, WorkEntries
from gptscope.profiling.trace.analysis.tensor_cores import uses_tensor_cores
from gptscope.profiling.trace.categories import CATEGORIES
from gptscope.profiling.trace.grouping import Groups, group_by, heaviest
from gptscope.profiling.trace.names import collapse_layers, short_name
from gptscope.profiling.trace.table import Bools, Int32, Int64, some_rows
from gptscope.profiling.trace.trace_costs import PART


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
    cost, moved = _cost_numbers(linked, work), trace.moved_bytes[work.row]
    operator, module = _at_owners(work, trace.name, -1), _at_owners(work, linked.nesting.module, 0)
    # What is alike in everything is added up once; the tables are sums of these few.
    alike = group_by(trace.name[work.row], work.code, operator, module, cost, (moved >= 0).astype(np.int8))
    one, calls, own_ns = alike.first, alike.sizes(), alike.sums(work.own_ns)
    groups = group_by(trace.name[work.row[one]], work.code[one])
    operator, module = heaviest(groups, operator[one], own_ns), heaviest(groups, module[one], own_ns)
    n_bytes, flops = linked.costs.bytes[cost[one]], linked.costs.flops[cost[one]]
    counted = moved[one] >= 0  # by the device: copies and fills
    all_bytes = np.where(counted, alike.sums(moved), n_bytes * calls) if counted.any() else n_bytes * calls
    bytes_sum, bytes_ns = _known_sums(groups, counted | (n_bytes >= 0), all_bytes, own_ns)
    flops_sum, flops_ns = _known_sums(groups, flops >= 0, flops * calls, own_ns)
    total = groups.sums(own_ns)
    all_ns = int(total.sum())
    low, high = groups.least(alike.least(work.own_ns)), groups.most(alike.most(work.own_ns))
    columns = (one[groups.first], groups.sums(calls), total, low, high)
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
                bytes=bytes_sum[number],
                bytes_ns=bytes_ns[number],
                flops=flops_sum[number],
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


def _at_owners(work: WorkEntries, column: Int32, missing: int) -> Int32:
    """A column at the owner of each entry."""
    if work.owner is work.row:
        return some_rows(column, work.row)
    found = column[work.owner]
    found[work.owner < 0] = missing
    return found


def _cost_numbers(linked: Linked, work: WorkEntries) -> Int32:
    """Number of each entry's cost in `TraceCosts`.

    An operator's cost goes to its longest kernel; its other kernels count as known and move nothing.
    """
    costs = linked.costs
    operator = _at_owners(work, costs.counted_at, -1)
    if linked.has_device:
        candidates = np.flatnonzero(operator >= 0)
        order = candidates[np.lexsort((work.own_ns[candidates], operator[candidates]))]
        chosen = order[np.append(operator[order][1:] != operator[order][:-1], [True])] if order.size else order
    else:
        chosen = np.flatnonzero(operator == work.row)
    number = np.where(operator >= 0, np.int32(PART), np.int32(0))
    number[chosen] = costs.number[operator[chosen]]
    return number


def _known_sums(groups: Groups, known: Bools, value: Int64, ns: Int64) -> tuple[list[int | None], list[int]]:
    """Sum of each group's known values, and their time."""
    total = groups.sums(np.where(known, value, 0)).tolist()
    return [one or None for one in total], groups.sums(np.where(known, ns, 0)).tolist()
