"""What each action does in this window: one handler per action id."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QApplication, QFileDialog

from gptscope.app.gui.theme import ThemeChoice
from gptscope.app.viewmodels import formatting as fmt

if TYPE_CHECKING:
    from gptscope.app.gui.charts.exporting import Exportable
    from gptscope.app.gui.window import MainWindow


class Commands:
    """Handlers, bound to one window."""

    EXPORTS = (
        "export_chart_png",
        "export_chart_svg",
        "export_chart_pdf",
        "export_chart_csv",
        "export_trace",
        "export_json",
        "export_kernels_csv",
        "export_steps_csv",
    )

    TRACE_FORMATS = ("chrome", "tensorboard", "csv", "npz", "speedscope", "folded", "markdown")

    def __init__(self, window: "MainWindow") -> None:
        self._window = window

    def handlers(self) -> dict[str, Callable[[], object]]:
        """Action id -> what it does."""
        window = self._window
        controller = window.controller
        return {
            "demo": controller.run_demo,
            "open_folder": lambda: window.dock.model_form.browse_folder(),
            "open_file": lambda: window.dock.model_form.browse_file(),
            **{f"export_chart_{kind}": partial(self.export_chart, kind) for kind in ("png", "svg", "pdf", "csv")},
            "export_trace": lambda: self.export_run("trace"),
            "export_json": lambda: self.export_run("json"),
            "export_kernels_csv": lambda: self.export_run("kernels"),
            "export_steps_csv": lambda: self.export_run("steps"),
            "settings": self.open_settings,
            "quit": window.close,
            "copy_command": lambda: window.dock.copy_command(),
            "copy_table": self.copy_table,
            "undo_delete": self.undo_delete,
            **{
                f"view_{name}": partial(self.show_view, name)
                for name in ("live", "profile", "compare", "quality", "trace", "history")
            },
            "save_model": self.save_model,
            "open_trace": window.tracing.ask_and_open,
            "show_timeline": window.tracing.open_shown_run,
            "trace_diff": window.tracing.compare,
            "trace_board": window.tracing.open_in_tensorboard,
            "trace_search": window.tracing.search,
            "trace_measure": window.tracing.measure,
            "trace_fit": window.tracing.fit,
            "trace_shapes": window.tracing.switch_shapes,
            **{f"trace_to_{form}": partial(window.tracing.export, form) for form in self.TRACE_FORMATS},
            "toggle_setup": lambda: window.dock.setVisible(window.dock.isHidden()),
            "theme_system": lambda: self.choose_theme("system"),
            "theme_dark": lambda: self.choose_theme("dark"),
            "theme_light": lambda: self.choose_theme("light"),
            "reset_zoom": self.reset_zoom,
            "run": self.run,
            "stop": controller.stop,
            "pin": controller.pin_current,
            "unpin": controller.unpin,
            "compare_runs": self.compare_selected,
            "all_fusions": lambda: window.dock.levers_form.all_button.click(),
            "no_fusions": lambda: window.dock.levers_form.none_button.click(),
            "measure_peaks": lambda: controller.measure_peaks(fresh=True),
            "reset_layout": self.reset_layout,
            "fullscreen": self.toggle_fullscreen,
            "palette": self.open_palette,
            "glossary": self.open_glossary,
            "about": self.open_about,
        }

    def run(self) -> None:
        """Run the setting of the Setup dock (also after a failure)."""
        self._window.dock.settle()
        self._window.controller.run()

    def show_view(self, name: str) -> None:
        """Show one of the views."""
        from gptscope.app.gui.window import VIEWS

        self._window.show_view([view.lower() for view in VIEWS].index(name))

    def compare_selected(self) -> None:
        """Compare the runs that are chosen in History."""
        window = self._window
        if window.history is not None:
            self.compare_runs(window.history.chosen_runs())

    def compare_runs(self, run_ids: list[str]) -> None:
        """Compare stored runs, or say why that is not possible."""
        problem = self._window.comparing.choose(run_ids)
        if problem:
            self._window.tell(problem, "warning")
        else:
            self.show_view("compare")

    def open_run(self, run_id: str, view: str) -> None:
        """Show one run in a view: of the shown experiment, else from the library."""
        controller = self._window.controller
        experiment = controller.experiment
        if experiment is not None and run_id in experiment.runs:
            experiment.choose(run_id)
        elif not controller.reopen(run_id):
            return
        self.show_view(view)

    def show_timeline(self, run_id: str) -> None:
        """Open the trace of a kept run."""
        self._window.tracing.open_run(run_id)

    def undo_delete(self) -> None:
        """Bring the last deleted run back."""
        if self._window.history is not None:
            self._window.history.undo_delete()

    # ---------------------------------------------------------------------------------------------- look

    def reset_zoom(self) -> None:
        """Show the whole time axis."""
        if self._window.live is not None:
            self._window.live.reset_zoom()

    def choose_theme(self, choice: ThemeChoice) -> None:
        """Switch the theme and remember it."""
        self._window.theme.choose(choice)
        self._window.settings.theme = choice

    def choose_digits(self, digits: int) -> None:
        """Write all figures with this many digits, and remember it."""
        if digits != self._window.settings.digits:
            self._window.settings.digits = digits
            fmt.show_digits(digits)
            self._window.rewrite()

    def toggle_theme(self) -> None:
        """Dark to light and back."""
        self.choose_theme("light" if self._window.theme.name == "dark" else "dark")

    def toggle_fullscreen(self) -> None:
        """Full screen and back."""
        window = self._window
        window.showNormal() if window.isFullScreen() else window.showFullScreen()

    def reset_layout(self) -> None:
        """Put everything back where it was at first."""
        from PySide6.QtCore import Qt

        window = self._window
        window.settings.forget_layout()
        window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, window.dock)
        window.dock.setFloating(False)
        window.dock.show()
        window.resizeDocks([window.dock], [304], Qt.Orientation.Horizontal)

    # ---------------------------------------------------------------------------------------------- dialogs

    def open_palette(self) -> None:
        """The command palette."""
        from gptscope.app.gui.palette import CommandPalette

        CommandPalette(self._window).open_at_top()

    def save_model(self) -> None:
        """Write Setup's model, pruned as Setup says, as a folder."""
        from gptscope.app.gui.saving_dialog import SavingDialog
        from gptscope.app.viewmodels.setup import effective

        window = self._window
        window.dock.settle()
        setup = window.controller.setup
        variant = effective(setup.variant, "prefill", window.controller.capabilities)
        use = ("Use it", "Choose the saved model in Setup", window.dock.model_form.choose)
        SavingDialog(window, window.controller, setup.model, variant, use).show()

    def open_settings(self) -> None:
        """The settings dialog."""
        from gptscope.app.gui.dialogs import SettingsDialog

        SettingsDialog(self._window).exec()

    def open_glossary(self) -> None:
        """Every metric and lever in two sentences."""
        from gptscope.app.gui.dialogs import GlossaryDialog

        GlossaryDialog(self._window).show()

    def open_about(self) -> None:
        """Versions of everything that matters."""
        from gptscope.app.gui.dialogs import AboutDialog

        AboutDialog(self._window).exec()

    # ---------------------------------------------------------------------------------------------- export, copy

    def export_chart(self, kind: str) -> None:
        """Save the chart with the keyboard focus, else the first one of the view."""
        window = self._window
        view = window.current_view()
        found: list[Exportable] = view.exportables() if hasattr(view, "exportables") else []
        if not found:
            window.tell("There is no chart here to save.", "warning")
            return
        focus = QApplication.focusWidget()
        self.save_chart(next((chart for chart in found if chart.widget is focus), found[0]), kind)

    def save_chart(self, chart: "Exportable", kind: str) -> None:
        """Ask for a file and save one chart."""
        from gptscope.app.gui.charts.exporting import export_chart

        name = chart.title.lower().replace(" ", "-")
        file = self._ask_file(f"Save “{chart.title}”", f"{name}.{kind}", f"{kind.upper()} (*.{kind})")
        if file is not None:
            self._save(file, lambda: export_chart(chart, file))

    def export_run(self, what: str) -> None:
        """Save the shown run."""
        from gptscope.app.gui.run_export import EXPORTERS

        window = self._window
        exporter = EXPORTERS[what]
        view = window.controller.experiment
        run = view.current if view is not None else None
        library = window.controller.library
        if run is None or library is None:
            window.tell("There is no run to save yet.", "warning")
            return
        entry = library.find(run.run_id)
        if entry is None:
            window.tell("This run is not in the library, so it cannot be exported.", "warning")
            return
        reason = exporter.missing(entry, run)
        if reason:
            window.tell(reason, "warning")
            return
        file = self._ask_file(exporter.title, f"{entry.run_id[:8]}{exporter.ending}", exporter.filter)
        if file is not None:
            self._save(file, lambda: exporter.write(file, entry, library))

    def _ask_file(self, title: str, name: str, kinds: str) -> Path | None:
        chosen, _ = QFileDialog.getSaveFileName(self._window, title, str(Path.home() / name), kinds)
        return Path(chosen) if chosen else None

    def _save(self, file: Path, write: Callable[[], object]) -> None:
        try:
            write()
        except (OSError, ValueError) as error:
            self._window.tell(f"{file} could not be saved: {error}", "error")
        else:
            self._window.tell(f"Saved {file}.", "info")

    def copy_table(self) -> None:
        """Copy the rows of the table in view."""
        view = self._window.current_view()
        copy = getattr(view, "copy_rows", None)
        rows = copy() if copy is not None else 0
        if rows:
            self._window.tell(f"Copied {rows} rows.", "info")
        else:
            self._window.tell("There is no table here to copy.", "warning")
