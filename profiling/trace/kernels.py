"""The kernel table: what the time of the profiled steps went to.

On a device a row is a kernel, copy or fill; on a CPU an operator that does work itself, by self time. Rows are told
apart by name, input types, module with its layer number left out, and input shapes; shapes that do not occur in every
step (a KV cache that grows) share one row.
"""

from dataclasses import dataclass, field

import numpy as np

from gptscope.profiling.records import KernelRow
from gptscope.profiling.trace.categories import category_by_name, category_of
from gptscope.profiling.trace.names import collapse_layers, row_label
from gptscope.profiling.trace.nesting import Nesting, nest
from gptscope.profiling.trace.op_inputs import UNKNOWN_TYPE, Inputs, Tensor, all_tensors
from gptscope.profiling.trace.steps import StepWindows, step_windows
from gptscope.profiling.trace.table import GENERATED_PREFIX, Trace
from gptscope.profiling.trace.trace_costs import CallInputs, TraceCosts, trace_costs
from gptscope.profiling.trace.work import Work, work_in

NS_PER_US = 1e3
Key = tuple[str, str, tuple[str, ...], str]
"""Name, module, types, category: what always tells rows apart."""


@dataclass(slots=True)
class _Row:
    """Sums of one row while it is collected."""

    shapes: set[int]
    owner: int
    """Operator call that stands for the row's inputs."""
    calls: int = 0
    self_ns: int = 0
    total_ns: int = 0
    bytes: int | None = 0
    flops: int | None = 0
    steps: set[int] = field(default_factory=set)

    def absorb(self, other: "_Row") -> None:
        """Add another row of the same key."""
        self.shapes |= other.shapes
        self.calls += other.calls
        self.self_ns += other.self_ns
        self.total_ns += other.total_ns
        self.bytes = None if self.bytes is None or other.bytes is None else self.bytes + other.bytes
        self.flops = None if self.flops is None or other.flops is None else self.flops + other.flops
        self.steps |= other.steps


def kernel_table(trace: Trace, steps: StepWindows | None = None, *, collapse: bool = True) -> list[KernelRow]:
    """Sum up the work inside the profiled steps.

    Args:
        trace: From `open_trace`.
        steps: Windows that count; None: those that the trace marks, or all of it when it marks none.
        collapse: Leave layer numbers out of module paths, so that all layers share a row.

    Returns:
        Rows by falling self time. Their self times add up to all work, their shares to 1.
    """
    nesting = nest(trace)
    work = work_in(trace, nesting, steps if steps is not None else step_windows(trace))
    costs = _costs_of_work(trace, work, trace_costs(trace, nesting))
    inputs = CallInputs(trace)
    rows = _collect(trace, nesting, work, costs, inputs, collapse=collapse)
    all_ns = sum(row.self_ns for _, row in rows)
    table = [_finish(trace, inputs, key, row, all_ns) for key, row in rows]
    return sorted(table, key=lambda r: (-r.self_time_us, r.name, r.module, r.input_shapes))


def _costs_of_work(trace: Trace, work: Work, costs: TraceCosts) -> dict[int, tuple[int | None, int | None]]:
    """Bytes and FLOPs of each entry of `work`: an operator's cost goes to its longest kernel, the others move nothing.

    Entries that are missing are not modelled. An entry that is part of a costed operator but not its longest kernel has
    (0, 0): it was counted there.
    """
    chosen: dict[int, int] = {}
    operators = np.where(work.owner >= 0, costs.counted_at[work.owner], -1)
    part_of = {int(entry): int(operators[entry]) for entry in np.flatnonzero(operators >= 0)}
    for entry, operator in part_of.items():
        best = chosen.get(operator)
        if work.device == "cpu":
            if int(work.owner[entry]) == operator:
                chosen[operator] = entry
        elif best is None or work.self_ns[entry] > work.self_ns[best]:
            chosen[operator] = entry
    result: dict[int, tuple[int | None, int | None]] = {}
    for entry, operator in part_of.items():
        if chosen.get(operator) == entry:
            number = int(costs.number[operator])
            n_bytes, flops = int(costs.bytes[number]), int(costs.flops[number])
            result[entry] = (None if n_bytes < 0 else n_bytes, None if flops < 0 else flops)
        else:
            result[entry] = (0, 0)
    recorded = trace.moved_bytes[work.row]
    for entry in np.flatnonzero(recorded >= 0).tolist():  # copies and fills: the device counted, no model is needed
        result[entry] = (int(recorded[entry]), None)
    return result


def _collect(
    trace: Trace,
    nesting: Nesting,
    work: Work,
    costs: dict[int, tuple[int | None, int | None]],
    inputs: CallInputs,
    *,
    collapse: bool,
) -> list[tuple[Key, _Row]]:
    types = TensorTypes(inputs)
    categories = Categories(trace, nesting, types)
    paths = [collapse_layers(m) if collapse else m for m in nesting.modules]
    fine: dict[tuple[Key, int], _Row] = {}
    names, shapes = trace.name.tolist(), trace.shapes.tolist()
    columns = (work.row, work.owner, work.self_ns, work.module, work.step, trace.duration_ns[work.row])
    for entry, (row, owner, self_ns, module, step, total) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        key = (
            trace.names[names[row]],
            paths[module],
            types(owner) if owner >= 0 else (),
            categories.of_work(row, owner, module),
        )
        shape = shapes[owner] if owner >= 0 else 0
        sums = fine.get((key, shape))
        if sums is None:
            sums = fine[key, shape] = _Row({shape}, owner)
        n_bytes, flops = costs.get(entry, (None, None))
        sums.absorb(_Row({shape}, owner, 1, self_ns, total, n_bytes, flops, {step}))
    return _merge_rare_shapes(fine, len(set(work.step.tolist())))


