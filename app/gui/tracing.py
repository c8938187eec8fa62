"""Traces in the window: opening by dialog, drop, command line, recent files or a kept run; exporting; comparing two."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QFileDialog, QMenu

from gptscope.app.gui.tensorboard import TensorBoard

if TYPE_CHECKING:
    from gptscope.app.gui.trace_export import TraceExport
    from gptscope.app.gui.views.trace import TraceView
    from gptscope.app.gui.window import MainWindow

_KINDS = "Traces (*.json *.json.gz *.gz *.zip *.trace);;All files (*)"
_MODEL_ENDINGS = frozenset({".gguf", ".safetensors", ".pt", ".pth", ".bin", ".ckpt"})
_HEAD = 4096
_OTHER_RUN = "not of the shown run: Ctrl+T opens its own"


def looks_like_trace(path: Path) -> bool:
    """Whether a dropped file is to be opened as a trace rather than as a model: by its first bytes, not its name."""
    if not path.is_file() or path.suffix.lower() in _MODEL_ENDINGS:
        return False
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    if head.startswith(b"\x1f\x8b"):
        return True
    if head.startswith(b"PK"):
        return path.suffix.lower() == ".zip"
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in {b"{", b"["}


class Tracing(QObject):
    """Makes the Trace view when it is first needed and leads to it."""

    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self._window = window
        self.view: TraceView | None = None
        self._export: TraceExport | None = None
        self._recent_menu: QMenu | None = None
        self.tensorboard = TensorBoard(self, window.tell)
        window.controller.experiment_opened.connect(self.show_actions)
        window.controller.experiment_opened.connect(self._on_experiment_opened)
        window.controller.running_changed.connect(self.show_actions)

    # ---------------------------------------------------------------------------------------------- opening

    def ask_and_open(self) -> None:
        """Let a person choose a file."""
        recent = self._window.settings.recent_traces
        folder = str(Path(recent[0]).parent) if recent else str(Path.home())
        chosen, _ = QFileDialog.getOpenFileName(self._window, "Open a trace", folder, _KINDS)
        if chosen:
            self.open(Path(chosen))

    def open(self, path: Path, name: str = "") -> None:
        """Open a trace and show it; `name` for one that is not known by its file."""
        window = self._window
        view = self._made_view()
        window.tabs.setTabVisible(window.TRACE, True)
        window.actions_by_id["view_trace"].setEnabled(True)
        window.show_view(window.TRACE)
        view.open(path, name)

    def open_recent(self, text: str) -> None:
        """Open a trace of the list; one that is gone leaves it."""
        if Path(text).exists():
            self.open(Path(text))
            return
        self._window.settings.remove_recent_trace(text)
        self._show_recent()
        self._window.tell(f"{text} is gone: it was moved or deleted, so it left the recent traces.", "warning")

    def _remember(self) -> None:
        """Put a trace into the list, now that it turned out to be one; kept runs have lists of their own."""
        if self.view is not None and self.view.trace is not None and not self.view.name:
            self._window.settings.add_recent_trace(str(self.view.trace.path.absolute()))
            self._show_recent()

    def _show_recent(self) -> None:
        self._fill_recent()
        self._window.first.refresh_recent()

    def open_shown_run(self) -> None:
        """The timeline of the run chosen in History or shown, else the opened one, else that of the newest kept run."""
        window = self._window
        history, experiment = window.history, window.controller.experiment
        if history is not None and window.current_view() is history and history.chosen_runs():
            self.open_run(history.chosen_runs()[0])
        elif window.controller.running:
            window.tell("The trace of this run comes with its end; press Ctrl+T then.", "warning")
        elif experiment is not None and experiment.current is not None:
            self.open_run(experiment.current.run_id)
        elif self.view is not None and self.view.trace is not None:
            window.show_view(window.TRACE)
        else:
            self._open_newest()

    def _open_newest(self) -> None:
        library = self._window.controller.library
        kept = [entry for entry in library.entries() if entry.trace is not None] if library is not None else []
        if kept:
            self.open_run(max(kept, key=lambda entry: (entry.created_unix_ns, entry.position)).run_id)
        else:
            self._window.tell(
                "No run has a trace yet: open a file with Ctrl+O, or run and profile with Ctrl+R.", "warning"
            )

    def open_run(self, run_id: str) -> None:
        """The trace of a kept run."""
        library = self._window.controller.library
        entry = library.find(run_id) if library is not None else None
        if entry is None or entry.trace is None:
            self._window.tell("This run has no trace: it was not profiled, or ended before that.", "warning")
        else:
            self.open(entry.trace, entry.name)

    def _on_experiment_opened(self) -> None:
        if self.view is not None:
            self.view.forget_refusal()
        self._show_whose()

    def _show_whose(self) -> None:
        """The trace of a run stays in sight while another run is shown, but must not seem to be of that one."""
        view, experiment, library = self.view, self._window.controller.experiment, self._window.controller.library
        if view is None or view.trace is None:
            return
        run = experiment.current if experiment is not None else None
        entry = library.find(run.run_id) if run is not None and library is not None else None
        own = experiment is None or (entry is not None and entry.trace == view.trace.path)
        view.show_whose(_OTHER_RUN if view.name and not own else "")

    def _made_view(self) -> "TraceView":
        if self.view is None:
            from gptscope.app.gui.trace_export import TraceExport
            from gptscope.app.gui.views.trace import TraceView

            window = self._window
            self.view = TraceView(window.controller, window.theme, window.icons, window.commands.save_chart)
            self.view.open_button.clicked.connect(self.ask_and_open)
            self._export = TraceExport(window, self.view)
            self.view.export_wanted.connect(self._open_export_menu)
            self.view.shown.connect(self.show_actions)
            self.view.shown.connect(self._remember)
            self.view.shown.connect(self._show_whose)
            window.stack.addWidget(self.view)
        return self.view

    def close(self) -> None:
        """End all threads."""
        if self.view is not None:
            self.view.close_loader()
        if self._export is not None:
            self._export.close()
        self.tensorboard.close()

    # ---------------------------------------------------------------------------------------------- actions

    def show_actions(self) -> None:
        """Enable what can be done now."""
        actions = self._window.actions_by_id
        opened = self.view is not None and self.view.trace is not None
        for action_id in (
            "trace_search",
            "trace_measure",
            "trace_fit",
            "trace_shapes",
            "trace_diff",
            "trace_board",
            *actions.starting("trace_to_"),
        ):
            actions[action_id].setEnabled(opened)

    def attach(self, menu: QMenu) -> None:
        """Put the list of recent traces into a menu, and follow the first screen."""
        self._window.first.trace_wanted.connect(self.open_recent)
        self._recent_menu = menu.addMenu("Recent traces")
        self._fill_recent()

    def _fill_recent(self) -> None:
        if self._recent_menu is None:
            return
        self._recent_menu.clear()
        for text in self._window.settings.recent_traces:
            action = self._recent_menu.addAction(Path(text).name, partial(self.open_recent, text))
            action.setToolTip(text)
            action.setStatusTip(text)
        self._recent_menu.setEnabled(bool(self._recent_menu.actions()))

    def _open_export_menu(self) -> None:
        self._window.actions_by_id.submenu(self._window, "Export trace").exec(QCursor.pos())

    def export(self, form: str) -> None:
        """Save the selected range of the opened trace, or all of it."""
        if self._export is not None:
            self._export.ask_and_export(form)

    def open_in_tensorboard(self) -> None:
        """Show the selected range of the opened trace, or all of it, in TensorBoard."""
        if self._export is None or self.view is None or self.view.trace is None or self._export.busy():
            return
        folder = self.tensorboard.folder()
        if folder is not None:
            self._export.export("tensorboard", folder, after=self.tensorboard.show)

    def compare(self) -> None:
        """Compare the opened trace with another one."""
        if self.view is None or self.view.trace is None:
            return
        folder = str(self.view.trace.path.parent)
        chosen, _ = QFileDialog.getOpenFileName(self._window, "Compare with another trace", folder, _KINDS)
        if chosen:
            self.view.compare(Path(chosen))

    def search(self) -> None:
        """Search the opened trace."""
        if self.view is not None:
            self._window.show_view(self._window.TRACE)
            self.view.focus_search()

    def measure(self) -> None:
        """Measure between two moments, or stop that."""
        if self.view is not None:
            self.view.state.measure(on=not self.view.state.measuring)

    def switch_shapes(self) -> None:
        """Tell operators apart by shape, or by name only."""
        if self.view is not None and self.view.trace is not None:
            self._window.show_view(self._window.TRACE)
            if not self.view.tables.switch_shapes():
                self._window.tell("This trace has no shapes: record with record_shapes=True.", "warning")

    def fit(self) -> None:
        """See the selected range or everything."""
        if self.view is not None:
            self.view.state.fit()
