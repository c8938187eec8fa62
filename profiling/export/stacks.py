"""A trace for flame graph tools: speedscope's JSON, and folded stacks (one line per stack with its own time)."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from gptscope.profiling.export.files import ExportError, write_whole
from gptscope.profiling.export.trace_rows import nesting_lanes, rows_in
from gptscope.profiling.trace import Trace, tracks_in_order
from gptscope.profiling.trace.nested import nest_rows

_NOTHING = "There is nothing to draw: no event with a duration lies there. Choose another range or trace."
_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def export_speedscope(
    trace: Trace, path: Path, range_ns: tuple[int, int] | None = None, *, overwrite: bool = False
) -> Path:
    """Write one profile per track; `ExportError` as `write_whole`, or when there is nothing to draw."""
    document = speedscope(trace, path.name, range_ns)
    if not document["profiles"]:
        raise ExportError(_NOTHING)
    return write_whole(path, [msgspec.json.encode(document)], overwrite=overwrite)


def export_folded(
    trace: Trace, path: Path, range_ns: tuple[int, int] | None = None, *, overwrite: bool = False
) -> Path:
    """Write `process;thread;outer;inner NANOSECONDS` lines; `ExportError` as for speedscope."""
    stacks = folded(trace, range_ns)
    if not stacks:
        raise ExportError(_NOTHING)
    lines = (f"{stack} {ns}\n".encode() for stack, ns in sorted(stacks.items()))
    return write_whole(path, lines, overwrite=overwrite)


def speedscope(trace: Trace, name: str, range_ns: tuple[int, int] | None = None) -> dict[str, Any]:
    """The document: evented profiles in nanoseconds since the trace's first event."""
    frames: dict[tuple[int, bool], int] = {}
    first = trace.span_ns[0] if range_ns is None else range_ns[0]
    profiles = []
    for label, rows in _nested_tracks(trace, range_ns):
        events: list[dict[str, Any]] = []
        opened: list[tuple[int, int]] = []
        start, end = _clipped(trace, rows, range_ns)
        for row, begin, stop in zip(rows.tolist(), (start - first).tolist(), (end - first).tolist(), strict=True):
            while opened and opened[-1][0] <= begin:
                at, frame = opened.pop()
                events.append({"type": "C", "frame": frame, "at": at})
            frame = frames.setdefault((int(trace.name[row]), bool(trace.unfinished[row])), len(frames))
            events.append({"type": "O", "frame": frame, "at": begin})
            if stop == begin:  # of no length: nothing lies inside it
                events.append({"type": "C", "frame": frame, "at": stop})
            else:
                opened.append((stop, frame))
        while opened:
            at, frame = opened.pop()
            events.append({"type": "C", "frame": frame, "at": at})
        if events:
            profiles.append(
                {
                    "type": "evented",
                    "name": label,
                    "unit": "nanoseconds",
                    "startValue": events[0]["at"],
                    "endValue": events[-1]["at"],
                    "events": events,
                }
            )
    return {
        "$schema": _SCHEMA,
        "name": name,
        "exporter": "gptscope",
        "activeProfileIndex": 0,
        "shared": {
            "frames": [{"name": f"{trace.names[number]}{' (never ended)' * endless}"} for number, endless in frames]
        },
        "profiles": profiles,
    }


def folded(trace: Trace, range_ns: tuple[int, int] | None = None) -> dict[str, int]:
    """Stack -> nanoseconds spent in its innermost event itself; they add up to each track's covered time.

    An event that never ended holds those inside it and has no time of its own.
    """
    sums: defaultdict[str, int] = defaultdict(int)
    for label, rows in _nested_tracks(trace, range_ns):
        start, end = _clipped(trace, rows, range_ns)
        nested = nest_rows(np.zeros(rows.size, dtype=np.int64), start, end - start)
        own = end - start
        has = np.flatnonzero(nested.parent >= 0)
        inside = np.zeros(rows.size, dtype=np.int64)
        np.add.at(inside, nested.order[nested.parent[has]], own[nested.order[has]])
        stacks: list[str] = []
        for place, parent in zip(nested.order.tolist(), nested.parent.tolist(), strict=True):
            outer = stacks[parent] if parent >= 0 else label
            stacks.append(f"{outer};{_frame(trace.names[trace.name[rows[place]]])}")
            if own[place] > inside[place] and not trace.unfinished[rows[place]]:
                sums[stacks[-1]] += int(own[place] - inside[place])
    return dict(sums)


def _frame(name: str) -> str:
    """A name without the characters that separate frames and lines."""
    return " ".join(name.replace(";", ":").split()) or "(no name)"


def _clipped(trace: Trace, rows: Any, range_ns: tuple[int, int] | None) -> tuple[Any, Any]:
    start, end = trace.start_ns[rows], trace.end_ns[rows]
    if range_ns is None:
        return start, end
    return np.clip(start, *range_ns), np.clip(end, *range_ns)


def _nested_tracks(trace: Trace, range_ns: tuple[int, int] | None) -> Iterator[tuple[str, Any]]:
    """Name and rows of every track on which events only nest, outer ones first; crossing ones lie on extra tracks."""
    rows = rows_in(trace, range_ns)
    lanes = nesting_lanes(trace, rows)
    for info in tracks_in_order(trace):
        on_track = trace.track[rows] == info.number
        for lane in np.unique(lanes[on_track]).tolist():
            here = rows[on_track & (lanes == lane)]
            order = np.lexsort((here, -trace.duration_ns[here], trace.start_ns[here]))
            label = ";".join(_frame(part) for part in (info.process, info.thread) if part)
            yield label if not lane else f"{label} (overlapping {lane})", here[order]
