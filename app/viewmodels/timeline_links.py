"""What belongs to an event: its launch or what it launched, the operator that asked for it, ends of its flow arrows."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gptscope.app.viewmodels.timeline_model import Timeline

Relation = Literal["launch", "launched", "operator", "kernel", "flow", "sent"]
TITLES: dict[Relation, str] = {
    "launch": "Launched by",
    "launched": "Launched",
    "operator": "Operator",
    "kernel": "Kernel",
    "flow": "Flow from",
    "sent": "Flow to",
}
MOST = 64
"""Links of one kind that are listed and drawn; one graph launch can have a thousand kernels."""


@dataclass(frozen=True)
class Link:
    """Another event and why it belongs to the chosen one."""

    relation: Relation
    row: int


@dataclass(frozen=True)
class Links:
    """Links of one event; `left_out` counts those beyond `MOST` of a kind."""

    links: tuple[Link, ...]
    left_out: int = 0


def links_of(timeline: Timeline, row: int) -> Links:
    """Find them all; costs some look-ups over the trace, so it is done for the chosen event only."""
    if row < 0:
        return Links(())
    linked, found, left_out = timeline.linked, [], 0
    places = np.flatnonzero(linked.work == row)
    groups: list[tuple[Relation, list[int]]] = []
    if places.size:
        place = int(places[0])
        groups.append(("launch", [int(linked.launch[place])]))
        groups.append(("operator", [int(linked.owner[place])]))
    else:
        groups.append(("launched", linked.work[linked.launch == row].tolist()))
        groups.append(("kernel", linked.work[linked.owner == row].tolist()))
        parent = int(linked.nesting.parent[row])
        groups.append(("operator", [parent] if parent != row else []))
    known = {row}
    for relation, rows in groups:
        new = [one for one in rows if one >= 0 and one not in known]
        known.update(new)
        found += [Link(relation, one) for one in new[:MOST]]
        left_out += max(0, len(new) - MOST)
    found += [link for link in _flows(timeline, row) if link.row not in known][:MOST]
    return Links(tuple(found), left_out)


def _flows(timeline: Timeline, row: int) -> list[Link]:
    """Events at the other ends of the arrows that begin or end in this one."""
    trace, flows = timeline.trace, timeline.trace.flows
    start, end = int(trace.start_ns[row]), int(trace.end_ns[row])
    on_track = (flows.track == trace.track[row]) & (flows.time_ns >= start) & (flows.time_ns <= end)
    links = []
    for place in np.flatnonzero(on_track)[:MOST].tolist():
        time = int(flows.time_ns[place])
        if _innermost(timeline, int(trace.track[row]), time) != row:
            continue
        same = (flows.ident == flows.ident[place]) & (flows.category == flows.category[place])
        for other in np.flatnonzero(same)[:MOST].tolist():
            if other == place:
                continue
            target = _innermost(timeline, int(flows.track[other]), int(flows.time_ns[other]))
            if target is not None and target != row:
                links.append(Link("flow" if flows.time_ns[other] < time else "sent", target))
    return links


def _innermost(timeline: Timeline, track: int, time_ns: int) -> int | None:
    """The innermost event of a track at a moment: an arrow's end binds to it."""
    time = float(time_ns - timeline.origin_ns)
    for group in timeline.groups:
        if group.track == track and group.kind in {"thread", "stream"}:
            for lane in reversed(group.lanes):
                place = lane.at(time, 0.0)
                if place is not None and lane.rows[place] >= 0:
                    return int(lane.rows[place])
    return None
