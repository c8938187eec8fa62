"""Two traces side by side: what takes more or less time, what is new, what vanished."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gptscope.profiling.trace.analysis.kernels import category_sums, kernel_sums
from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.analysis.modules import module_sums
from gptscope.profiling.trace.analysis.operators import operator_sums
from gptscope.profiling.trace.analysis.steps import step_times
from gptscope.profiling.trace.grouping import group_by, heaviest
from gptscope.profiling.trace.names import collapse_layers, short_name

Level = Literal["kernel", "category", "operator", "module", "step"]
LEVELS: tuple[Level, ...] = ("kernel", "category", "operator", "module", "step")
Status = Literal["both", "new", "vanished", "replaced"]


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One thing in both traces, or in one. Times and calls are per step where both traces mark steps."""

    name: str
    """In the first trace, or in the second when it is new."""
    other_name: str
    """The second trace's kernels when others do the same work there; else empty."""
    status: Status
    before_ns: float
    after_ns: float
    before_calls: float
    after_calls: float

    @property
    def change_ns(self) -> float:
        """Second minus first."""
        return self.after_ns - self.before_ns


@dataclass(frozen=True, slots=True)
class TraceDiff:
    """One level of the comparison. The rows' changes add up to the totals' change."""

    level: Level
    per_step: bool
    before_ns: float
    after_ns: float
    rows: list[DiffRow]


Sums = dict[str, tuple[int, int]]
"""Name -> time and calls."""


def diff_traces(before: Linked, after: Linked, level: Level) -> TraceDiff:
    """Compare two traces; the biggest changes come first.

    Kernels that have other names in the other trace (another precision, a fused version) are matched by the module and
    operator that they work for.
    """
    per_step = before.windows.marked and after.windows.marked
    steps = (before.windows.count, after.windows.count) if per_step else (1, 1)
    if level == "step":
        per_step, steps = False, (1, 1)
    if level == "kernel":
        rows = _kernel_rows(before, after, steps)
    else:
        rows = _rows(_sums(before, level), _sums(after, level), steps)
    rows.sort(key=lambda r: (-abs(r.change_ns), r.name))
    return TraceDiff(level, per_step, sum(r.before_ns for r in rows), sum(r.after_ns for r in rows), rows)


def _sums(linked: Linked, level: Level) -> Sums:
    if level == "category":
        return {c.category: (c.total_ns, c.calls) for c in category_sums(linked)}
    if level == "operator":
        return _added(
            (o.name, o.device_self_ns if linked.has_device else o.host_self_ns, o.calls) for o in operator_sums(linked)
        )
    if level == "module":
        return _added(
            (m.path or "outside modules", m.device_self_ns if linked.has_device else m.host_self_ns, m.calls)
            for m in module_sums(linked)
        )
    return {f"step {i + 1}": (s.wall_ns, 1) for i, s in enumerate(step_times(linked))}


def _added(rows: Iterable[tuple[str, int, int]]) -> Sums:
    sums: Sums = {}
    for name, time, calls in rows:
        known = sums.get(name, (0, 0))
        sums[name] = (known[0] + time, known[1] + calls)
    return sums


def _rows(before: Sums, after: Sums, steps: tuple[int, int]) -> list[DiffRow]:
    rows = []
    for name in dict.fromkeys((*before, *after)):
        status: Status = "both" if name in before and name in after else "vanished" if name in before else "new"
        rows.append(_row(name, "", status, before.get(name, (0, 0)), after.get(name, (0, 0)), steps))
    return rows


def _row(
    name: str, other: str, status: Status, old: tuple[int, int], new: tuple[int, int], steps: tuple[int, int]
) -> DiffRow:
    return DiffRow(name, other, status, old[0] / steps[0], new[0] / steps[1], old[1] / steps[0], new[1] / steps[1])


def _kernel_rows(before: Linked, after: Linked, steps: tuple[int, int]) -> list[DiffRow]:
    old = _added((k.name, k.total_ns, k.calls) for k in kernel_sums(before))
    new = _added((k.name, k.total_ns, k.calls) for k in kernel_sums(after))
    rows = _rows({n: old[n] for n in old if n in new}, {n: new[n] for n in new if n in old}, steps)
    gone, come = {n: s for n, s in old.items() if n not in new}, {n: s for n, s in new.items() if n not in old}
    works_for_old, works_for_new = _works_for(before), _works_for(after)
    by_work_old, by_work_new = _by_work(gone, works_for_old), _by_work(come, works_for_new)
    for work in by_work_old.keys() & by_work_new.keys():
        was, now = by_work_old[work], by_work_new[work]
        rows.append(_row(_joined(was), _joined(now), "replaced", _total(gone, was), _total(come, now), steps))
        for name in was:
            del gone[name]
        for name in now:
            del come[name]
    return rows + _rows(gone, come, steps)


def _works_for(linked: Linked) -> dict[str, tuple[str, str]]:
    """For every kernel the module and operator that most of its time belongs to."""
    trace, work = linked.trace, linked.entries
    groups = group_by(trace.name[work.row])
    owned = work.owner >= 0
    module = heaviest(groups, np.where(owned, linked.nesting.module[work.owner], 0), work.own_ns)
    operator = heaviest(groups, np.where(owned, trace.name[work.owner], -1), work.own_ns)
    return {
        trace.names[trace.name[work.row[entry]]]: (
            collapse_layers(linked.nesting.modules[module[i]]),
            trace.names[operator[i]] if operator[i] >= 0 else "",
        )
        for i, entry in enumerate(groups.first.tolist())
    }


def _by_work(kernels: Sums, works_for: dict[str, tuple[str, str]]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for name in kernels:
        work = works_for[name]
        if work[1]:
            found.setdefault(work, []).append(name)
    return found


def _total(sums: Sums, names: list[str]) -> tuple[int, int]:
    return sum(sums[n][0] for n in names), sum(sums[n][1] for n in names)


def _joined(names: list[str]) -> str:
    shown = [short_name(name) for name in names[:3]]
    return " + ".join(shown) + (f" + {len(names) - 3} more" if len(names) > 3 else "") if len(names) > 1 else names[0]
