"""A trace with its events linked: who launched what, inside which operator, module and step; made once, used by all."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.categories import CATEGORIES, category_by_name, category_of
from gptscope.profiling.trace.grouping import group_by
from gptscope.profiling.trace.intervals import Cover
from gptscope.profiling.trace.matching import match_launches
from gptscope.profiling.trace.nested import Places, depths
from gptscope.profiling.trace.nesting import Nesting, nest
from gptscope.profiling.trace.op_inputs import UNKNOWN_TYPE, all_tensors
from gptscope.profiling.trace.steps import StepWindows, step_windows
from gptscope.profiling.trace.table import GENERATED_PREFIX, Bools, Int64, Integers, Trace, some_rows
from gptscope.profiling.trace.trace_costs import CallInputs, TraceCosts, trace_costs
from gptscope.profiling.trace.work import owners, steps_of

_MOST_LEVELS = 10_000
"""Operators nested deeper, which only damaged files have, are of the kind `other`."""
_NUMBER = {name: number for number, name in enumerate(CATEGORIES)}
OTHER = _NUMBER["other"]
COMMUNICATION = _NUMBER["communication"]
Codes = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class WorkEntries:
    """Device work, or without any the operators that take time themselves; arrays of equal length."""

    row: Int64
    owner: Int64
    own_ns: Int64
    code: npt.NDArray[np.int8]


@dataclass(frozen=True)
class Linked:
    """A trace, or a range of its time, with what all analyses need; each part is computed when first asked for.

    A range holds the device work that ran in it at least partly and the operators that began in it; the steps hold the
    work that they launched.
    """

    trace: Trace
    range_ns: tuple[int, int] | None = None
    only_steps: bool = False

    @classmethod
    def of(cls, trace: "Trace | Linked", range_ns: tuple[int, int] | None = None) -> Self:
        """Link a trace, or limit a linked one to a range without computing its links again."""
        if not isinstance(trace, Linked):
            return cls(trace, range_ns)
        part = cls(trace.trace, range_ns)
        _share_links(trace, part)
        return part

    @cached_property
    def in_steps(self) -> "Linked":
        """Only what belongs to the steps; the whole trace when it marks none."""
        part = replace(self, only_steps=True)
        _share_links(self, part)
        return part

    @cached_property
    def nesting(self) -> Nesting:
        """Operators, modules and scopes on the CPU's threads."""
        return nest(self.trace)

    @cached_property
    def windows(self) -> StepWindows:
        """The steps that the trace marks."""
        return step_windows(self.trace)

    @cached_property
    def _all_work(self) -> tuple[Int64, Int64, Int64]:
        rows = np.flatnonzero(self.trace.gpu_work())
        if not rows.size:
            return rows, rows, rows
        launched = match_launches(self.trace, rows)
        return rows, launched.launch, owners(self.trace, self.nesting, rows, launched)

    @cached_property
    def _in_range(self) -> Bools | slice:
        if self.range_ns is None and not self.only_steps:
            return slice(None)
        rows, launch, _ = self._all_work
        held = self.touched(rows)
        return held & (steps_of(self.trace, self.windows, rows, launch) >= 0) if self.only_steps else held

    @cached_property
    def work(self) -> Int64:
        """Rows of device work."""
        return self._all_work[0][self._in_range]

    @cached_property
    def launch(self) -> Int64:
        """For each row of `work` the runtime call that launched it, -1 for none recorded."""
        return self._all_work[1][self._in_range]

    @cached_property
    def owner(self) -> Int64:
        """For each row of `work` the operator that it belongs to, -1 for none."""
        return self._all_work[2][self._in_range]

    @cached_property
    def has_device(self) -> bool:
        """Device work was recorded."""
        return bool(self._all_work[0].size)

    @cached_property
    def operators(self) -> Integers:
        """Rows of operators on the CPU that have a usable duration."""
        rows = np.flatnonzero(self.trace.operators() & ~self.trace.unfinished).astype(np.int32)
        return self.begun(rows)

    @cached_property
    def covering_operators(self) -> Integers:
        """Rows of operators whose time covers that of all, in a range of those too that began before it.

        They are the outermost ones, and those that outlast the one around them.
        """
        rows = self.operators
        if self.range_ns is not None:
            rows = np.flatnonzero(self.trace.operators() & ~self.trace.unfinished)
            rows = rows[self.touched(rows)]
        parent = self.nesting.parent[rows]
        return rows[(parent < 0) | (self.trace.ends(rows) > self.trace.ends(parent))]

    @cached_property
    def span_ns(self) -> tuple[int, int]:
        """The time that is looked at: the range, or what the events of the program cover."""
        if self.range_ns is not None:
            return self.range_ns
        trace = self.trace
        rows = trace.in_statistics() & ~trace.unfinished
        if not rows.any():
            return trace.span_ns
        return trace.span_of(rows)

    @cached_property
    def inputs(self) -> CallInputs:
        """Parsed inputs of operators."""
        return CallInputs(self.trace)

    @cached_property
    def costs(self) -> TraceCosts:
        """Modelled bytes and FLOPs of operators."""
        return trace_costs(self.trace, self.nesting)

    @cached_property
    def operator_codes(self) -> Codes:
        """Category of every operator, as position in `CATEGORIES`; owners before what they own. Other rows: other."""
        return _operator_codes(self.trace, self.nesting, self.inputs)

    @cached_property
    def work_codes(self) -> Codes:
        """Category of every row of `work`."""
        trace = self.trace
        owned = self.owner >= 0
        by_owner = np.where(owned, self.operator_codes[self.owner], OTHER).astype(np.int8)
        module = np.where(owned, self.nesting.module[self.owner], 0)
        collective = (trace.collective[self.work] != 0).astype(np.int8)
        copies = trace.in_categories("gpu_memcpy", "gpu_memset")[self.work].astype(np.int8)
        groups = group_by(trace.name[self.work], by_owner, module, collective, copies)
        decided = np.zeros(groups.count, dtype=np.int8)
        for number, entry in enumerate(groups.first.tolist()):
            name = trace.names[trace.name[self.work[entry]]]
            decided[number] = _work_code(
                name, int(by_owner[entry]), self.nesting.modules[module[entry]],
                is_collective=bool(collective[entry]), is_copy=bool(copies[entry]),
            )  # fmt: skip
        return decided[groups.of] if groups.count else np.zeros(0, dtype=np.int8)

    @cached_property
    def entries(self) -> WorkEntries:
        """What counts as work in this trace."""
        if self.has_device:
            return WorkEntries(self.work, self.owner, self.trace.duration_ns[self.work], self.work_codes)
        rows = self.operators[self.nesting.self_ns[self.operators] > 0]
        return WorkEntries(rows, rows, some_rows(self.nesting.self_ns, rows), some_rows(self.operator_codes, rows))

    @cached_property
    def device_self_ns(self) -> Int64:
        """Per row: time of the device work that an operator launched itself."""
        own = np.zeros(len(self.trace), dtype=np.int64)
        owned = self.owner >= 0
        np.add.at(own, self.owner[owned], self.trace.duration_ns[self.work[owned]])
        return own

    @cached_property
    def device_total_ns(self) -> Int64:
        """Per row: the same with what the operators inside launched."""
        total = np.zeros(len(self.trace), dtype=np.int64)
        owner: Integers = np.flatnonzero(self.device_self_ns)
        duration = self.device_self_ns[owner]
        while owner.size:
            np.add.at(total, owner, duration)
            above = self.nesting.parent[owner]
            owner, duration = above[above >= 0], duration[above >= 0]
        return total

    @cached_property
    def communicates(self) -> Bools:
        """Which rows of `work` are communication between devices."""
        found: Bools = self.work_codes == COMMUNICATION
        return found

    @cached_property
    def devices(self) -> list[int]:
        """Numbers of the devices that worked."""
        device = self.trace.device[self.work]
        numbers: list[int] = device[group_by(device).first].tolist()
        return numbers

    @cached_property
    def device_covers(self) -> dict[int, Cover]:
        """When each device worked, inside the range."""
        device = self.trace.device[self.work]
        return {one: self.cover(self.work[device == one]) for one in self.devices}

    def begun(self, rows: Integers) -> Integers:
        """Those of some rows of the CPU that began in the range, and in the steps where only they count."""
        if self.range_ns is not None:
            start = self.trace.start_ns[rows]
            rows = rows[(start >= self.range_ns[0]) & (start < self.range_ns[1])]
        return rows[self.windows.index_of(self.trace.start_ns[rows]) >= 0] if self.only_steps else rows

    def touched(self, rows: Integers) -> Bools:
        """Which rows lie in the range at least partly; all without a range."""
        if self.range_ns is None:
            return np.ones(rows.size, dtype=bool)
        start, end = self.trace.start_ns[rows], self.trace.ends(rows)
        return (start < self.range_ns[1]) & ((end > self.range_ns[0]) | (start >= self.range_ns[0]))

    def cover(self, rows: Integers) -> Cover:
        """Union of the time of some rows, inside the range."""
        if self.range_ns is None:
            return Cover.of_rows(self.trace, rows)
        start, end = self.trace.start_ns[rows], self.trace.ends(rows)
        return Cover(np.maximum(start, self.range_ns[0]), np.minimum(end, self.range_ns[1]))


