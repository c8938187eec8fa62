"""Opens traces on a thread: reading, lanes and tables, with progress, cancel and errors told in a sentence."""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from gptscope.app.viewmodels.timeline_model import Timeline
from gptscope.app.viewmodels.trace_diff import diff_table
from gptscope.app.viewmodels.trace_tables import TABLES
from gptscope.profiling.trace import HealthNote, TraceError, open_trace
from gptscope.profiling.trace.analysis.checks import health_notes
from gptscope.profiling.trace.analysis.diff import LEVELS, diff_traces
from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.analysis.utilisation import device_use

_QUICK_SWITCH_S = 0.0005
"""How long the loading thread may keep Python's lock while the window wants it; usually it is ten times as long."""


@dataclass(frozen=True)
class OpenedTrace:
    """A trace ready to be looked at."""

    path: Path
    timeline: Timeline
    health: tuple[HealthNote, ...]
    devices: tuple[str, ...]
    """Names of the devices that worked."""


class _Stopped(Exception):  # noqa: N818  (not an error: the user wished it)
    pass


class TraceLoader(QObject):
    """Loads one trace at a time. All signals arrive on the window's thread."""

    progressed = Signal(str, float)  # what is done, share of the whole (0 to 1)
    opened = Signal(object)  # OpenedTrace
    table_ready = Signal(str, object)  # key in TABLES, Table
    compared = Signal(str, object)  # what with what, Level -> Table
    finished = Signal()
    failed = Signal(str, str)  # what happened, what it says in detail
    stopped = Signal()
    ranged = Signal(object)  # range of the tables that follow, None for the whole trace

    def __init__(self) -> None:
        super().__init__()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    @property
    def busy(self) -> bool:
        """Whether something is being loaded or computed."""
        return self._thread is not None and self._thread.is_alive()

    def load(self, path: Path) -> None:
        """Open a trace; what was being loaded before is given up."""
        self._start(lambda stop: self._load(path, stop))

    def tables(self, timeline: Timeline, selected: tuple[int, int] | None) -> None:
        """Make all tables anew for a range of the trace (None: all of it)."""
        self._start(lambda stop: self._tables_of(timeline, selected, stop))

    def compare(self, timeline: Timeline, path: Path) -> None:
        """Open another trace and compare it with the one that is shown."""
        self._start(lambda stop: self._compare(timeline, path, stop))

    def cancel(self) -> None:
        """Give up; returns at once."""
        self._stop.set()

    def close(self) -> None:
        """Give up and wait for the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(10)

    def _start(self, work: Callable[[threading.Event], None]) -> None:
        self.cancel()
        self._stop = stop = threading.Event()
        before = self._thread
        self._thread = threading.Thread(
            target=self._guarded, args=(work, stop, before), name="open a trace", daemon=True
        )
        self._thread.start()

    def _guarded(
        self, work: Callable[[threading.Event], None], stop: threading.Event, before: threading.Thread | None
    ) -> None:
        """Do it, and turn every way to fail into a sentence."""
        if before is not None:
            before.join()
        usual = sys.getswitchinterval()
        sys.setswitchinterval(_QUICK_SWITCH_S)
        try:
            work(stop)
        except _Stopped:
            self.stopped.emit()
        except (TraceError, OSError) as error:
            self.failed.emit(str(error), "")
        except MemoryError:
            self.failed.emit("There is not enough memory for this trace.", "")
        except Exception as error:  # noqa: BLE001  (a fault of ours must not end the thread silently)
            sentence = f"gptscope met a fault of its own while it opened this trace: {type(error).__name__}: {error}"
            self.failed.emit(sentence, repr(error))
        finally:
            sys.setswitchinterval(usual)

    def _reading(self, path: Path, stop: threading.Event) -> Callable[[int, int], None]:
        """Tells progress, each percent once."""
        shown = -1

        def progress(done: int, size: int) -> None:
            nonlocal shown
            _go_on(stop)
            percent = round(100 * done / max(size, 1))
            if percent != shown:
                shown = percent
                self.progressed.emit(f"Reading {path.name}", 0.7 * done / max(size, 1))

        return progress

    def _load(self, path: Path, stop: threading.Event) -> None:
        trace = open_trace(path, self._reading(path, stop))
        _go_on(stop)
        self.progressed.emit("Linking launches, kernels and operators", 0.72)
        linked = Linked.of(trace)
        self.progressed.emit("Sorting events into lanes", 0.76)
        timeline = Timeline(trace, linked, lambda: _go_on(stop))
        _go_on(stop)
        notes = tuple(health_notes(linked))
        devices = tuple(use.name or f"GPU {use.device}" for use in device_use(linked))
        timeline.prepare()
        self.opened.emit(OpenedTrace(path, timeline, notes, devices))
        self._tables_of(timeline, None, stop)

    def _compare(self, timeline: Timeline, path: Path, stop: threading.Event) -> None:
        other = Linked.of(open_trace(path, self._reading(path, stop)))
        tables = {}
        for number, level in enumerate(LEVELS):
            _go_on(stop)
            self.progressed.emit("Comparing", 0.7 + 0.3 * number / len(LEVELS))
            tables[level] = diff_table(diff_traces(timeline.linked, other, level))
        per_step = timeline.linked.windows.marked and other.windows.marked
        each = ", per step" if per_step else ", whole traces: they do not both mark steps"
        self.compared.emit(f"after: {path.name}{each}", tables)
        self.finished.emit()

    def _tables_of(self, timeline: Timeline, selected: tuple[int, int] | None, stop: threading.Event) -> None:
        linked = timeline.linked if selected is None else Linked.of(timeline.linked, selected)
        self.ranged.emit(selected)
        for number, (key, tab) in enumerate(TABLES.items()):
            _go_on(stop)
            self.progressed.emit(f"Table: {tab.title.lower()}", 0.8 + 0.2 * number / len(TABLES))
            self.table_ready.emit(key, tab.make(linked))
        self.finished.emit()


def _go_on(stop: threading.Event) -> None:
    if stop.is_set():
        raise _Stopped
