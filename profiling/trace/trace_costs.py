"""Modelled bytes and FLOPs of every operator call in a trace, each piece of work counted once."""

from dataclasses import dataclass
from typing import Any

from gptscope.profiling.trace.nesting import Nesting
from gptscope.profiling.trace.op_costs import WRAPPERS, has_model, operator_cost
from gptscope.profiling.trace.op_inputs import Cost, Inputs, Tensor, parse_inputs
from gptscope.profiling.trace.table import Trace

_LOOK_AHEAD = 24
"""How many later operators may tell the type of a tensor list by using its result."""
_LISTS = ("aten::cat", "aten::_fused_adam_", "aten::_fused_adamw_")


@dataclass(frozen=True, slots=True)
class TraceCosts:
    """Costs by row of the trace; a row that is missing has no modelled cost of its own."""

    costs: dict[int, Cost]
    covered_by: dict[int, int]
    """Operator inside a costed one -> that one, which counts for both."""


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
    inputs = CallInputs(trace)
    list_types = _ListTypes(trace, nesting, inputs)
    costs: dict[int, Cost] = {}
    covered_by: dict[int, int] = {}
    known: dict[tuple[int, int, int, int, str | None], Cost | None] = {}

    def cost_of(row: int) -> Cost | None:
        name = trace.names[trace.name[row]]
        list_dtype = list_types.of(row) if name in _LISTS else None
        key = (int(trace.name[row]), int(trace.shapes[row]), int(trace.types[row]), int(trace.values[row]), list_dtype)
        if key not in known:
            call = inputs.of(row, list_dtype)
            known[key] = None if call is None else operator_cost(name, call, trace.parsed(int(trace.values[row])))
        return known[key]

    operators = [row for row in nesting.order.tolist() if has_model(trace.names[trace.name[row]])]
    modelled = set(operators)
    parents = nesting.parent
    for row in nesting.order.tolist():
        parent = int(parents[row])
        owner = covered_by.get(parent, parent if parent in costs else -1) if parent >= 0 else -1
        if owner >= 0:
            covered_by[row] = owner
        elif row in modelled and trace.names[trace.name[row]] not in WRAPPERS:
            cost = cost_of(row)
            if cost is not None:
                costs[row] = cost
    holds_cost: set[int] = set()
    for row in reversed(nesting.order.tolist()):
        if row not in costs and row in modelled and row not in covered_by and row not in holds_cost:
            cost = cost_of(row)
            if cost is not None:
                costs[row] = cost
        if (row in costs or row in holds_cost) and parents[row] >= 0:
            holds_cost.add(int(parents[row]))
    return TraceCosts(costs, covered_by)


class _ListTypes:
    """Element types of tensor lists, which the profiler does not record.

    An optimizer's lists have the type of the gradients that were accumulated for tensors of the same sizes; a
    concatenation has the type with which a soon following operator on the thread uses a tensor of its result's sizes.
    """

    def __init__(self, trace: Trace, nesting: Nesting, inputs: CallInputs) -> None:
        self._trace, self._inputs = trace, inputs
        self._order = nesting.order
        self._place: dict[int, int] | None = None
        self._gradients: dict[tuple[int, ...], set[str]] | None = None
        self._known: dict[tuple[int, int], str | None] = {}

    def of(self, row: int) -> str | None:
        """The type, or None when the trace does not tell."""
        shapes = self._trace.parsed(int(self._trace.shapes[row]))
        if not isinstance(shapes, list) or not shapes or not isinstance(shapes[0], list):
            return None
        if self._trace.names[self._trace.name[row]] != "aten::cat":
            return self._of_gradients(shapes[0])
        key = (int(self._trace.shapes[row]), int(self._trace.values[row]))
        if self._known.get(key) is None:
            self._known[key] = self._of_result(row, shapes[0])
        return self._known[key]

    def _of_gradients(self, sizes: list[Any]) -> str | None:
        if self._gradients is None:
            self._gradients = {}
            names = [i for i, n in enumerate(self._trace.names) if n == "torch::autograd::AccumulateGrad"]
            for row in self._order.tolist():
                if self._trace.name[row] in names:
                    call = self._inputs.of(row) or []
                    for one in call:
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
            self._place = {r: i for i, r in enumerate(self._order.tolist())}
        place = self._place[row]
        end = self._trace.start_ns[row] + self._trace.duration_ns[row]
        for later in self._order[place + 1 : place + 1 + _LOOK_AHEAD].tolist():
            if self._trace.track[later] != self._trace.track[row] or self._trace.start_ns[later] < end:
                continue
            for one in self._inputs.of(later) or []:
                if isinstance(one, Tensor) and one.dims == result and one.count:
                    return one.dtype
        return None
