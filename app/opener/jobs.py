"""What the opener does: read a trace, sort it into lanes and make its tables; tables of a range; compare two traces.

It tells what it does in pickled messages, tuples of a name (a signal of the window's `TraceLoader`) and values. What is
large, the timeline with all columns, goes through a file instead.
"""

import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from gptscope.app.opener import mapped
from gptscope.app.viewmodels.timeline_model import Timeline
from gptscope.app.viewmodels.trace_diff import diff_page
from gptscope.app.viewmodels.trace_tables import TABLES
from gptscope.profiling.temp_folders import sweep_left_over_folders
from gptscope.profiling.trace import HealthNote, TraceError, open_trace
from gptscope.profiling.trace.analysis.checks import health_notes
from gptscope.profiling.trace.analysis.diff import LEVELS, diff_traces
from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.analysis.utilisation import device_use

_NICENESS = 5
"""The window comes first where both want a processor."""
Send = Callable[..., None]
"""Takes a message's name and values."""


@dataclass(frozen=True)
class OpenedTrace:
    """A trace ready to be looked at."""

    path: Path
    timeline: Timeline
    health: tuple[HealthNote, ...]
    devices: tuple[str, ...]
    """Names of the devices that worked."""


def run(arguments: Sequence[str], messages: BinaryIO) -> None:
    """Do one job and tell how it went; every way to fail becomes a sentence."""

    def send(*message: Any) -> None:
        messages.write(pickle.dumps(message, protocol=5))  # whole, or nothing when a value cannot be sent
        messages.flush()

    try:
        if hasattr(os, "nice"):
            os.nice(_NICENESS)
        sweep_left_over_folders()
        JOBS[arguments[0]](send, *arguments[1:])
        send("finished")
    except (TraceError, OSError) as error:
        send("failed", str(error), "")
    except MemoryError:
        send("failed", "There is not enough memory for this trace.", "")
    except Exception as error:  # noqa: BLE001  (a fault of ours is told in the window too)
        sentence = f"gptscope met a fault of its own while it opened this trace: {type(error).__name__}: {error}"
        send("failed", sentence, repr(error))


def load(send: Send, file: str, timeline_file: str) -> None:
    """Read a trace, hand over its timeline, then make all tables."""
    path = Path(file)
    trace = open_trace(path, _reading(send, path))
    send("progressed", "Linking launches, kernels and operators", 0.72)
    linked = Linked.of(trace)
    send("progressed", "Sorting events into lanes", 0.76)
    timeline = Timeline(trace, linked)
    notes = tuple(health_notes(linked))
    devices = tuple(use.name or f"GPU {use.device}" for use in device_use(linked))
    timeline.prepare()
    mapped.write(OpenedTrace(path, timeline, notes, devices), Path(timeline_file))
    send("opened", timeline_file)
    _send_tables(send, linked, None)


def tables(send: Send, timeline_file: str, *limits_ns: str) -> None:
    """All tables anew for a range of time, or without limits for the whole trace."""
    timeline = mapped.read(Path(timeline_file)).timeline
    selected = (int(limits_ns[0]), int(limits_ns[1])) if limits_ns else None
    linked = timeline.linked if selected is None else Linked.of(timeline.linked, selected)
    _send_tables(send, linked, selected)


def compare(send: Send, timeline_file: str, file: str) -> None:
    """Compare a handed over trace with one from a file."""
    path = Path(file)
    before = mapped.read(Path(timeline_file)).timeline.linked
    after = Linked.of(open_trace(path, _reading(send, path)))
    found = {}
    for number, level in enumerate(LEVELS):
        send("progressed", "Comparing", 0.7 + 0.3 * number / len(LEVELS))
        found[level] = diff_page(diff_traces(before, after, level))
    per_step = found["kernel"].diff.per_step
    each = ", per step" if per_step else ", whole traces: they do not both mark steps around work"
    send("compared", f"after: {path.name}{each}", found)


def _send_tables(send: Send, linked: Linked, selected: tuple[int, int] | None) -> None:
    send("ranged", selected)
    for number, (key, tab) in enumerate(TABLES.items()):
        send("progressed", f"Table: {tab.title.lower()}", 0.8 + 0.2 * number / len(TABLES))
        send("table_ready", key, tab.make(linked))


def _reading(send: Send, path: Path) -> Callable[[int, int], None]:
    """Tells progress, each percent once."""
    shown = -1

    def progress(done: int, size: int) -> None:
        nonlocal shown
        percent = round(100 * done / max(size, 1))
        if percent != shown:
            shown = percent
            send("progressed", f"Reading {path.name}", 0.7 * done / max(size, 1))

    return progress


JOBS: dict[str, Callable[..., None]] = {"load": load, "tables": tables, "compare": compare}
"""Name -> what is done; each takes `send` and the texts of its command line."""
