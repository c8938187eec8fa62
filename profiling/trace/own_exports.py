"""Undoes what an export of ours had to change for viewers: events that cross others go back to their own thread."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gptscope.profiling.trace.growing import hashable
from gptscope.profiling.trace.table import Trace, Track

OVERLAPPING_KEY = "gptscopeOverlappingThreads"
"""Beside the events: list of `pid`, `tid` (a thread made for events that cross others) and `of` (their own thread)."""


def on_own_threads(trace: Trace) -> Trace:
    """The trace as it was before it was exported; itself when no thread was made for it."""
    made = _made_threads(trace.metadata)
    numbers = {track: number for number, track in enumerate(trace.tracks)}
    moved = {numbers[new]: numbers[old] for new, old in made.items() if new in numbers and old in numbers}
    metadata = {key: value for key, value in trace.metadata.items() if key != OVERLAPPING_KEY}
    if not moved:
        return trace if OVERLAPPING_KEY not in trace.metadata else replace(trace, metadata=metadata)
    goes_to = np.arange(len(trace.tracks), dtype=np.int32)
    goes_to[list(moved)] = list(moved.values())
    names = {trace.tracks[number] for number in moved}
    return replace(
        trace,
        track=goes_to[trace.track],
        instants=replace(trace.instants, track=goes_to[trace.instants.track]),
        flows=replace(trace.flows, track=goes_to[trace.flows.track]),
        memory=replace(trace.memory, track=goes_to[trace.memory.track]),
        labels={track: label for track, label in trace.labels.items() if track not in names},
        sort_indices={track: index for track, index in trace.sort_indices.items() if track not in names},
        metadata=metadata,
    )


def _made_threads(metadata: Mapping[str, Any]) -> dict[Track, Track]:
    listed = metadata.get(OVERLAPPING_KEY)
    return {
        Track(hashable(one["pid"]), hashable(one["tid"])): Track(hashable(one["pid"]), hashable(one["of"]))
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, dict) and {"pid", "tid", "of"} <= one.keys()
    }
