"""A timeline drawn with characters: one line per track, darker where it was busier."""

from typing import Any

import numpy as np

from gptscope.app.cli.console import Console
from gptscope.app.viewmodels import formatting as f
from gptscope.profiling.printable import printable
from gptscope.profiling.trace import tracks_in_order
from gptscope.profiling.trace.analysis import Linked
from gptscope.profiling.trace.intervals import Cover

_SHADES = " ░▒▓█"
_ASCII_SHADES = " .:+#"
_LEAST_CELLS, _MOST_CELLS = 20, 120
_LABEL = 32


def draw_lanes(console: Console, linked: Linked) -> list[dict[str, Any]]:
    """Draw all tracks; returns them for programs: label, events, lanes, busy time and its share per cell."""
    start, end = linked.span_ns
    width = console.rich.width if console.is_terminal else 100
    cells = max(_LEAST_CELLS, min(_MOST_CELLS, width - _LABEL - 12))
    edges = start + ((end - start) * np.arange(cells + 1, dtype=np.float64) / cells).astype(np.int64)
    lengths = np.maximum(np.diff(edges), 1)
    shades = _ASCII_SHADES if console.ascii else _SHADES
    trace = linked.trace
    on_host = ~trace.unfinished & ~trace.in_categories("gpu_user_annotation")
    documents = []
    for info in tracks_in_order(trace):
        of_track = trace.track == info.number
        # Annotations and waits on a stream span the pauses between its work.
        works = np.flatnonzero(of_track & (trace.gpu_work() if info.is_device else on_host))
        rows = np.flatnonzero(of_track & ~trace.unfinished)
        cover = Cover(trace.start_ns[works], trace.ends(works))
        busy = cover.within(edges[:-1], edges[1:]) / lengths
        begun = np.histogram(trace.start_ns[rows], edges)[0] > 0
        level = np.clip(np.ceil(busy * (len(shades) - 1)).astype(int), 0, len(shades) - 1)
        level = np.maximum(level, begun)  # nothing that is there is invisible
        label = printable(f"{info.process} {info.thread}".strip())
        label = label if len(label) <= _LABEL else f"{label[: _LABEL - 3]}..."
        total = int(cover.within(np.array([start]), np.array([end]))[0])
        drawn = "".join(shades[i] for i in level.tolist())
        console.line(f"  {label:<{_LABEL}} |{drawn}| {f.percent(total / max(end - start, 1))}")
        documents.append(
            {
                "process": info.track.pid,
                "thread": info.track.tid,
                "label": f"{info.process} {info.thread}".strip(),
                "is_device": info.is_device,
                "events": info.events,
                "lanes": info.lanes,
                "busy_ns": total,
                "busy_share": [round(float(b), 6) for b in busy],
            }
        )
    return documents
