"""Who lies inside whom on the CPU's threads: parents, self times, modules and optimizer scopes of operators."""

from dataclasses import dataclass

import numpy as np

from gptscope.profiling.trace.grouping import group_by
from gptscope.profiling.trace.nested import NestedRows, Places, above, nearest, nest_rows
from gptscope.profiling.trace.table import Bools, Int64, Trace, some_rows

MODULE_PREFIX = "module: "
"""Ranges with such names are what the worker records around every module's forward pass."""
PYTHON_MODULE_PREFIX = "nn.Module: "
"""Calls of modules as `with_modules` or `with_stack` record them, by class and number."""
_USUAL_LEVELS = 64
"""Programs nest operators hardly deeper."""
OPTIMIZER_PREFIXES = ("Optimizer.step#", "Optimizer.zero_grad#", MODULE_PREFIX + "optimizer")


@dataclass(frozen=True, slots=True)
class Nesting:
    """Per row of the trace; rows that are neither operators nor annotations keep the missing values."""

    parent: Places
    """Row of the innermost enclosing operator, -1 for none; annotations in between do not count."""
    self_ns: Int64
    """Duration without the operators inside, never negative."""
    module: Places
    """Number of the innermost module in `modules`; 0 is none."""
    modules: list[str]
    in_optimizer: Bools
    order: Places
    """Operators and annotations, outer before inner, thread by thread."""
    module_calls: Places
    """Rows that are calls of a module, as recorded around its forward pass."""
    stands_for: Places
    """Row of the operator that counts for a row: itself, or the caller of the same name that it was folded into."""


def nest(trace: Trace) -> Nesting:
    """Find parents and scopes of all operators by their times on each thread.

    Backward operators carry the sequence number of the forward operator that asked for them, and get its module.
    """
    is_op = trace.operators() & ~trace.unfinished  # a copy
    of_module = trace.named_like(MODULE_PREFIX) | (
        trace.named_like(PYTHON_MODULE_PREFIX) & trace.in_categories("python_function")
    )
    scopes = trace.annotations() | of_module
    is_op &= ~of_module
    rows = np.flatnonzero(is_op | scopes).astype(np.int32)
    nested = nest_rows(*(some_rows(column, rows) for column in (trace.track, trace.start_ns, trace.duration_ns)))
    order, up = rows[nested.order], nested.parent
    counts = is_op[order]
    op_up = above(counts, up)
    size = len(trace)
    parent = np.full(size, -1, dtype=np.int32)
    parent[order] = np.where(op_up >= 0, order[op_up], -1)
    self_ns = np.zeros(size, dtype=np.int64)
    self_ns[order] = _self_times(trace, nested, order, op_up, counts)
    optimizing = trace.named_like(*OPTIMIZER_PREFIXES)
    in_optimizer = np.zeros(size, dtype=bool)
    if optimizing.any():
        in_optimizer[order] = nearest(optimizing[order], up) >= 0
    modules, numbers = _module_numbers(trace, order, up, of_module & ~optimizing)
    module = np.zeros(size, dtype=np.int32)
    if len(modules) > 1:
        holder = nearest(numbers > 0, up)
        module[order] = np.where(holder >= 0, numbers[holder], 0)
        _backward_modules(trace, order, parent, module)
    stands_for = _merge_same_names(trace, order, np.where(counts, op_up, -1), parent, self_ns)
    return Nesting(parent, self_ns, module, modules, in_optimizer, order, order[numbers > 0], stands_for)


def _self_times(trace: Trace, nested: NestedRows, order: Places, op_up: Places, is_op: Bools) -> Int64:
    """Durations without what the operators inside take, 0 for others; parallel to `order`.

    An operator that outlasts what it lies in counts up to there.
    """
    own = trace.duration_ns[order]
    own *= is_op
    taken = own
    if nested.crossing:
        end = trace.ends(order)
        taken = own - np.maximum(end - end[nested.parent], 0) * is_op
    inside = np.zeros(order.size + 1, dtype=np.int64)
    np.add.at(inside, op_up + 1, taken)  # the first place takes what lies in no operator
    own -= inside[1:]
    return np.maximum(own, 0, out=own)


