"""A trace as the timeline shows it: groups of lanes with names, events by lane, counters, steps."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from gptscope.app.viewmodels.timeline_codes import event_codes, module_rows, step_rows
from gptscope.app.viewmodels.timeline_counters import CounterLane, counter_lanes
from gptscope.app.viewmodels.timeline_pixels import LaneEvents
from gptscope.app.viewmodels.timeline_work import WorkSums, work_pieces
from gptscope.profiling.printable import printable
from gptscope.profiling.trace import Trace, TrackInfo, lane_of, tracks_in_order
from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.names import short_name
from gptscope.profiling.trace.nesting import MODULE_PREFIX, PYTHON_MODULE_PREFIX

GroupKind = Literal["steps", "modules", "thread", "stream"]
_STEPS, _MODULES, _DEVICE_RANGES, _REST = range(4)
"""Parts of a track, from top to bottom."""
_PLACES: dict[GroupKind, int] = {"steps": 0, "modules": 0, "stream": 1, "thread": 2}
"""Devices stand above threads: what they did is looked at first, and threads can be many lanes deep."""


@dataclass(frozen=True)
class Group:
    """Rows of one thread or stream, or of its steps or modules."""

    kind: GroupKind
    title: str
    note: str
    track: int
    lanes: tuple[LaneEvents, ...]
    events: int


@dataclass(frozen=True)
class StepMark:
    """One step on the host's axis."""

    name: str
    start: float
    end: float


