"""Follows the opener process that reads traces and makes tables: progress, cancel, results, errors in a sentence.

The window's own process computes nothing, so no trace, however large or damaged, can stall or end it. Columns come
through a file that is mapped and lives as long as the timeline made of it.
"""

import contextlib
import pickle
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from gptscope.app.opener import mapped
from gptscope.app.opener.jobs import OpenedTrace
from gptscope.app.viewmodels.timeline_model import Timeline
from gptscope.profiling.processes import describe_exit
from gptscope.profiling.temp_folders import temporary_folder
from gptscope.profiling.trace import TraceError

__all__ = ["OpenedTrace", "TraceLoader"]

_FRAME_S = 0.016
"""Between two results that are shown, so that each has a frame of its own to be painted in."""
OPENER = (sys.executable, "-P", "-m", "gptscope.app.opener")


@dataclass
class _Job:
    """One run of the opener."""

    arguments: tuple[str, ...]
    stopped: threading.Event = field(default_factory=threading.Event)
    process: "subprocess.Popen[bytes] | None" = None

    def stop(self) -> None:
        """Give it up; returns at once."""
        self.stopped.set()
        if self.process is not None:
            self.process.kill()

    def start(self) -> "subprocess.Popen[bytes]":
        """Start the process, which ends with this one. It may have been given up already."""
        process = subprocess.Popen([*OPENER, *self.arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process = process
        if self.stopped.is_set():
            process.kill()
        return process


class TraceLoader(QObject):
    """Loads one trace at a time. All signals arrive on the window's thread."""

    progressed = Signal(str, float)  # what is done, share of the whole (0 to 1)
    opened = Signal(object)  # OpenedTrace
    table_ready = Signal(str, object)  # key in TABLES, what its tab shows
    compared = Signal(str, object)  # what with what, Level -> DiffPage
    finished = Signal()
    failed = Signal(str, str)  # what happened, what it says in detail
    stopped = Signal()
    ranged = Signal(object)  # range of the tables that follow, None for the whole trace

    def __init__(self) -> None:
        super().__init__()
        self._thread: threading.Thread | None = None
        self._job: _Job | None = None
        self._at_close = contextlib.ExitStack()
        self._folder: Path | None = None
        self._numbers = count()
        self._files: weakref.WeakKeyDictionary[Timeline, Path] = weakref.WeakKeyDictionary()

    @property
    def busy(self) -> bool:
        """Whether something is being loaded or computed."""
        return self._thread is not None and self._thread.is_alive()

    def load(self, path: Path) -> None:
        """Open a trace; what was being loaded before is given up."""
        if self._folder is None:
            self._folder = self._at_close.enter_context(temporary_folder())
        self._start("load", str(path), str(self._folder / f"timeline-{next(self._numbers)}"))

    def tables(self, timeline: Timeline, selected: tuple[int, int] | None) -> None:
        """Make all tables anew for a range of an opened trace (None: all of it)."""
        self._start("tables", str(self._files[timeline]), *map(str, selected or ()))

    def compare(self, timeline: Timeline, path: Path) -> None:
        """Open another trace and compare it with an opened one."""
        self._start("compare", str(self._files[timeline]), str(path))

    def cancel(self) -> None:
        """Give up; returns at once."""
        if self._job is not None:
            self._job.stop()

    def close(self) -> None:
        """Give up, wait for the thread and remove what was handed over."""
        self.cancel()
        if self._thread is not None:
            self._thread.join(10)
        self._at_close.close()
        self._folder = None

    def _start(self, *arguments: str) -> None:
        self.cancel()
        before = self._thread
        self._job = job = _Job(arguments)
        self._thread = threading.Thread(target=self._guarded, args=(job, before), name="open a trace", daemon=True)
        self._thread.start()

    def _guarded(self, job: _Job, before: threading.Thread | None) -> None:
        """Follow the job, and turn every way to fail into a sentence."""
        if before is not None:
            before.join()
        try:
            self._follow(job)
        except OSError as error:
            self.failed.emit(str(error), "")
        except Exception as error:  # noqa: BLE001  (a fault of ours must not end the thread silently)
            sentence = f"gptscope met a fault of its own while it opened this trace: {type(error).__name__}: {error}"
            self.failed.emit(sentence, repr(error))

    def _follow(self, job: _Job) -> None:
        told = False
        with job.start() as process:
            assert process.stdout is not None
            with contextlib.suppress(EOFError, pickle.UnpicklingError):  # it has ended, perhaps within a message
                while not job.stopped.is_set():
                    name, *values = pickle.load(process.stdout)  # noqa: S301  (our own process)
                    told = told or name in {"finished", "failed"}
                    if not job.stopped.is_set():
                        self._take(name, values)
        if told:
            return
        if job.stopped.is_set():
            self.stopped.emit()
        else:
            self.failed.emit(f"The process that read the trace {describe_exit(process.returncode)}.", "")

    def _take(self, name: str, values: list[Any]) -> None:
        signals = {
            "progressed": self.progressed,
            "table_ready": self.table_ready,
            "compared": self.compared,
            "finished": self.finished,
            "failed": self.failed,
            "ranged": self.ranged,
        }
        if name == "opened":
            opened = self._handed_over(Path(values[0]))
            self.opened.emit(opened)
            _find_arguments(opened)
        else:
            signals[name].emit(*values)
        if name in {"opened", "table_ready"}:
            time.sleep(_FRAME_S)

    def _handed_over(self, file: Path) -> OpenedTrace:
        opened: OpenedTrace = mapped.read(file)
        self._files[opened.timeline] = file
        weakref.finalize(opened.timeline, _remove, file)
        return opened


def _find_arguments(opened: OpenedTrace) -> None:
    """Here and not when the first event is clicked, which would stall the window for a large packed file."""
    reader = opened.timeline.trace.args_reader
    if reader is not None:
        with contextlib.suppress(TraceError):  # it has gone: then events have no arguments
            reader.prepare()


def _remove(file: Path) -> None:
    with contextlib.suppress(OSError):  # where a mapped file cannot be removed, it goes with its folder
        file.unlink()
