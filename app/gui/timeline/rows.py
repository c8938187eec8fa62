"""Where each lane stands: groups from top to bottom, folded or not, and which lane is at a height."""

from dataclasses import dataclass
from typing import Literal

from gptscope.app.viewmodels.timeline_counters import CounterLane
from gptscope.app.viewmodels.timeline_model import Group, Timeline
from gptscope.app.viewmodels.timeline_pixels import LaneEvents

LANE, COUNTER, PAD = 20, 38, 5
"""Heights in pixels: one lane with the gap below it, one counter, room above and below a group."""
GAP = 2
_LEAST = 38
"""Least height of a group with a note below its title."""


@dataclass(frozen=True)
class LaneRow:
    """One lane on the canvas."""

    top: int
    lane: LaneEvents
    group: int


@dataclass(frozen=True)
class CounterRow:
    """One counter on the canvas."""

    top: int
    counter: CounterLane


@dataclass(frozen=True)
class GroupRow:
    """The heading of a group or counter."""

    key: str
    top: int
    height: int
    title: str
    note: str
    kind: Literal["steps", "modules", "thread", "stream", "counter"]
    folded: bool
    hidden_lanes: int


@dataclass(frozen=True)
class Rows:
    """All of them with the height of the whole."""

    groups: tuple[GroupRow, ...] = ()
    lanes: tuple[LaneRow, ...] = ()
    counters: tuple[CounterRow, ...] = ()
    height: int = 0

    def lane_at(self, y: float) -> LaneRow | None:
        """The lane at a height, None between lanes."""
        return next((row for row in self.lanes if row.top <= y < row.top + LANE), None)

    def counter_at(self, y: float) -> CounterRow | None:
        """The counter at a height."""
        return next((row for row in self.counters if row.top <= y < row.top + COUNTER), None)

    def group_at(self, y: float) -> GroupRow | None:
        """The heading at a height."""
        return next((row for row in self.groups if row.top <= y < row.top + row.height), None)


def rows_of(timeline: Timeline | None, folded: frozenset[str]) -> Rows:
    """Stack groups and counters; a folded group shows its first lane only."""
    if timeline is None:
        return Rows()
    top = 0
    groups, lanes, counters = [], [], []
    for number, group in enumerate(timeline.groups):
        key = group_key(group)
        shown = group.lanes[:1] if key in folded else group.lanes
        for position, lane in enumerate(shown):
            lanes.append(LaneRow(top + PAD + position * LANE, lane, number))
        least = _LEAST if group.note else LANE + 2 * PAD
        height = max(len(shown) * LANE + 2 * PAD, least)
        groups.append(
            GroupRow(
                key, top, height, group.title, group.note, group.kind, key in folded, len(group.lanes) - len(shown)
            )
        )
        top += height
    for number, counter in enumerate(timeline.counters):
        counters.append(CounterRow(top + PAD, counter))
        height = COUNTER + 2 * PAD
        groups.append(
            GroupRow(
                f"counter {number}", top, height, counter.name, counter.note, "counter", folded=False, hidden_lanes=0
            )
        )
        top += height
    return Rows(tuple(groups), tuple(lanes), tuple(counters), top)


def group_key(group: Group) -> str:
    """Tells groups of one trace apart."""
    return f"{group.kind} {group.track}"
