"""Saves the opened trace, all of it or the selected range, in any format of the exporters, on a thread."""

import re
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog

from gptscope.app.gui.views.trace_tables import DIFFERENCE
from gptscope.profiling.export import ExportError
from gptscope.profiling.export.trace_formats import TRACE_FORMATS
from gptscope.profiling.export.trace_tables import TableForm, export_difference
from gptscope.profiling.trace.analysis import Linked

if TYPE_CHECKING:
    from gptscope.app.gui.views.trace import TraceView
    from gptscope.app.gui.window import MainWindow

_TABLES: tuple[TableForm, ...] = ("csv", "npz")
"""Formats that hold one table: the one in front."""
_UNUSUAL = re.compile(r"[^\w.+-]+")
"""What a file's name had better not hold."""
_EXPORTED = {"communication": "collectives", "memory": "operator-memory"}
"""Tab -> what the exporters call its table, where that is not the same."""


class TraceExport(QObject):
    """One export at a time."""

    _done = Signal(str, str)  # sentence, level

    def __init__(self, window: "MainWindow", view: "TraceView") -> None:
        super().__init__(window)
        self._window, self._view = window, view
        self._thread: threading.Thread | None = None
        self._after: Callable[[], object] | None = None
        self._done.connect(self._on_done)

    def ask_and_export(self, name: str) -> None:
        """Ask for a file (or folder) and write it."""
        form, opened = TRACE_FORMATS[name], self._view.trace
        if opened is None:
            self._window.tell("There is no trace to save; open one first (Ctrl+O).", "warning")
            return
        if self.busy():
            return
        if form.ending:
            start = str(Path.home() / f"{self._stem(name, opened.path)}{form.ending}")
            chosen, _ = QFileDialog.getSaveFileName(
                self._window, f"Save the trace: {form.summary}", start, f"*{form.ending}"
            )
        else:
            chosen = QFileDialog.getExistingDirectory(self._window, f"Folder for {form.summary}", str(Path.home()))
        if chosen:
            self.export(name, Path(chosen))

    def _stem(self, name: str, path: Path) -> str:
        """What a file is called without its ending: as the trace or run, and for one table as that too."""
        tables = self._view.tables
        called = _UNUSUAL.sub("-", self._view.name or path.name.partition(".")[0]).strip("-.") or "trace"
        if name not in _TABLES:
            return called
        front = tables.front_key()
        if front == DIFFERENCE:
            return f"{called}-{front}-{tables.difference.levels.value()}"
        return f"{called}-{front}-by-shape" if tables.by_shape(front) else f"{called}-{front}"

    def busy(self) -> bool:
        """Whether another export is being written, which is then told."""
        busy = self._thread is not None and self._thread.is_alive()
        if busy:
            self._window.tell("Another export is being written; wait for it.", "warning")
        return busy

    def export(self, name: str, path: Path, after: Callable[[], object] | None = None) -> None:
        """Write in the background; the status bar tells the end, and `after` is called if it is a good one."""
        self._after = after
        tables = self._view.tables
        page = tables.difference.page() if tables.front_key() == DIFFERENCE else None
        form = next((form for form in _TABLES if form == name), None)
        what, write = self._part(name, path)
        if page is not None and form is not None:
            what, write = "the comparison", partial(export_difference, page.diff, form, path, overwrite=True)
        self._window.tell(f"Saving {what} to {path}…", "info")
        self._thread = threading.Thread(target=self._write, args=(path, write), name="export a trace", daemon=True)
        self._thread.start()

    def _part(self, name: str, path: Path) -> tuple[str, Callable[[], Path]]:
        """What is to be written of the opened trace, in words and as a function."""
        opened, selected = self._view.trace, self._view.state.range
        assert opened is not None
        linked, origin = opened.timeline.linked, opened.timeline.origin_ns
        tab = self._view.tables.front_key() if name in _TABLES else "kernels"
        table = "operators-by-shape" if self._view.tables.by_shape(tab) else _EXPORTED.get(tab, tab)
        title = opened.path.name.partition(".")[0] or "trace"
        write = TRACE_FORMATS[name].write
        if selected is None:
            return "the whole trace", lambda: write(linked, title, path, table)
        limits = (round(selected[0]) + origin, round(selected[1]) + origin)
        return "the selected range", lambda: write(Linked.of(linked, limits), title, path, table)

    def _write(self, path: Path, write: Callable[[], Path]) -> None:
        try:
            written = write()
        except (ExportError, OSError, ValueError, KeyError) as error:
            self._done.emit(f"{path} could not be saved: {error}", "error")
        else:
            self._done.emit(f"Saved {written}.", "info")

    def _on_done(self, sentence: str, level: str) -> None:
        after, self._after = self._after, None
        self._window.tell(sentence, level)
        if after is not None and level == "info":
            after()

    def close(self) -> None:
        """Let a running export end."""
        if self._thread is not None:
            self._thread.join(30)
