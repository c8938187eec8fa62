"""Modelled bytes and FLOPs of every operator call in a trace, each piece of work counted once."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gptscope.profiling.trace.grouping import group_by
from gptscope.profiling.trace.nested import Places, above, nearest
from gptscope.profiling.trace.nesting import Nesting
from gptscope.profiling.trace.op_costs import WRAPPERS, has_model, operator_cost
from gptscope.profiling.trace.op_inputs import Cost, Inputs, Tensor, parse_inputs
from gptscope.profiling.trace.table import Bools, Int64, Integers, Trace

_LOOK_AHEAD = 24
"""How many later operators may tell the type of a tensor list by using its result."""
_LISTS = ("aten::cat", "aten::_fused_adam_", "aten::_fused_adamw_")


@dataclass(frozen=True, slots=True)
class TraceCosts:
    """Costs by row of the trace."""

    bytes: Int64
    """-1: not modelled."""
    flops: Int64
    """-1: not modelled; also where only the bytes are known."""
    counted_at: Integers
    """The row whose cost stands for a row: itself, or the costed operator around it; -1 for none."""


class CallInputs:
    """Parsed inputs of operator calls, remembered by what was recorded."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known: dict[tuple[int, int, str | None], Inputs | None] = {}

    def of(self, row: int, list_dtype: str | None = None) -> Inputs | None:
        """The inputs of one call; None when the trace has no shapes."""
        key = (int(self._trace.shapes[row]), int(self._trace.types[row]), list_dtype)
        if key not in self._known:
            dims, types = self._trace.parsed(key[0]), self._trace.parsed(key[1])
            self._known[key] = parse_inputs(dims, types, list_dtype)
        return self._known[key]


def trace_costs(trace: Trace, nesting: Nesting) -> TraceCosts:
    """Cost every modelled operator once: what runs inside it is part of it, a wrapper yields to what it wraps."""
    size = len(trace)
    n_bytes, flops = np.full(size, -1, dtype=np.int64), np.full(size, -1, dtype=np.int64)
    modelled = trace.named_so(has_model)
    rows = nesting.order[modelled[nesting.order]]
    costed = _cost_rows(trace, nesting, rows, n_bytes, flops)
    wrapping = trace.named_so(WRAPPERS.__contains__)
    parent = nesting.parent
    inner = costed & ~wrapping
    outermost = inner & (above(inner, parent) < 0)
    # A wrapper counts where nothing around it, and nothing that counts inside it, does.
    wrappers = np.flatnonzero(costed & wrapping & (nearest(outermost, parent) < 0))
    counted = outermost.copy()
    counted[_innermost_wrappers(wrappers, np.flatnonzero(outermost), parent)] = True
    n_bytes[~counted], flops[~counted] = -1, -1
    return TraceCosts(n_bytes, flops, nearest(counted, parent))


def _innermost_wrappers(wrappers: Int64, outermost: Int64, parent: Places) -> Int64:
    """Wrappers with no costed operator inside, and of those that lie in each other the inner ones."""
    holds = np.zeros(parent.size, dtype=bool)
    for rows in (outermost, wrappers):
        at = np.unique(parent[rows])
        at = at[at >= 0]
        while at.size:
            at = at[~holds[at]]
            holds[at] = True
            at = np.unique(parent[at])
            at = at[at >= 0]
    return wrappers[~holds[wrappers]]


def _cost_rows(trace: Trace, nesting: Nesting, rows: Integers, n_bytes: Int64, flops: Int64) -> Bools:
    """Fill in the costs of modelled operators, one model call per different call; which rows have one."""
    costed = np.zeros(len(trace), dtype=bool)
    if not rows.size:
        return costed
    inputs = CallInputs(trace)
    list_types = _ListTypes(trace, nesting, inputs)
    groups = group_by(trace.name[rows], trace.shapes[rows], trace.types[rows], trace.values[rows])
    costs: list[Cost | None] = []
    for place in groups.first.tolist():
        row = int(rows[place])
        name = trace.names[trace.name[row]]
        call = inputs.of(row, list_types.of(row) if name in _LISTS else None)
        costs.append(None if call is None else operator_cost(name, call, trace.parsed(int(trace.values[row]))))
    some = np.array([c is not None for c in costs], dtype=bool)
    of_bytes = np.array([_known(c.bytes) if c else -1 for c in costs], dtype=np.int64)
    of_flops = np.array([_known(c.flops) if c else -1 for c in costs], dtype=np.int64)
    n_bytes[rows], flops[rows], costed[rows] = of_bytes[groups.of], of_flops[groups.of], some[groups.of]
    return costed


def _known(number: int | None) -> int:
    """A count that fits into 64 bits; -1 for unknown, and for shapes that no memory holds."""
    return number if number is not None and 0 <= number < 2**62 else -1


class _ListTypes:
    """Element types of tensor lists, which the profiler does not record.

    An optimizer's lists have the type of the gradients that were accumulated for tensors of the same sizes; a
    concatenation has the type with which a soon following operator on the thread uses a tensor of its result's sizes.
    """

    def __init__(self, trace: Trace, nesting: Nesting, inputs: CallInputs) -> None:
        self._trace, self._inputs = trace, inputs
        self._order = nesting.order
        self._place: Int64 | None = None
        self._gradients: dict[tuple[int, ...], set[str]] | None = None

    def of(self, row: int) -> str | None:
        """The type, or None when the trace does not tell."""
        shapes = self._trace.parsed(int(self._trace.shapes[row]))
        if not isinstance(shapes, list) or not shapes or not isinstance(shapes[0], list):
            return None
        if self._trace.names[self._trace.name[row]] != "aten::cat":
            return self._of_gradients(shapes[0])
        trace = self._trace
        alike = (trace.name == trace.name[row]) & (trace.shapes == trace.shapes[row])
        for one in np.flatnonzero(alike & (trace.values == trace.values[row]))[:_LOOK_AHEAD].tolist():
            found = self._of_result(one, shapes[0])
            if found is not None:
                return found
        return None

    def _of_gradients(self, sizes: list[Any]) -> str | None:
        if self._gradients is None:
            self._gradients = {}
            rows = self._order[self._trace.named_like("torch::autograd::AccumulateGrad")[self._order]]
            for row in rows.tolist():
                for one in self._inputs.of(row) or []:
                    if isinstance(one, Tensor):
                        self._gradients.setdefault(one.dims, set()).add(one.dtype)
        found = set().union(*(self._gradients.get(tuple(s), set()) for s in sizes if isinstance(s, list)))
        return next(iter(found)) if len(found) == 1 else None

    def _of_result(self, row: int, sizes: list[Any]) -> str | None:
        values = self._trace.parsed(int(self._trace.values[row]))
        try:
            dims = [list(map(int, s)) for s in sizes]
            axis = int(values[1]) % len(dims[0])
            result = tuple(sum(d[i] for d in dims) if i == axis else dims[0][i] for i in range(len(dims[0])))
        except (TypeError, ValueError, IndexError, ZeroDivisionError):
            return None
        if self._place is None:
            self._place = np.full(len(self._trace), -1, dtype=np.int64)
            self._place[self._order] = np.arange(self._order.size)
        place = int(self._place[row])
        end = self._trace.start_ns[row] + self._trace.duration_ns[row]
        for later in self._order[place + 1 : place + 1 + _LOOK_AHEAD].tolist():
            if self._trace.track[later] != self._trace.track[row] or self._trace.start_ns[later] < end:
                continue
            for one in self._inputs.of(later) or []:
                if isinstance(one, Tensor) and one.dims == result and one.count:
                    return one.dtype
        return None