def _module_numbers(trace: Trace, order: Places, up: Places, of_module: Bools) -> tuple[list[str], Places]:
    """Module paths (the first is empty), and for every place in `order` its own module's number, 0 for none.

    Our scopes hold the path; Python's calls hold class and number, and the path is that of the calls around them.
    """
    numbers = np.zeros(order.size, dtype=np.int32)
    if not of_module.any():
        return [""], numbers
    known: dict[str, int] = {"": 0}
    paths = [""]
    calls = np.flatnonzero(of_module[order])
    holder = above(of_module[order], up)[calls]
    for place, outer in zip(calls.tolist(), holder.tolist(), strict=True):  # outer ones come first
        name = trace.names[trace.name[order[place]]]
        if name.startswith(MODULE_PREFIX):
            path = name.removeprefix(MODULE_PREFIX)
        else:
            own = name.removeprefix(PYTHON_MODULE_PREFIX)
            around = paths[numbers[outer]] if outer >= 0 else ""
            path = f"{around}.{own}" if around else own
        if path not in known:
            known[path] = len(paths)
            paths.append(path)
        numbers[place] = known[path]
    return paths, numbers


def _merge_same_names(trace: Trace, order: Places, op_up: Places, parent: Places, self_ns: Int64) -> Places:
    """Fold an operator into its caller when it is the only one inside and has the same name.

    An overload that calls another one is a single call to a person, and to torch's own tables.

    Args:
        trace: The trace.
        order: As in `Nesting`.
        op_up: Place in `order` of the operator around each operator; -1 for none, and for what is none.
        parent: Rows of these; changed.
        self_ns: Changed.

    Returns:
        For every row the one that counts for it.
    """
    into = np.arange(parent.size, dtype=np.int32)
    name = trace.name[order]
    same = np.flatnonzero((name == name[op_up]) & (op_up >= 0))
    if not same.size:
        return into
    inner = op_up >= 0
    only_child = np.bincount(op_up[inner], minlength=order.size) == 1
    for row in order[same[only_child[op_up[same]]]].tolist():
        caller = int(parent[row])
        into[row] = into[caller]
        self_ns[into[caller]] += self_ns[row]
        self_ns[row] = 0
    rows = order[inner]
    parent[rows] = into[parent[rows]]
    return into


def _backward_modules(trace: Trace, order: Places, parent: Places, module: Places) -> None:
    """Give backward operators, and what lies in them, the module of their forward operator.

    A forward operator records the sequence number that the next autograd node will get, so of all operators with a
    number the one that started last made the node (the rule of Kineto's own forward-backward arrows). Every process
    counts its own.
    """
    sequence, forward_thread = trace.sequence[order], trace.forward_thread[order]
    is_forward = (sequence >= 0) & (forward_thread <= 0)
    is_backward = (forward_thread > 0) & (module[order] == 0)
    if not is_forward.any() or not is_backward.any():
        return
    of_process = group_by(trace.process_of_track[trace.track[order]], sequence).of
    forward, backward = order[is_forward], order[is_backward]
    by_start = np.argsort(trace.start_ns[forward], kind="stable")[::-1]
    last_first = forward[by_start]
    numbers, position = np.unique(of_process[is_forward][by_start], return_index=True)
    wanted = of_process[is_backward]
    found = np.minimum(np.searchsorted(numbers, wanted), numbers.size - 1)
    known = numbers[found] == wanted
    module[backward] = np.where(known, module[last_first[position[found]]], 0)
    adopter = np.zeros(module.size, dtype=bool)
    adopter[backward] = True
    orphans = order[(module[order] == 0) & ~adopter[order]]
    by = nearest(adopter, parent)[orphans]
    module[orphans] = np.where(by >= 0, module[by], 0)


def inside_itself(trace: Trace, nesting: Nesting) -> Bools:
    """Which rows are operators within a call of the same operator, at any depth."""
    parent = nesting.parent
    found = np.zeros(len(trace), dtype=bool)
    rows = np.flatnonzero(parent >= 0)
    outer = parent[rows]
    for _ in range(_USUAL_LEVELS):
        found[rows[trace.name[outer] == trace.name[rows]]] = True
        outer = parent[outer]
        rows, outer = rows[outer >= 0], outer[outer >= 0]
        if not rows.size:
            return found
    return _inside_earlier_ones(trace, nesting.order[trace.operators()[nesting.order]])


def _inside_earlier_ones(trace: Trace, rows: Places) -> Bools:
    """The same for any depth: rows that begin before all earlier ones of their track and name have ended."""
    calls = group_by(trace.track[rows], trace.name[rows]).of
    order = np.argsort(calls, kind="stable")  # outer before inner within each
    rows, calls = rows[order], calls[order]
    moments, rank = np.unique(trace.ends(rows), return_inverse=True)
    reached = np.maximum.accumulate(calls * moments.size + rank) - calls * moments.size
    found = np.zeros(len(trace), dtype=bool)
    again = np.flatnonzero(calls[1:] == calls[:-1])
    found[rows[again + 1]] = moments[reached[again]] > trace.start_ns[rows[again + 1]]
    return found