def _merge_rare_shapes(fine: dict[tuple[Key, int], _Row], steps: int) -> list[tuple[Key, _Row]]:
    """Rows whose shapes occur in every step stay; the others of a key become one row."""
    rows: list[tuple[Key, _Row]] = []
    rare: dict[Key, _Row] = {}
    for (key, _), row in fine.items():
        if len(row.steps) == steps:
            rows.append((key, row))
        elif key in rare:
            rare[key].absorb(row)
        else:
            rare[key] = row
    return rows + list(rare.items())


def _finish(trace: Trace, inputs: CallInputs, key: Key, row: _Row, all_ns: int) -> KernelRow:
    name, module, dtypes, category = key
    call = inputs.of(row.owner) if row.owner >= 0 else None
    return KernelRow(
        name=name,
        category=category,
        calls=row.calls,
        self_time_us=row.self_ns / NS_PER_US,
        total_time_us=row.total_ns / NS_PER_US,
        share=row.self_ns / all_ns if all_ns else 0.0,
        module=module,
        input_shapes=shapes_text(call, len(row.shapes)),
        dtypes=dtypes,
        bytes=row.bytes or None,  # 0: every call was counted at the operator that it is a part of
        flops=row.flops or None,
        label=row_label(
            name,
            module,
            dtypes,
            product=category == "GEMM" and bool(row.flops),
            one_row=call is not None and _one_row(trace, row.owner, call),
        ),
    )


def shapes_text(call: Inputs | None, shapes: int) -> str:
    """The shapes of a call's tensors; `shapes` is how many different calls it stands for."""
    if not call:
        return ""
    parts = []
    for one in call:
        if isinstance(one, Tensor):
            parts.append("×".join(map(str, one.dims)) or "1")
        elif one:
            parts.append(f"{len(one)} tensors")
    text = ", ".join(parts)
    return f"{text} and {shapes - 1} more" if shapes > 1 else text


def _one_row(trace: Trace, owner: int, call: Inputs) -> bool:
    """Whether a matrix product has a single row: then its time is that of reading the matrix."""
    first = call[1] if trace.names[trace.name[owner]] in {"aten::addmm", "aten::baddbmm"} else call[0]
    if not isinstance(first, Tensor) or len(first.dims) < 2:
        return False
    rows = first.dims[-2] if len(first.dims) == 3 and "bmm" in trace.names[trace.name[owner]] else _rows(first)
    return rows == 1


def _rows(x: Tensor) -> int:
    return x.count // x.dims[-1] if x.dims[-1] else 0


class TensorTypes:
    """Types of the tensors among a call's inputs, in order, each once. Plain numbers count only among themselves."""

    def __init__(self, inputs: CallInputs) -> None:
        self._inputs = inputs

    def __call__(self, owner: int) -> tuple[str, ...]:
        tensors = all_tensors(self._inputs.of(owner) or [])
        deciding = [t for t in tensors if t.dims] or tensors
        return tuple(dict.fromkeys(t.dtype for t in deciding if t.dtype != UNKNOWN_TYPE))


class Categories:
    """Categories of operators, owners before what they own."""

    def __init__(self, trace: Trace, nesting: Nesting, types: TensorTypes) -> None:
        self._trace, self._nesting = trace, nesting
        self._types = types
        self._of_operator: dict[int, str] = {}
        self._decide: dict[tuple[int, str | None, int, bool, bool], str] = {}

    def of_work(self, row: int, owner: int, module: int) -> str:
        """Category of one entry of work."""
        if row == owner:
            generated = self._trace.names[self._trace.name[row]].startswith(GENERATED_PREFIX)
            return "elementwise" if generated else self._operator(row)  # fused pointwise loops and reductions
        name = self._trace.names[self._trace.name[row]]
        by_owner = self._operator(owner) if owner >= 0 else "other"
        own = category_by_name(name)
        if by_owner == "other" or own == "communication":
            return category_of(name, module=self._nesting.modules[module])
        return by_owner

    def _operator(self, row: int) -> str:
        known = self._of_operator
        chain = []
        while row >= 0 and row not in known:
            chain.append(row)
            row = int(self._nesting.parent[row])
        owner = known[row] if row >= 0 else None
        for one in reversed(chain):
            known[one] = owner = self._own(one, owner)
        return str(owner)

    def _own(self, row: int, owner: str | None) -> str:
        trace, nesting = self._trace, self._nesting
        casts = trace.names[trace.name[row]] == "aten::copy_" and len(self._types(row)) > 1
        key = (int(trace.name[row]), owner, int(nesting.module[row]), bool(nesting.in_optimizer[row]), casts)
        if key not in self._decide:
            self._decide[key] = category_of(
                trace.names[key[0]], owner=owner, module=nesting.modules[key[2]], in_optimizer=key[3], casts=casts
            )
        return self._decide[key]
