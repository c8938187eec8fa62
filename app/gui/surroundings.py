"""What stands around the views, kept in step with the controller: title, actions, baseline, workload, status bar."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from gptscope.app.gui.widgets.basics import set_text
from gptscope.app.viewmodels.window_texts import end_sentence, window_title, workload_line

if TYPE_CHECKING:
    from gptscope.app.gui.window import MainWindow


class Surroundings(QObject):
    """Follows one window's controller, theme and dock, as long as the window lives."""

    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self._window, self._controller = window, window.controller
        controller = self._controller
        controller.running_changed.connect(self._on_running)
        controller.experiment_opened.connect(self._show_workload)
        controller.experiment_opened.connect(self._show_run)
        controller.fetch_changed.connect(self._show_stoppable)
        controller.work_changed.connect(self._show_stoppable)
        controller.baseline_changed.connect(self._show_baseline)
        controller.setup_changed.connect(self._show_workload)
        controller.capabilities_changed.connect(self._on_capabilities)
        window.theme.changed.connect(self._show_theme)
        window.dock.visibilityChanged.connect(self._on_dock_shown)
        self._show_baseline()
        self._show_theme()
        self._show_workload()
        self._show_run()

    def _show_run(self) -> None:
        """Title, what can be run, stopped and exported."""
        running = self._controller.running
        for action_id in ("run", "demo"):
            self._enable(action_id, not running)
        self._window.setWindowTitle(window_title(self._controller.experiment, running=running))
        self._show_stoppable()
        self._show_exports()

    def show_library(self) -> None:
        """How many runs are kept."""
        library = self._controller.library
        count = len(library.entries()) if library is not None else 0
        set_text(self._window.status_right, f"library: {count} run{'s' if count != 1 else ''}")

    def _enable(self, action_id: str, on: bool) -> None:
        self._window.actions_by_id[action_id].setEnabled(on)

    def _on_running(self) -> None:
        view = self._controller.experiment
        if not self._controller.running and view is not None and view.finished is not None:
            self._tell_end()
        self._show_run()

    def _tell_end(self) -> None:
        view, library = self._controller.experiment, self._controller.library
        assert view is not None
        reason = library.unkept_reason if library is not None else "There is no library."
        self._window.tell(end_sentence(view, reason), "warning" if reason or view.refused else "info")

    def _show_stoppable(self) -> None:
        controller = self._controller
        self._enable("stop", controller.running or controller.fetching or controller.working)

    def _show_exports(self) -> None:
        has_run = self._controller.experiment is not None
        for action_id in self._window.commands.EXPORTS:
            whole = not self._controller.running or "chart" in action_id  # a run is saved once it has ended
            self._enable(action_id, has_run and whole)
        self._window.export_button.setEnabled(has_run)
        self._enable("pin", has_run)

    def _on_capabilities(self) -> None:
        if not self._controller.running:
            self._window.tell("Ready. Nothing leaves this machine unless you fetch a model.", "info")

    def _show_baseline(self) -> None:
        baseline = self._controller.baseline
        self._window.bar.show_baseline(baseline.name if baseline is not None else None)
        self._enable("unpin", baseline is not None)

    def _show_workload(self) -> None:
        self._window.bar.show_workload(workload_line(self._controller.experiment))

    def _show_theme(self) -> None:
        theme = self._window.theme
        self._window.theme_button.setIcon(theme.icon("sun" if theme.name == "dark" else "moon", "t2"))
        for choice in ("system", "dark", "light"):
            self._window.actions_by_id[f"theme_{choice}"].setChecked(theme.choice == choice)

    def _on_dock_shown(self, shown: bool) -> None:
        if not self._window.isMinimized():
            self._window.setup_button.setVisible(not shown)
            self._window.actions_by_id["toggle_setup"].setChecked(shown)
