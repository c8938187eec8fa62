"""Who lies inside whom on the CPU's threads: parents, self times, modules and optimizer scopes of operators."""

from dataclasses import dataclass

import numpy as np

from gptscope.profiling.trace.table import Bools, Int64, Trace

MODULE_PREFIX = "module: "
"""Ranges with such names are what the worker records around every module's forward pass."""
OPTIMIZER_PREFIXES = ("Optimizer.step#", "Optimizer.zero_grad#", MODULE_PREFIX + "optimizer")


@dataclass(frozen=True, slots=True)
class Nesting:
    """Per row of the trace; rows that are neither operators nor annotations keep the missing values."""

    parent: Int64
    """Row of the innermost enclosing operator, -1 for none; annotations in between do not count."""
    self_ns: Int64
    """Duration without the operators inside, never negative."""
    module: Int64
    """Number of the innermost module in `modules`; 0 is none."""
    modules: list[str]
    in_optimizer: Bools
    order: Int64
    """Operators and annotations, outer before inner, thread by thread."""


def nest(trace: Trace) -> Nesting:
    """Find parents and scopes of all operators by their times on each thread.

    Backward operators carry the sequence number of the forward operator that asked for them, and get its module.
    """
    is_op = trace.operators() & ~trace.unfinished
    scopes = trace.annotations() | trace.named_like(MODULE_PREFIX)
    rows = np.flatnonzero(is_op | scopes)
    order = rows[np.lexsort((rows, -trace.duration_ns[rows], trace.start_ns[rows], trace.track[rows]))]
    modules, scope_of_name = _scopes(trace)
    size = len(trace)
    parent, inside = np.full(size, -1, dtype=np.int64), np.zeros(size, dtype=np.int64)
    module, optimizer = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=bool)
    _walk(trace, order, is_op & ~trace.named_like(MODULE_PREFIX), scope_of_name, parent, inside, module, optimizer)
    _backward_modules(trace, order, parent, module)
    self_ns = np.where(is_op, np.maximum(trace.duration_ns - inside, 0), 0)
    _merge_same_names(trace, order[is_op[order]], parent, self_ns)
    return Nesting(parent, self_ns, module, modules, optimizer, order)


def _scopes(trace: Trace) -> tuple[list[str], list[int]]:
    """Module paths (the first is empty), and for every name: its module's number, 0 for none, -1 for the optimizer."""
    modules, numbers = [""], []
    for name in trace.names:
        if name.startswith(OPTIMIZER_PREFIXES):
            numbers.append(-1)
        elif name.startswith(MODULE_PREFIX):
            numbers.append(len(modules))
            modules.append(name.removeprefix(MODULE_PREFIX))
        else:
            numbers.append(0)
    return modules, numbers


def _walk(
    trace: Trace,
    order: Int64,
    is_op: Bools,
    scope_of_name: list[int],
    parent: Int64,
    inside: Int64,
    module: Int64,
    optimizer: Bools,
) -> None:
    """Go through each thread with a stack of open ranges, filling the last four columns."""
    starts, ends = trace.start_ns[order].tolist(), trace.end_ns[order].tolist()
    tracks, names, ops = trace.track[order].tolist(), trace.name[order].tolist(), is_op[order].tolist()
    stack: list[tuple[int, int, int, bool]] = []  # end, innermost operator, module, inside the optimizer
    thread = None
    for row, start, end, track, name, op in zip(order.tolist(), starts, ends, tracks, names, ops, strict=True):
        if track != thread:
            stack, thread = [], track
        while stack and stack[-1][0] <= start:
            stack.pop()
        outer_end, outer, scope, optimizing = stack[-1] if stack else (end, -1, 0, False)
        own = scope_of_name[name]
        optimizing = optimizing or own == -1
        scope = own if own > 0 else scope
        module[row], optimizer[row], parent[row] = scope, optimizing, outer
        if op:
            if outer >= 0:
                inside[outer] += min(end, outer_end) - start
            stack.append((end, row, scope, optimizing))
        else:
            stack.append((min(end, outer_end), outer, scope, optimizing))


def _merge_same_names(trace: Trace, operators: Int64, parent: Int64, self_ns: Int64) -> None:
    """Fold an operator into its caller when it is the only one inside and has the same name.

    An overload that calls another one is a single call to a person, and to torch's own tables.
    """
    inner = operators[parent[operators] >= 0]
    only_child = np.bincount(parent[inner], minlength=parent.size) == 1
    into = np.arange(parent.size)
    for row in inner[trace.name[inner] == trace.name[parent[inner]]].tolist():
        caller = int(parent[row])
        if only_child[caller]:
            into[row] = into[caller]
            self_ns[into[caller]] += self_ns[row]
            self_ns[row] = 0
    parent[inner] = into[parent[inner]]


def _backward_modules(trace: Trace, order: Int64, parent: Int64, module: Int64) -> None:
    """Give backward operators, and what lies in them, the module of their forward operator.

    A forward operator records the sequence number that the next autograd node will get, so of all operators with a
    number the one that started last made the node (the rule of Kineto's own forward-backward arrows).
    """
    sequence, forward_thread = trace.sequence[order], trace.forward_thread[order]
    forward = (sequence >= 0) & (forward_thread <= 0)
    made: dict[int, int] = {}
    for row in order[forward][np.argsort(trace.start_ns[order[forward]], kind="stable")].tolist():
        made[int(trace.sequence[row])] = int(module[row])
    if not made:
        return
    adopted = np.zeros(module.size, dtype=bool)
    for row in order.tolist():
        if module[row]:
            continue
        if trace.forward_thread[row] > 0:
            module[row] = made.get(int(trace.sequence[row]), 0)
            adopted[row] = True
        elif parent[row] >= 0 and adopted[parent[row]]:
            module[row] = module[parent[row]]
            adopted[row] = True
