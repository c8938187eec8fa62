"""From a row of a table to what it is about on the timeline, and back from an event to the rows about it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gptscope.app.viewmodels.timeline_model import Timeline
from gptscope.profiling.trace.analysis.gaps import idle_gaps
from gptscope.profiling.trace.categories import CATEGORIES
from gptscope.profiling.trace.names import collapse_layers


@dataclass(frozen=True)
class Target:
    """An event, or a range of time."""

    row: int | None = None
    range: tuple[float, float] | None = None


def target_of(timeline: Timeline, table: str, key: str) -> Target | None:
    """Where a table's row is on the timeline: its longest call, its step, its longest gap; None for nowhere."""
    if table == "steps":
        low, high = (float(part) - timeline.origin_ns for part in key.split("\n"))
        return Target(range=(low, high))
    if table == "gaps":
        return _longest_gap(timeline, key)
    rows = _rows(timeline, table, key)
    if not rows.size:
        return None
    return Target(row=int(rows[np.argmax(timeline.trace.duration_ns[rows])]))


def _longest_gap(timeline: Timeline, key: str) -> Target | None:
    device, cause = key.split("\n")
    found = idle_gaps(timeline.linked)
    fits = (found.device == int(device)) & np.array([one == cause for one in found.cause], bool)
    places = np.flatnonzero(fits)
    if not places.size:
        return None
    longest = int(places[np.argmax(found.duration_ns[places])])
    low = float(found.start_ns[longest] - timeline.origin_ns)
    return Target(range=(low, low + float(found.duration_ns[longest])))


def _rows(timeline: Timeline, table: str, key: str) -> npt.NDArray[np.int64]:
    linked, trace = timeline.linked, timeline.trace
    name = key.split("\n", maxsplit=1)[0]
    named = trace.named_so(name.__eq__)
    if table == "kernels" and linked.has_device:
        code = CATEGORIES.index(key.split("\n")[1])
        return _of(linked.work, named[linked.work] & (linked.work_codes == code))
    if table in {"kernels", "operators", "memory"}:
        return _of(linked.operators, named[linked.operators])
    if table == "copies":
        return _of(linked.work, named[linked.work])
    if table == "communication":
        collective = trace.collective[linked.work]
        texts = np.array([trace.parsed(number) == name for number in range(len(trace.texts))], bool)
        return _of(linked.work, linked.communicates & (named[linked.work] | texts[collective]))
    if table == "modules" and name:
        numbers = [n for n, path in enumerate(linked.nesting.modules) if n and collapse_layers(path) == name]
        calls = linked.nesting.module_calls
        return _of(calls, np.isin(linked.nesting.module[calls], numbers))
    return np.zeros(0, np.int64)


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
        found["kernels"] = f"{name}\n{CATEGORIES[linked.work_codes[place]]}"
        found["copies"] = name
        owner = int(linked.owner[place])
    elif bool(trace.operators()[row]):
        if not linked.has_device:
            found["kernels"] = f"{name}\n{CATEGORIES[linked.operator_codes[row]]}"
        owner = row
    if owner >= 0:
        found["operators"] = trace.name_of(owner)
        module = linked.nesting.modules[linked.nesting.module[owner]]
        found["modules"] = collapse_layers(module)
    return found
