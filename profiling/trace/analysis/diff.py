"""Two traces side by side: what takes more or less time, what is new, what vanished."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gptscope.profiling.trace.analysis.kernels import category_sums, kernel_sums
from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.analysis.modules import module_sums
from gptscope.profiling.trace.analysis.steps import step_times
from gptscope.profiling.trace.grouping import group_by, heaviest
from gptscope.profiling.trace.names import collapse_layers, short_name

Level = Literal["kernel", "category", "operator", "module", "step"]
LEVELS: tuple[Level, ...] = ("kernel", "category", "operator", "module", "step")
Status = Literal["both", "new", "vanished", "replaced", "unrecorded"]
"""`unrecorded`: one trace records nothing on this level, so nothing is known of its part."""
NO_OPERATOR, NO_MODULE = "no operator recorded", "no module recorded"
"""The rows of work that belongs to none."""


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One thing in both traces, or in one. Times and calls are per step where both traces mark steps."""

    name: str
    """In the first trace, or in the second when it is new."""
    other_name: str
    """The second trace's kernels when others do the same work there; else empty."""
    status: Status
    before_ns: float | None
    """None: the trace records nothing on this level."""
    after_ns: float | None
    before_calls: float | None
    after_calls: float | None

    @property
    def change_ns(self) -> float | None:
        """Second minus first; None when one is not known."""
        return None if self.before_ns is None or self.after_ns is None else self.after_ns - self.before_ns


@dataclass(frozen=True, slots=True)
class TraceDiff:
    """One level of the comparison. The rows add up to the totals where both traces record the level."""

    level: Level
    per_step: bool
    before_ns: float | None
    """All work (of the steps, divided by their number, if `per_step`), the same on every level but that of steps.

    None: the trace has none.
    """
    after_ns: float | None
    rows: list[DiffRow]
    notes: tuple[str, ...]
    """Sentences on what is not known, left out or of another kind than in the other trace."""

    @property
    def change_ns(self) -> float | None:
        """Second minus first; None when one is not known."""
        return None if self.before_ns is None or self.after_ns is None else self.after_ns - self.before_ns


Sums = dict[str, tuple[int, int]]
"""Name -> time and calls."""


def diff_traces(before: Linked, after: Linked, level: Level) -> TraceDiff:
    """Compare two traces; the biggest changes come first.

    Kernels that have other names in the other trace (another precision, a fused version) are matched by the module and
    operator that they work for.
    """
    per_step = level != "step" and _hold_steps(before, after)
    steps, notes = (1, 1), _apples_and_pears(before, after) if level != "step" else []
    if per_step:
        steps = before.windows.count, after.windows.count
        notes += [note for side, one in (("Before", before), ("After", after)) for note in _left_out(side, one)]
        before, after = before.in_steps, after.in_steps
    missing = (_missing(before, after, level), _missing(after, before, level))
    if level == "kernel" and not any(missing):
        rows = _kernel_rows(before, after, steps)
    else:
        old = None if missing[0] else _sums(before, level)
        new = None if missing[1] else _sums(after, level)
        rows = _rows(old, new, steps)
    rows.sort(key=lambda r: (-abs(r.change_ns or 0), -(r.after_ns or 0), -(r.before_ns or 0), r.name))
    before_ns = _total_ns(before, level, steps[0], unmarked=bool(missing[0]))
    after_ns = _total_ns(after, level, steps[1], unmarked=bool(missing[1]))
    unknown = [f"{side}: n/a, {why}." for side, why in zip(("Before", "After"), missing, strict=True) if why]
    return TraceDiff(level, per_step, before_ns, after_ns, rows, (*unknown, *notes))


def _hold_steps(before: Linked, after: Linked) -> bool:
    """Both are whole traces that mark steps with work in them."""
    return all(
        one.range_ns is None and one.windows.marked and bool(one.in_steps.entries.row.size) for one in (before, after)
    )


def _left_out(side: str, linked: Linked) -> list[str]:
    """What of a trace's work belongs to no step, in a sentence, if there is any."""
    all_ns = int(linked.entries.own_ns.sum())
    outside_ns = all_ns - int(linked.in_steps.entries.own_ns.sum())
    if not outside_ns:
        return []
    times = f"{outside_ns / 1e6:.6g} ms of {all_ns / 1e6:.6g} ms of work"
    return [f"{side}: {times} was launched outside of steps and is left out."]


def _apples_and_pears(before: Linked, after: Linked) -> list[str]:
    """That a device's work is held against a host's, in a sentence, if it is."""
    if before.has_device == after.has_device or not (before.entries.row.size and after.entries.row.size):
        return []
    on_host, on_device = ("Before", "after") if after.has_device else ("After", "before")
    return [
        f"{on_host} is self time of operators on the host, for want of device work; {on_device} is time on the device."
    ]


