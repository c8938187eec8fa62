"""The timeline's rows: tracks in order with their names, and the lane of every event within its track."""

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.nested import nest_rows
from gptscope.profiling.trace.table import GPU_CATEGORIES, NOT_STATISTICS, Int32, Int64, Trace, Track


@dataclass(frozen=True, slots=True)
class TrackInfo:
    """One track of the timeline, from top to bottom."""

    number: int
    """Position in `Trace.tracks`."""
    track: Track
    process: str
    """What to write over the process or device."""
    thread: str
    """What to write beside the track."""
    is_device: bool
    events: int
    lanes: int
    """How many rows of rectangles it needs."""


def lane_of(trace: Trace) -> npt.NDArray[np.int16]:
    """Lane of every row in its track: the depth of nesting; overlapping rows that do not nest get free lanes.

    No two rows of one lane of one track overlap.
    """
    lane = np.zeros(len(trace), dtype=np.int16)
    nested = nest_rows(trace.track, trace.start_ns, trace.duration_ns)
    lane[nested.order] = np.minimum(nested.depth, np.iinfo(np.int16).max)
    if nested.crossing:
        inside = nested.parent >= 0
        outer = nested.order[nested.parent[inside]]
        crossed = trace.end_ns[nested.order[inside]] > trace.end_ns[outer]
        of_order = trace.track[nested.order]
        for track in np.unique(trace.track[outer[crossed]]).tolist():
            rows = nested.order[of_order == track]
            lane[rows] = free_lanes(trace.start_ns[rows], trace.end_ns[rows])
    return lane


def free_lanes(start_ns: Int64, end_ns: Int64) -> npt.NDArray[np.int16]:
    """The lowest free lane for each interval, in order of their beginnings, longer ones first."""
    taken: list[tuple[int, int]] = []  # end and lane of what is open; the earliest end first
    free: list[int] = []
    count = 0
    lanes = []
    for start, end in zip(start_ns.tolist(), end_ns.tolist(), strict=True):
        while taken and taken[0][0] <= start:
            heapq.heappush(free, heapq.heappop(taken)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, count = count, count + 1
        heapq.heappush(taken, (end, lane))
        lanes.append(lane)
    return np.minimum(np.array(lanes, dtype=np.int64), np.iinfo(np.int16).max).astype(np.int16)


def tracks_in_order(trace: Trace, lane: npt.NDArray[np.int16] | None = None) -> list[TrackInfo]:
    """Tracks that have events: processes before devices as the file sorts them; frames of the recording are left out.

    Args:
        trace: From `open_trace`.
        lane: From `lane_of`, when it is at hand.
    """
    lanes = lane_of(trace) if lane is None else lane
    count = np.bincount(trace.track, minlength=len(trace.tracks))
    deepest = np.zeros(len(trace.tracks), dtype=np.int64)
    np.maximum.at(deepest, trace.track, lanes)
    on_device = _share(trace, GPU_CATEGORIES)
    frames = _share(trace, tuple(NOT_STATISTICS))
    infos = [
        TrackInfo(
            number=number,
            track=track,
            process=_process_label(trace, track, is_device=bool(on_device[number])),
            thread=_thread_label(trace, track, is_device=bool(on_device[number])),
            is_device=bool(on_device[number]),
            events=int(count[number]),
            lanes=int(deepest[number]) + 1,
        )
        for number, track in enumerate(trace.tracks)
        if count[number] and frames[number] < count[number]
    ]

    def key(info: TrackInfo) -> tuple[Any, ...]:
        track = info.track
        process = trace.sort_indices.get(Track(track.pid, None), 0)
        thread = trace.sort_indices.get(track, 0)
        return (info.is_device, process, *_natural(track.pid), thread, *_natural(track.tid))

    return sorted(infos, key=key)


def _share(trace: Trace, categories: tuple[str, ...]) -> Int32:
    """How many rows of each track are of these categories."""
    rows = trace.in_categories(*categories)
    return np.bincount(trace.track[rows], minlength=len(trace.tracks)).astype(np.int32)


def _natural(value: Any) -> tuple[int, float, str]:
    """Numbers by size, before texts."""
    if isinstance(value, int | float):
        return (0, float(value), "")
    return (1, 0.0, str(value))


def _process_label(trace: Trace, track: Track, *, is_device: bool) -> str:
    name = trace.labels.get(Track(track.pid, None), "")
    if is_device:
        return f"GPU {track.pid}" if isinstance(track.pid, int) else str(track.pid)
    return f"{name} {track.pid}".strip() if name else f"process {track.pid}"


def _thread_label(trace: Trace, track: Track, *, is_device: bool) -> str:
    name = trace.labels.get(track, "")
    if name:
        return name
    if isinstance(track.tid, int):
        return f"{'stream' if is_device else 'thread'} {track.tid}"
    return str(track.tid) if track.tid not in {None, ""} else ""
