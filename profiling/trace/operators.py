"""The operator table: what torch's operators took on the CPU's threads, and what their kernels took on a device.

Unlike the kernel table it also holds operators that only call others, so that a total time can be read from it.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gptscope.profiling.records import OperatorRow
from gptscope.profiling.trace.kernels import NS_PER_US, Categories, TensorTypes, shapes_text
from gptscope.profiling.trace.names import collapse_layers
from gptscope.profiling.trace.nesting import Nesting, inside_itself, nest
from gptscope.profiling.trace.steps import StepWindows, step_windows
from gptscope.profiling.trace.table import Int64, Integers, Trace
from gptscope.profiling.trace.trace_costs import CallInputs
from gptscope.profiling.trace.work import work_in


@dataclass(slots=True)
class _Sums:
    """One row while it is collected."""

    first: int
    """Call that stands for the row's shapes and category."""
    shapes: set[int]
    calls: int = 0
    self_ns: int = 0
    total_ns: int = 0
    device_self_ns: int = 0
    device_total_ns: int = 0
    steps: set[int] = field(default_factory=set)
    modules: dict[str, int] = field(default_factory=dict)
    """Module -> time that decides which one is named."""
    kernels: dict[str, int] = field(default_factory=dict)

    def absorb(self, other: "_Sums") -> None:
        """Add another row of the same operator."""
        self.shapes |= other.shapes
        self.calls += other.calls
        self.self_ns += other.self_ns
        self.total_ns += other.total_ns
        self.device_self_ns += other.device_self_ns
        self.device_total_ns += other.device_total_ns
        self.steps |= other.steps
        for sums, more in ((self.modules, other.modules), (self.kernels, other.kernels)):
            for name, ns in more.items():
                sums[name] = sums.get(name, 0) + ns


def operator_table(trace: Trace, steps: StepWindows | None = None) -> list[OperatorRow]:
    """Sum up the operators that began inside the profiled steps.

    Args:
        trace: From `open_trace`.
        steps: Windows that count; None: those that the trace marks, or all of it when it marks none.

    Returns:
        Rows by falling self time. Shapes that do not occur in every step (a KV cache that grows) share one row.
    """
    nesting = nest(trace)
    windows = steps if steps is not None else step_windows(trace)
    device = _DeviceTimes(trace, nesting, windows)
    rows = np.flatnonzero(trace.operators() & ~trace.unfinished)
    rows = rows[nesting.stands_for[rows] == rows]  # others were folded into their caller
    step = windows.index_of(trace.start_ns[rows])
    rows, step = rows[step >= 0], step[step >= 0]
    inputs = CallInputs(trace)
    categories = Categories(trace, nesting, TensorTypes(inputs))
    return [
        _finish(trace, name, sums, inputs, categories, on_device=device.any)
        for name, sums in _sorted(_collect(trace, nesting, rows, step, device))
    ]


class _DeviceTimes:
    """Device time of each operator call, its own and with what lies inside, and the kernels it launched."""

    def __init__(self, trace: Trace, nesting: Nesting, windows: StepWindows) -> None:
        self.any = bool(trace.gpu_work().any())
        self.self_ns = np.zeros(len(trace), dtype=np.int64)
        self.total_ns = np.zeros(len(trace), dtype=np.int64)
        self.kernels: dict[int, list[tuple[str, int]]] = {}
        if not self.any:
            return
        work = work_in(trace, nesting, windows)
        owned = work.owner >= 0
        owner: Integers = work.owner[owned]
        duration = work.self_ns[owned]
        np.add.at(self.self_ns, owner, duration)
        for row, kernel, ns in zip(
            owner.tolist(), trace.name[work.row[owned]].tolist(), duration.tolist(), strict=True
        ):
            self.kernels.setdefault(row, []).append((trace.names[kernel], ns))
        while owner.size:
            np.add.at(self.total_ns, owner, duration)
            above = nesting.parent[owner]
            owner, duration = above[above >= 0], duration[above >= 0]


def _collect(trace: Trace, nesting: Nesting, rows: Int64, step: Int64, device: _DeviceTimes) -> list[tuple[str, _Sums]]:
    paths = [collapse_layers(module) for module in nesting.modules]
    nested = inside_itself(trace, nesting)[rows]
    fine: dict[tuple[int, int], _Sums] = {}
    columns: tuple[npt.NDArray[Any], ...] = (rows, step, trace.name[rows], trace.shapes[rows], nesting.self_ns[rows])
    columns += (trace.duration_ns[rows], nesting.module[rows], nested, device.self_ns[rows], device.total_ns[rows])
    for row, at, name, shape, self_ns, total_ns, module, again, device_self, device_total in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        sums = fine.get((name, shape))
        if sums is None:
            sums = fine[name, shape] = _Sums(row, {shape})
        sums.calls += 1
        sums.self_ns += self_ns
        sums.total_ns += 0 if again else total_ns
        sums.device_self_ns += device_self
        sums.device_total_ns += 0 if again else device_total
        sums.steps.add(at)
        sums.modules[paths[module]] = sums.modules.get(paths[module], 0) + self_ns + device_self
        for kernel, ns in device.kernels.get(row, ()):
            sums.kernels[kernel] = sums.kernels.get(kernel, 0) + ns
    return _merge_rare_shapes(trace, fine, len(set(step.tolist())))


def _merge_rare_shapes(trace: Trace, fine: dict[tuple[int, int], _Sums], steps: int) -> list[tuple[str, _Sums]]:
    table: list[tuple[str, _Sums]] = []
    rare: dict[int, _Sums] = {}
    for (name, _), sums in fine.items():
        if len(sums.steps) == steps:
            table.append((trace.names[name], sums))
        elif name in rare:
            rare[name].absorb(sums)
        else:
            rare[name] = sums
    return table + [(trace.names[name], sums) for name, sums in rare.items()]


def _sorted(table: list[tuple[str, _Sums]]) -> list[tuple[str, _Sums]]:
    return sorted(table, key=lambda row: (-row[1].self_ns, row[0], row[1].first))


def _finish(
    trace: Trace, name: str, sums: _Sums, inputs: CallInputs, categories: Categories, *, on_device: bool
) -> OperatorRow:
    return OperatorRow(
        name=name,
        calls=sums.calls,
        self_time_us=sums.self_ns / NS_PER_US,
        total_time_us=sums.total_ns / NS_PER_US,
        input_shapes=shapes_text(inputs.of(sums.first), len(sums.shapes)),
        category=categories.of_work(sums.first, sums.first, 0),
        module=max(sums.modules, key=lambda module: sums.modules[module]),
        modules=len(sums.modules),
        device_self_time_us=sums.device_self_ns / NS_PER_US if on_device else None,
        device_total_time_us=sums.device_total_ns / NS_PER_US if on_device else None,
        kernels=tuple(sorted(sums.kernels, key=lambda kernel: -sums.kernels[kernel])),
    )