class Timeline:
    """All that the timeline draws and answers. Times are floats in nanoseconds.

    They count from the first event of the program, as in the terminal; frames around it can begin before, at times
    below zero, and end after `span`.
    """

    def __init__(self, trace: Trace, linked: Linked | None = None) -> None:
        """Sort the trace's events into lanes."""
        self.trace = trace
        self.linked = linked if linked is not None else Linked.of(trace)
        self.origin_ns, last = self.linked.span_ns
        self.span = float(max(last - self.origin_ns, 1))
        virtual = self._virtual_tracks()
        lane = lane_of(dataclasses.replace(trace, track=virtual))
        self.codes = event_codes(self.linked, self._has_inside(virtual, lane))
        infos = tracks_in_order(trace, lane)
        self.first, self.last = self._bounds(infos)
        self.groups = self._groups(infos, virtual, lane)
        self.counters: list[CounterLane] = counter_lanes(trace, self.origin_ns)
        self.steps = self._steps()
        self.sums = WorkSums(work_pieces(self.linked, self.codes), self.origin_ns)
        self._places: dict[int, tuple[int, int]] = {}

    def _virtual_tracks(self) -> npt.NDArray[np.int32]:
        """Steps, modules and ranges on devices apart from the rest of their track: each has a nesting of its own."""
        trace, count = self.trace, len(self.trace.tracks)
        part = np.full(len(trace), _REST, np.int32)
        part[module_rows(self.linked)] = _MODULES
        part[step_rows(self.linked)] = _STEPS
        part[trace.in_categories("gpu_user_annotation")] = _DEVICE_RANGES
        virtual: npt.NDArray[np.int32] = trace.track + part * np.int32(count)
        return virtual

    def _has_inside(self, virtual: npt.NDArray[np.int32], lane: npt.NDArray[np.int16]) -> npt.NDArray[np.bool_]:
        """Which rows have a row of the next lane inside."""
        trace = self.trace
        if self.linked.has_device or self.linked.operators.size:
            return np.zeros(len(trace), bool)  # nobody asks
        order = np.lexsort((lane, trace.start_ns, virtual))
        inside = np.zeros(len(trace), bool)
        deeper = (lane[order][1:] > lane[order][:-1]) & (virtual[order][1:] == virtual[order][:-1])
        deeper &= trace.start_ns[order][1:] < trace.end_ns[order][:-1]
        inside[order[:-1][deeper]] = True
        return inside

    def _bounds(self, infos: Sequence[TrackInfo]) -> tuple[float, float]:
        """From when to when there is something to see."""
        shown = np.zeros(len(self.trace.tracks), bool)
        shown[[info.number for info in infos]] = True
        rows = shown[self.trace.track]
        if not rows.any():
            return 0.0, self.span
        first, last = self.trace.span_of(rows)
        return min(float(first - self.origin_ns), 0.0), max(float(last - self.origin_ns), self.span)

    def _groups(
        self, infos: Sequence[TrackInfo], virtual: npt.NDArray[np.int32], lane: npt.NDArray[np.int16]
    ) -> list[Group]:
        trace, count = self.trace, len(self.trace.tracks)
        depth = int(lane.max()) + 1 if lane.size else 1
        key = virtual.astype(np.int64) * depth + lane
        order = np.lexsort((trace.start_ns, key)).astype(np.int32)
        keys = key[order]
        begin = (trace.start_ns[order] - self.origin_ns).astype(np.float64)
        end = begin + trace.duration_ns[order]
        codes = self.codes[order]
        several = len({info.process for info in infos if not info.is_device}) > 1
        found: list[tuple[int, int, Group]] = []
        for position, info in enumerate(infos):
            rest: list[LaneEvents] = []
            events = 0
            for part in range(_REST + 1):
                number = info.number + part * count
                bounds = np.searchsorted(keys, number * depth + np.arange(depth + 1))
                lanes = []
                for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
                    if b > a:
                        lanes.append(LaneEvents.build(order[a:b], begin[a:b], end[a:b], codes[a:b]))
                size = int(bounds[-1] - bounds[0])
                if part in (_STEPS, _MODULES):
                    if lanes:
                        kind: GroupKind = "steps" if part == _STEPS else "modules"
                        group = self._group(kind, info, tuple(lanes), size, several=several)
                        found.append((_PLACES[kind], position, group))
                else:
                    rest, events = rest + lanes, events + size
            instants = self._instants(info.number)
            rest += [instants] if instants is not None else []
            if rest:
                kind = "stream" if info.is_device else "thread"
                found.append((_PLACES[kind], position, self._group(kind, info, tuple(rest), events, several=several)))
        found.sort(key=lambda one: one[:2])
        return [group for _, _, group in found]

    def _group(
        self, kind: GroupKind, info: TrackInfo, lanes: tuple[LaneEvents, ...], events: int, *, several: bool
    ) -> Group:
        process, thread = printable(info.process), printable(info.thread or info.process)
        where = f"{process}, {thread}" if several else thread
        title = {"steps": "Steps", "modules": "Modules", "thread": thread, "stream": thread}[kind]
        note = where if kind in {"steps", "modules"} else process if info.thread else ""
        return Group(kind, title, note, info.number, lanes, events)

    def _instants(self, track: int) -> LaneEvents | None:
        instants = self.trace.instants
        rows = np.flatnonzero(instants.track == track)
        if not rows.size:
            return None
        rows = rows[np.argsort(instants.time_ns[rows], kind="stable")]
        time = (instants.time_ns[rows] - self.origin_ns).astype(np.float64)
        inside = (time >= self.first) & (time <= self.last)
        rows, time = rows[inside], time[inside]
        other = np.full(rows.size, 9, np.uint8)
        return LaneEvents.build((-1 - rows).astype(np.int32), time, time, other) if rows.size else None

    def _steps(self) -> list[StepMark]:
        trace = self.trace
        rows = np.flatnonzero(step_rows(self.linked) & ~trace.in_categories("gpu_user_annotation"))
        rows = rows[np.argsort(trace.start_ns[rows], kind="stable")]
        origin = self.origin_ns
        return [
            StepMark(trace.name_of(row), float(trace.start_ns[row] - origin), float(trace.end_ns[row] - origin))
            for row in rows.tolist()
        ]

    # ------------------------------------------------------------------------------------------ questions

    @cached_property
    def labels(self) -> list[str]:
        """Name number -> what stands on an event, shortened by meaning."""
        return [_label(name) for name in self.trace.names]

    def prepare(self) -> None:
        """Compute now what would else be computed when it is first drawn or chosen."""
        _ = (self.labels, self.linked.entries, self.linked.communicates)

    def label(self, row: int) -> str:
        """What stands on an event or instant."""
        if row < 0:
            return self.labels[int(self.trace.instants.name[-1 - row])]
        return self.labels[int(self.trace.name[row])]

    def times(self, row: int) -> tuple[float, float]:
        """Beginning and end of an event or instant."""
        if row < 0:
            time = float(self.trace.instants.time_ns[-1 - row] - self.origin_ns)
            return time, time
        start = float(self.trace.start_ns[row] - self.origin_ns)
        return start, start + float(self.trace.duration_ns[row])

    def place_of(self, row: int) -> tuple[int, int] | None:
        """Group and lane that hold a row; None when its track is not shown."""
        if row in self._places:
            return self._places[row]
        start, _ = self.times(row)
        track = self.trace.instants.track[-1 - row] if row < 0 else self.trace.track[row]
        for number, group in enumerate(self.groups):
            if group.track != track:
                continue
            for lane_number, lane in enumerate(group.lanes):
                low, high = np.searchsorted(lane.start, [start, start + 0.5])
                if (lane.rows[low:high] == row).any():
                    self._places[row] = (number, lane_number)
                    return number, lane_number
        return None


def _label(name: str) -> str:
    if name.startswith(MODULE_PREFIX):
        return printable(name.removeprefix(MODULE_PREFIX))
    if name.startswith(PYTHON_MODULE_PREFIX):
        return printable(name.removeprefix(PYTHON_MODULE_PREFIX))
    return printable(short_name(name))
