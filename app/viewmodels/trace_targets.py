"""From a row of a table to what it is about on the timeline, and back from an event to the rows about it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gptscope.app.viewmodels.charts.trace_columns import DELAY
from gptscope.app.viewmodels.charts.trace_plots import MOMENT
from gptscope.app.viewmodels.timeline_model import Timeline
from gptscope.profiling.trace.analysis import Linked, launch_delays
from gptscope.profiling.trace.analysis.communication import collective_name
from gptscope.profiling.trace.categories import CATEGORIES
from gptscope.profiling.trace.grouping import group_by
from gptscope.profiling.trace.kernels import shapes_text
from gptscope.profiling.trace.names import collapse_layers


@dataclass(frozen=True)
class Target:
    """An event, or a range of time."""

    row: int | None = None
    range: tuple[float, float] | None = None


def target_of(timeline: Timeline, table: str, key: str) -> Target | None:
    """Where a table's row is on the timeline: its longest call or its step; None for nowhere."""
    if table == "difference":
        return _compared(timeline, *key.split("\n", maxsplit=2))
    if table == "steps":
        low, high = (int(part) for part in key.split("\n"))
        return between(timeline, low, high)
    if key.startswith(MOMENT):
        return _around(timeline, int(key.split("\n")[1]))
    rows = _rows(timeline, table, key)
    if not rows.size:
        return None
    return Target(row=int(rows[np.argmax(timeline.trace.duration_ns[rows])]))


def between(timeline: Timeline, start_ns: int, end_ns: int) -> Target:
    """The range between two moments of the trace's clock."""
    return Target(range=(float(start_ns - timeline.origin_ns), float(end_ns - timeline.origin_ns)))


def _compared(timeline: Timeline, level: str, _number: str, name: str) -> Target | None:
    """Where something of a comparison is in the first trace; None when only the second one has it."""
    if level == "step":
        windows = timeline.linked.windows
        place = int(name.removeprefix("step ")) - 1 if windows.marked else 0
        if place >= windows.count:
            return None
        return between(timeline, int(windows.start_ns[place]), int(windows.end_ns[place]))
    tabs = {"kernel": "any kernel", "category": "categories", "operator": "operators", "module": "modules"}
    if level == "category" and name not in CATEGORIES:
        return None
    rows = _rows(timeline, tabs[level], name)
    return Target(row=int(rows[np.argmax(timeline.trace.duration_ns[rows])])) if rows.size else None


def _around(timeline: Timeline, moment_ns: int) -> Target:
    """A hundredth of the trace with a moment in its middle."""
    middle, half = float(moment_ns - timeline.origin_ns), timeline.span / 200
    return Target(range=(max(middle - half, 0.0), min(middle + half, timeline.span)))


def _rows(timeline: Timeline, table: str, key: str) -> npt.NDArray[np.int64]:
    linked, trace = timeline.linked, timeline.trace
    name = key.split("\n", maxsplit=1)[0]
    named = trace.named_so(name.__eq__)
    if table == "launches" and key.startswith(DELAY):
        return _delayed(linked, key)
    if table == "any kernel":
        return _of(linked.entries.row, named[linked.entries.row])
    if table in {"launches", "graphs"}:
        return _of(linked.launch, (linked.launch >= 0) & named[linked.launch])
    if table == "devices":
        return _of(linked.work, trace.device[linked.work] == int(key))
    if table == "categories":
        return _of(linked.entries.row, linked.entries.code == CATEGORIES.index(key))
    if table in {"kernels", "roofline"} and linked.has_device:
        code = CATEGORIES.index(key.split("\n")[1])
        return _of(linked.work, named[linked.work] & (linked.work_codes == code))
    if table == "operators" and "\n" in key:
        return _of_shapes(linked, _of(linked.operators, named[linked.operators]), key.partition("\n")[2])
    if table in {"kernels", "roofline", "operators", "memory"}:
        return _of(linked.operators, named[linked.operators])
    if table == "copies":
        return _of(linked.work, named[linked.work])
    if table == "communication":
        rows = linked.work[linked.communicates]
        groups = group_by(trace.collective[rows], np.where(trace.collective[rows] > 0, 0, trace.name[rows]))
        called = np.array([collective_name(trace, int(rows[entry])) == name for entry in groups.first], bool)
        return _of(rows, called[groups.of]) if rows.size else rows
    if table == "modules" and name:
        numbers = [n for n, path in enumerate(linked.nesting.modules) if n and collapse_layers(path) == name]
        calls = linked.nesting.module_calls
        return _of(calls, np.isin(linked.nesting.module[calls], numbers))
    return np.zeros(0, np.int64)


def _of_shapes(linked: Linked, rows: npt.NDArray[np.int64], shapes: str) -> npt.NDArray[np.int64]:
    """Those calls whose inputs have these shapes."""
    groups = group_by(linked.trace.shapes[rows])
    alike = [shapes_text(linked.inputs.of(int(row)), 1) == shapes for row in rows[groups.first]]
    return _of(rows, np.array(alike, bool)[groups.of]) if rows.size else rows


def _delayed(linked: Linked, key: str) -> npt.NDArray[np.int64]:
    """The work that began so long after its launch."""
    low, high = (float(part) for part in key.split("\n")[1:])
    placed, delay = launch_delays(linked)
    return _of(linked.work[placed], (delay >= low) & (delay < high))


def _of(rows: npt.NDArray[np.signedinteger], chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = rows[chosen].astype(np.int64)
    return found


def keys_of(timeline: Timeline, row: int) -> dict[str, str]:
    """For each table the key of the row that an event counts in; operators are told apart by name only."""
    if row < 0:
        return {}
    linked, trace = timeline.linked, timeline.trace
    name = trace.name_of(row)
    found = {}
    places = np.flatnonzero(linked.work == row)
    owner = -1
    if places.size:
        place = int(places[0])
        category = CATEGORIES[linked.work_codes[place]]
        found["kernels"] = found["roofline"] = f"{name}\n{category}"
        found["categories"] = category
        found["devices"] = str(int(trace.device[row]))
        if bool(linked.communicates[place]):
            found["communication"] = collective_name(trace, row)
        if linked.launch[place] >= 0:
            found["launches"] = found["graphs"] = trace.name_of(int(linked.launch[place]))
        found["copies"] = name
        owner = int(linked.owner[place])
    elif bool(trace.operators()[row]):
        if not linked.has_device:
            category = CATEGORIES[linked.operator_codes[row]]
            found["kernels"] = found["roofline"] = f"{name}\n{category}"
            found["categories"] = category
        owner = row
    if owner >= 0:
        found["operators"] = found["memory"] = trace.name_of(owner)
        module = linked.nesting.modules[linked.nesting.module[owner]]
        found["modules"] = collapse_layers(module)
    return found | _step_key(linked, int(trace.start_ns[row]))


def _step_key(linked: Linked, moment_ns: int) -> dict[str, str]:
    """The step that a moment lies in."""
    windows = linked.windows
    inside = np.flatnonzero((windows.start_ns <= moment_ns) & (moment_ns < windows.end_ns))
    return {"steps": f"{windows.start_ns[inside[0]]}\n{windows.end_ns[inside[0]]}"} if inside.size else {}