def _share_links(whole: Linked, part: Linked) -> None:
    """What a part needs not compute again."""
    for name in ("nesting", "windows", "operator_codes", "costs", "inputs", "_all_work"):
        part.__dict__[name] = getattr(whole, name)


def _work_code(name: str, by_owner: int, module: str, *, is_collective: bool, is_copy: bool) -> int:
    if is_collective:
        return COMMUNICATION
    own = category_by_name(name)
    if own == "communication":
        return COMMUNICATION
    if is_copy and by_owner == OTHER:
        return _NUMBER["copy"]
    if by_owner != OTHER:
        return by_owner
    return _NUMBER[category_of(name, module=module)]


def _operator_codes(trace: Trace, nesting: Nesting, inputs: CallInputs) -> Codes:
    """Decide level by level, outer operators first; equal situations are decided once."""
    codes = np.full(len(trace), OTHER, dtype=np.int8)
    rows = np.flatnonzero(trace.operators()).astype(np.int32)
    if not rows.size:
        return codes
    casts, parent = _casts(trace, inputs), nesting.parent
    columns = (trace.name, nesting.module, nesting.in_optimizer.astype(np.int8), casts.astype(np.int8))
    alike = group_by(*(some_rows(column, rows) for column in columns))
    decided = np.full((alike.count, len(CATEGORIES) + 1), -1, dtype=np.int8)
    for places in _levels(some_rows(depths(parent), rows)):
        level = rows[places]
        outer = np.where(parent[level] >= 0, codes[parent[level]], -1)
        kind = alike.of[places]
        for one, around in np.argwhere(_occurs(kind, outer + 1, decided.shape) & (decided < 0)).tolist():
            decided[one, around] = _operator_code(trace, nesting, casts, int(rows[alike.first[one]]), around - 1)
        codes[level] = decided[kind, outer + 1]
    return codes


