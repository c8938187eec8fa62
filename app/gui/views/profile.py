"""The Profile view: roofline, memory, inspector above; tables of kernels, operators and modules below, all linked."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QSplitter, QVBoxLayout, QWidget

from gptscope.app.gui.charts.chart_panel import ChartPanel
from gptscope.app.gui.charts.exporting import Exportable
from gptscope.app.gui.controller import Controller
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.views.inspector import Inspector
from gptscope.app.gui.views.profile_tables import ProfileTables
from gptscope.app.gui.widgets.basics import ElidedLabel, ThemedIcons, label, repolish, set_text
from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels import inspect_kernel, inspect_operator
from gptscope.app.viewmodels.charts import memory, roofline
from gptscope.app.viewmodels.kernel_match import row_key
from gptscope.app.viewmodels.kernel_table import OUTSIDE, kernel_table, module_of, module_table
from gptscope.app.viewmodels.operator_table import kernel_of, operator_of, operator_table
from gptscope.profiling.records import Profile

_MARGIN = 12
_SPLIT = (312, 456)
"""Heights of charts and tables before one drags the handle: all about a kernel fits at 900 pixels."""


class ProfileView(QWidget):
    """Shows the profile of the controller's current run."""

    def __init__(
        self, controller: Controller, theme: Theme, icons: ThemedIcons, export: Callable[[Exportable, str], object]
    ) -> None:
        super().__init__()
        self._controller, self._theme = controller, theme
        self._shown: tuple[object, ...] = ()
        self.setObjectName("canvas")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._make_header())
        splitter = QSplitter(Qt.Orientation.Vertical)
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(self._make_top(theme, icons, export))
        splitter.addWidget(self._make_tables(theme, icons))
        splitter.setStretchFactor(0, 2)
        splitter.setStretchFactor(1, 3)
        splitter.setSizes(_SPLIT)
        column.addWidget(splitter, 1)

    def _make_header(self) -> QWidget:
        bar = QWidget()
        bar.setProperty("bar", "true")
        bar.setFixedHeight(36)
        row = QHBoxLayout(bar)
        row.setContentsMargins(_MARGIN, 0, _MARGIN, 0)
        row.setSpacing(8)
        self.name, self.about = label("No profile yet", bold=True), ElidedLabel("", level=2, size=12)
        self.overhead, self.health = label("", size=12), label("", size=12)
        self.overhead.setProperty("chip", "plain")
        self.health.setProperty("chip", "good")
        self.overhead.setFixedHeight(20)
        self.health.setFixedHeight(20)
        row.addWidget(self.name)
        row.addWidget(self.overhead)
        row.addWidget(self.health)
        row.addWidget(self.about, 1)
        return bar

    def _make_top(self, theme: Theme, icons: ThemedIcons, export: Callable[[Exportable, str], object]) -> QWidget:
        holder = QWidget()
        row = QHBoxLayout(holder)
        row.setContentsMargins(_MARGIN, 8, _MARGIN, 8)
        row.setSpacing(8)
        self.roofline = ChartPanel(
            "Roofline", theme, icons, help_key="roofline", source="GFLOP/s over FLOP per byte", export=export
        )
        self.memory = ChartPanel(
            "Memory",
            theme,
            icons,
            help_key="memory",
            source="worker, loading to end",
            read_out=memory.read_out,
            export=export,
        )
        self.inspector = Inspector(theme)
        self.roofline.canvas.clicked.connect(self.choose)
        row.addWidget(self.roofline, 5)
        row.addWidget(self.memory, 3)
        row.addWidget(self.inspector)
        holder.setMinimumHeight(220)
        return holder

    def _make_tables(self, theme: Theme, icons: ThemedIcons) -> QWidget:
        self.tables = ProfileTables(theme, icons)
        self.kernels, self.operators, self.modules = self.tables.kernels, self.tables.operators, self.tables.modules
        self.kernels.chosen.connect(self.choose)
        self.operators.chosen.connect(self.choose_operator)
        self.modules.chosen.connect(self._choose_module)
        self.modules.opened.connect(self._open_module)
        self.tables.copied.connect(self._tell_copied)
        return self.tables

    # ---------------------------------------------------------------------------------------------- interaction

    def _tell_copied(self, rows: int) -> None:
        self._controller.told.emit(f"Copied {rows} rows." if rows else "There is no row to copy.", "info")

    def copy_rows(self) -> int:
        """Copy the table in front; returns how many rows."""
        return self.tables.copy_rows()

    def _open_module(self, module: str) -> None:
        """Show the kernels of a module."""
        words = module.replace("*", " ").replace(".", " ") if module != OUTSIDE else ""
        self.tables.filter_kernels(words.strip())

    def _choose_module(self, module: str) -> None:
        """Highlight a module's longest kernel everywhere."""
        profile = self._profile()
        inside = [row for row in profile.kernels if module_of(row) == module] if profile is not None else []
        if inside:
            self.choose(row_key(max(inside, key=lambda row: row.self_time_us)))

    def choose_operator(self, key: str) -> None:
        """Highlight one operator, its longest kernel and the kernel's module."""
        profile = self._profile()
        row = inspect_operator.find(profile, key)
        if row is None or profile is None:
            return
        kernel = kernel_of(profile, key)
        if kernel:
            self.choose(kernel)
        self.operators.choose(key)
        self.inspector.show_kernel(row.category, inspect_operator.operator_lines(row, profile, self._kind()))

    def choose(self, key: str) -> None:
        """Highlight one kernel, its module and its operator in tables, roofline and inspector."""
        self.kernels.choose(key)
        self.roofline.canvas.chosen_key = key
        self.roofline.canvas.update()
        profile = self._profile()
        row = inspect_kernel.find(profile, key)
        if row is not None and profile is not None:
            view = self._controller.experiment
            peaks = (view.peaks if view is not None else None) or self._controller.peaks
            self.inspector.show_kernel(row.category, inspect_kernel.kernel_lines(row, profile, peaks, self._kind()))
            self.modules.choose(module_of(row))
            operator = operator_of(profile, row)
            if operator:
                self.operators.choose(operator)

    def exportables(self) -> list[Exportable]:
        """The charts here."""
        return [self.roofline.exportable(), self.memory.exportable()]

    # ---------------------------------------------------------------------------------------------- showing

    def _profile(self) -> Profile | None:
        view = self._controller.experiment
        run = view.current if view is not None else None
        return run.profile if run is not None else None

    def _kind(self) -> str:
        view = self._controller.experiment
        run = view.current if view is not None else None
        return run.main_kind if run is not None else "decode"

    def rewrite(self) -> None:
        """Write all figures anew; what is chosen stays so."""
        self._shown = (None, *self._shown[1:])
        self.refresh()
        self.choose(self.kernels.chosen_key())

    def refresh(self) -> None:
        """Show the current run's profile when it, its baseline or the peaks changed."""
        view, baseline = self._controller.experiment, self._controller.shown_baseline()
        run = view.current if view is not None else None
        profile = run.profile if run is not None else None
        base = baseline.profile if baseline is not None else None
        peaks = (view.peaks if view is not None else None) or self._controller.peaks
        sensors = view.sensors.revision if view is not None and not self._controller.running else 0
        state = (id(run), id(profile), id(base), id(peaks), sensors, run.accumulator.evidence if run else None)
        if state == self._shown:
            return
        new_profile = self._shown[1:2] != state[1:2]
        self._shown = state
        kind = self._kind()
        self.kernels.show_table(kernel_table(profile, base, peaks, kind))
        self.operators.show_table(operator_table(profile, base, kind))
        self.modules.show_table(module_table(profile, base, kind))
        precision = run.started.variant.precision if run is not None and run.started is not None else "fp32"
        self.roofline.show_chart(roofline.build(profile, peaks, precision))
        if view is not None:
            self.memory.show_chart(memory.build(run, view.sensors, view.zero_ns))
        self._show_header()
        if new_profile:
            self.inspector.show_nothing()
            if self.kernels.columns.rowCount():
                self.choose(self.kernels.columns.key(0))
        self.inspector.show_evidence(
            inspect_kernel.evidence_lines(run.accumulator.evidence if run is not None else None)
        )

    def _show_header(self) -> None:
        view = self._controller.experiment
        run = view.current if view is not None else None
        profile = run.profile if run is not None else None
        set_text(self.name, run.name if run is not None else "No profile yet")
        about = ""
        if run is not None and run.started is not None:
            work = run.started.workload
            begun = fmt.when(run.started.started_unix_ns)
            about = f"{run.started.model}, {work.kind}, batch {work.batch}, context {work.context}, {begun}"
        set_text(self.about, about)
        self.overhead.setVisible(profile is not None)
        self.health.setVisible(profile is not None)
        if profile is not None:
            set_text(self.overhead, f"profiled {fmt.ratio(profile.overhead)} of the unprofiled time")
            notes = "; ".join(profile.notes)
            self.health.setProperty("chip", "warn" if notes else "good")
            repolish(self.health)
            set_text(self.health, notes or f"{profile.steps} steps, nothing repaired")
            self.health.setToolTip(notes)
            busy = profile.busy_us / profile.wall_us if profile.wall_us > 0 else None
            set_text(self.tables.unit, f"self time, kernels busy {fmt.percent(busy)} of the profiled time")
        else:
            set_text(self.tables.unit, "")
