"""Modelled bytes and FLOPs of every operator call in a trace, each piece of work counted once."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gptscope.profiling.trace.grouping import group_by
from gptscope.profiling.trace.nested import Places, above, nearest
from gptscope.profiling.trace.nesting import Nesting
from gptscope.profiling.trace.op_costs import WRAPPERS, has_model, operator_cost
from gptscope.profiling.trace.op_inputs import Cost, Inputs, Tensor, parse_inputs
from gptscope.profiling.trace.table import Int64, Trace

_LOOK_AHEAD = 24
"""How many later operators may tell the type of a tensor list by using its result."""
PART = 1
"""Number of a cost that moves and computes nothing."""
_LISTS = ("aten::cat", "aten::_fused_adam_", "aten::_fused_adamw_")


@dataclass(frozen=True, slots=True)
class TraceCosts:
    """Costs by row of the trace; equal calls share one."""

    number: Places
    """Of the cost of each row that counts: 0 for none. `PART` is that of what is counted at another row."""
    counted_at: Places
    """The row whose cost stands for a row: itself, or the costed operator around it; -1 for none."""
    bytes: Int64
    """By number; -1: not modelled."""
    flops: Int64
    """By number; -1: not modelled; also where only the bytes are known."""


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
    modelled = np.zeros(len(trace), dtype=bool)
    modelled[nesting.order] = trace.named_so(has_model)[nesting.order]
    number, costs = _cost_rows(trace, nesting, np.flatnonzero(modelled).astype(np.int32))
    costed = np.array([cost is not None for cost in costs], dtype=bool)[number]
    wrapping = trace.named_so(WRAPPERS.__contains__)
    inner = costed & ~wrapping
    around = above(inner, nesting.parent)
    outermost = inner & (around < 0)
    counted_at = nearest(outermost, around)
    # A wrapper counts where nothing around it, and nothing that counts inside it, does.
    wrappers = costed & wrapping & (counted_at < 0)
    if wrappers.any():
        holder = above(wrappers, nesting.parent)
        wrappers[holder[(holder >= 0) & (outermost | wrappers)]] = False
        np.copyto(counted_at, nearest(wrappers, nesting.parent), where=counted_at < 0)
    number[~(outermost | wrappers)] = 0
    return TraceCosts(
        number,
        counted_at,
        np.array([_known(cost.bytes) if cost else -1 for cost in costs], dtype=np.int64),
        np.array([_known(cost.flops) if cost else -1 for cost in costs], dtype=np.int64),
    )


def _cost_rows(trace: Trace, nesting: Nesting, rows: Places) -> tuple[Places, list[Cost | None]]:
    """For all rows the number of their cost, and the costs: one model call per different call."""
    number = np.zeros(len(trace), dtype=np.int32)
    costs: list[Cost | None] = [None, Cost(0, 0)]
    if not rows.size:
        return number, costs
    inputs = CallInputs(trace)
    list_types = _ListTypes(trace, nesting, inputs)
    groups = group_by(trace.name[rows], trace.shapes[rows], trace.types[rows], trace.values[rows])
    for place in groups.first.tolist():
        row = int(rows[place])
        name = trace.names[trace.name[row]]
        call = inputs.of(row, list_types.of(row) if name in _LISTS else None)
        costs.append(None if call is None else operator_cost(name, call, trace.parsed(int(trace.values[row]))))
    number[rows] = groups.of + np.int32(PART + 1)
    return number, costs


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
