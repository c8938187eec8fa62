"""Modules: time in their own operators and with the modules inside, on the host and on the device."""

from dataclasses import dataclass

import numpy as np

from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.names import collapse_layers


@dataclass(frozen=True, slots=True)
class ModuleSums:
    """One module, or with collapsed layers the same module of all layers."""

    path: str
    """Empty: operators outside all modules."""
    depth: int
    calls: int
    """Forward calls that were recorded; backward operators count in the times only."""
    host_self_ns: int
    host_total_ns: int
    device_self_ns: int
    device_total_ns: int
    share: float
    """Of the time of all operators' work: on the device where there is one, else on the host."""


def module_sums(linked: Linked, *, collapse: bool = True) -> list[ModuleSums]:
    """Rows outer before inner; own times of all rows add up to all operators' time. Empty without recorded modules.

    Args:
        linked: The trace.
        collapse: Count the same module of all layers as one.
    """
    trace, nesting = linked.trace, linked.nesting
    if len(nesting.modules) < 2:
        return []
    host = np.zeros(len(nesting.modules), dtype=np.int64)
    device = np.zeros(len(nesting.modules), dtype=np.int64)
    calls = np.zeros(len(nesting.modules), dtype=np.int64)
    rows = linked.operators
    np.add.at(host, nesting.module[rows], nesting.self_ns[rows])
    owned = linked.owner >= 0
    of_work = np.where(owned, nesting.module[linked.owner], 0)
    np.add.at(device, of_work, trace.duration_ns[linked.work])
    np.add.at(calls, nesting.module[linked.begun(nesting.module_calls)], 1)
    own: dict[str, list[int]] = {}
    for number, path in enumerate(nesting.modules):
        sums = own.setdefault(collapse_layers(path) if collapse else path, [0, 0, 0])
        for place, column in enumerate((host, device, calls)):
            sums[place] += int(column[number])
    totals: dict[str, list[int]] = {}
    for path, (host_ns, device_ns, _) in own.items():
        for outer in _with_outer(path):
            sums = totals.setdefault(outer, [0, 0])
            sums[0] += host_ns
            sums[1] += device_ns
    all_ns = int(device.sum() if linked.has_device else host.sum())
    table = []
    for path, (host_total, device_total) in totals.items():
        host_ns, device_ns, count = own.get(path, [0, 0, 0])
        total = device_total if linked.has_device else host_total
        if path or total:
            share = total / all_ns if all_ns else 0.0
            depth = path.count(".") + 1 if path else 0
            table.append(ModuleSums(path, depth, count, host_ns, host_total, device_ns, device_total, share))
    return sorted(table, key=lambda r: _tree_key(r.path, totals, on_device=linked.has_device))


def _with_outer(path: str) -> list[str]:
    """A path and those of all modules around it."""
    parts = path.split(".")
    return [".".join(parts[: i + 1]) for i in range(len(parts))]


def _tree_key(path: str, totals: dict[str, list[int]], *, on_device: bool) -> tuple[tuple[int, str], ...]:
    """Order of a tree whose branches are sorted by falling total time; what lies outside modules comes last."""
    if not path:
        return ((1, ""),)
    return tuple((-totals[outer][1 if on_device else 0], outer) for outer in _with_outer(path))