def _levels(depth: Places) -> Iterator[Places]:
    """Positions of equal depth, the outermost first; none deeper than `_MOST_LEVELS`."""
    depth = np.minimum(depth, _MOST_LEVELS).astype(np.int16)  # of narrow numbers all are sorted in one pass
    by_depth = np.argsort(depth, kind="stable").astype(np.int32)
    last = np.cumsum(np.bincount(depth, minlength=1))[:_MOST_LEVELS].tolist()
    return (by_depth[begin:end] for begin, end in zip([0, *last], last, strict=False))


def _occurs(first: Integers, second: Integers, shape: tuple[int, ...]) -> Bools:
    """Which pairs of numbers there are."""
    found = np.zeros(shape, dtype=bool)
    found[first, second] = True
    return found


def _operator_code(trace: Trace, nesting: Nesting, casts: Bools, row: int, owner: int) -> int:
    """Category of one operator inside one of a category, -1 for none."""
    if trace.name_of(row).startswith(GENERATED_PREFIX):
        return _NUMBER["elementwise"]  # fused pointwise loops and reductions
    return _NUMBER[
        category_of(
            trace.name_of(row),
            owner=CATEGORIES[owner] if owner >= 0 else None,
            module=nesting.modules[nesting.module[row]],
            in_optimizer=bool(nesting.in_optimizer[row]),
            casts=bool(casts[row]),
        )
    ]


def _casts(trace: Trace, inputs: CallInputs) -> Bools:
    """Which rows are copies into another type."""
    casts = np.zeros(len(trace), dtype=bool)
    rows = np.flatnonzero(trace.named_so("aten::copy_".__eq__) & (trace.types != 0))
    groups = group_by(trace.types[rows], trace.shapes[rows])
    several = np.zeros(groups.count, dtype=bool)
    for number, entry in enumerate(groups.first.tolist()):
        tensors = all_tensors(inputs.of(int(rows[entry])) or [])
        deciding = [t for t in tensors if t.dims] or tensors
        several[number] = len({t.dtype for t in deciding if t.dtype != UNKNOWN_TYPE}) > 1
    if rows.size:
        casts[rows] = several[groups.of]
    return casts