def _missing(linked: Linked, other: Linked, level: Level) -> str:
    """Why a trace has nothing on a level; empty when it has."""
    if level == "step":
        marked = linked.windows.marked or not other.windows.marked
        return "" if marked else "no steps marked: call profiler.step()"
    if not linked.entries.row.size:
        return "no kernels and no operators recorded"
    if level == "operator" and not linked.operators.size:
        return "no operators recorded: record with ProfilerActivity.CPU"
    if level == "module" and len(linked.nesting.modules) < 2:
        return "no modules recorded: record with with_stack=True or with_modules=True"
    return ""


def _total_ns(linked: Linked, level: Level, steps: int, *, unmarked: bool) -> float | None:
    """All work, or the time of all steps."""
    if level == "step":
        return None if unmarked else sum(step.wall_ns for step in step_times(linked))
    return int(linked.entries.own_ns.sum()) / steps if linked.entries.row.size else None


def _sums(linked: Linked, level: Level) -> Sums:
    if level == "kernel":
        return _added((k.name, k.total_ns, k.calls) for k in kernel_sums(linked))
    if level == "category":
        return {c.category: (c.total_ns, c.calls) for c in category_sums(linked)}
    if level == "operator":
        return _operator_sums(linked)
    if level == "module":
        return _module_sums(linked)
    named = linked.windows.marked
    return {f"step {i + 1}" if named else s.name: (s.wall_ns, 1) for i, s in enumerate(step_times(linked))}


def _module_sums(linked: Linked) -> Sums:
    """All work by module, with the calls of modules; work of none counts by its own number."""
    work = linked.entries
    in_none = int(((work.owner < 0) | (linked.nesting.module[work.owner] == 0)).sum())
    return _added(
        (m.path or NO_MODULE, m.device_self_ns if linked.has_device else m.host_self_ns, m.calls if m.path else in_none)
        for m in module_sums(linked)
    )


def _operator_sums(linked: Linked) -> Sums:
    """All work by the operator that it belongs to, with the calls of operators that have none."""
    trace, work = linked.trace, linked.entries
    counted = linked.operators[linked.nesting.stands_for[linked.operators] == linked.operators]
    names = trace.name[counted]
    calls = group_by(names)
    made = zip(names[calls.first].tolist(), calls.sizes().tolist(), strict=True)
    sums = {trace.names[name]: (0, count) for name, count in made}
    owner = np.where(work.owner >= 0, trace.name[work.owner], -1)
    groups = group_by(owner)
    times = zip(owner[groups.first].tolist(), groups.sums(work.own_ns).tolist(), groups.sizes().tolist(), strict=True)
    for number, time_ns, count in times:
        name = trace.names[number] if number >= 0 else NO_OPERATOR
        sums[name] = (time_ns, sums.get(name, (0, 0))[1] if number >= 0 else count)
    return sums


def _added(rows: Iterable[tuple[str, int, int]]) -> Sums:
    sums: Sums = {}
    for name, time, calls in rows:
        known = sums.get(name, (0, 0))
        sums[name] = (known[0] + time, known[1] + calls)
    return sums


def _rows(before: Sums | None, after: Sums | None, steps: tuple[int, int]) -> list[DiffRow]:
    """All names of both; None is a trace that records nothing here."""
    rows = []
    nothing = (0, 0)
    for name in dict.fromkeys((*(before or ()), *(after or ()))):
        if before is None or after is None:
            old = None if before is None else before.get(name, nothing)
            new = None if after is None else after.get(name, nothing)
            rows.append(_row(name, "", "unrecorded", old, new, steps))
            continue
        status: Status = "both" if name in before and name in after else "vanished" if name in before else "new"
        rows.append(_row(name, "", status, before.get(name, nothing), after.get(name, nothing), steps))
    return rows


def _row(
    name: str,
    other: str,
    status: Status,
    old: tuple[int, int] | None,
    new: tuple[int, int] | None,
    steps: tuple[int, int],
) -> DiffRow:
    before_ns, before_calls = (None, None) if old is None else (old[0] / steps[0], old[1] / steps[0])
    after_ns, after_calls = (None, None) if new is None else (new[0] / steps[1], new[1] / steps[1])
    return DiffRow(name, other, status, before_ns, after_ns, before_calls, after_calls)


def _kernel_rows(before: Linked, after: Linked, steps: tuple[int, int]) -> list[DiffRow]:
    old, new = _sums(before, "kernel"), _sums(after, "kernel")
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
