"""The Setup dock, in the order in which people think: model, workload, levers, what it will cost, Run."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QDockWidget, QGridLayout, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.forms.levers_form import LeversForm
from gptscope.app.gui.forms.model_form import ModelForm
from gptscope.app.gui.forms.output_form import OutputForm
from gptscope.app.gui.forms.workload_form import WorkloadForm
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import ElidedLabel, ThemedIcons, button, label, rule, set_text
from gptscope.app.gui.widgets.guarded import guarded_as
from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.estimate import estimate
from gptscope.app.viewmodels.help_texts import help_for
from gptscope.app.viewmodels.setup import command_line, differs_sentence, levers_of

WIDTH = 304
_TITLE_HEIGHT = 37


class _TitleBar(QWidget):
    """A dock asks its title bar's size hint for the height, not its fixed height."""

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(WIDTH, _TITLE_HEIGHT)

    @guarded_as(QSize())
    def minimumSizeHint(self) -> QSize:
        return QSize(120, _TITLE_HEIGHT)


class SetupDock(QDockWidget):
    """Holds the forms and the Run buttons."""

    def __init__(self, controller: Controller, theme: Theme, icons: ThemedIcons) -> None:
        super().__init__("Setup")
        self.setObjectName("setup")
        self._controller = controller
        self.setFeatures(
            QDockWidget.DockWidgetFeature.DockWidgetMovable | QDockWidget.DockWidgetFeature.DockWidgetClosable
        )
        self.setAllowedAreas(Qt.DockWidgetArea.LeftDockWidgetArea | Qt.DockWidgetArea.RightDockWidgetArea)
        self.setTitleBarWidget(self._make_title(icons))
        body = QWidget()
        body.setProperty("fill", "bg1")
        outer = QVBoxLayout(body)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        outer.addWidget(self._make_forms(theme, icons), 1)
        outer.addWidget(rule())
        outer.addWidget(self._make_buttons(icons))
        self.setWidget(body)
        self.setMinimumWidth(WIDTH)
        controller.setup_changed.connect(self.refresh)
        controller.model_changed.connect(self.refresh)
        controller.peaks_changed.connect(self.refresh)
        controller.capabilities_changed.connect(self.refresh)
        controller.running_changed.connect(self.refresh_buttons)
        controller.experiment_opened.connect(self.refresh_buttons)
        self.refresh()
        self.refresh_buttons()

    def _make_title(self, icons: ThemedIcons) -> QWidget:
        bar = _TitleBar()
        bar.setProperty("bar", "true")
        bar.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        row = QHBoxLayout(bar)
        row.setContentsMargins(12, 0, 8, 0)
        row.addWidget(label("Setup", bold=True))
        row.addStretch(1)
        hide = button("", self.hide, kind="flat", tip="Hide Setup (Ctrl+B)", name="Hide Setup")
        icons.on_button(hide, "sidebar")
        row.addWidget(hide)
        return bar

    def _make_forms(self, theme: Theme, icons: ThemedIcons) -> QWidget:
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setProperty("fill", "bg1")
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inner = QWidget()
        inner.setProperty("fill", "bg1")
        column = QVBoxLayout(inner)
        column.setContentsMargins(12, 10, 12, 8)
        column.setSpacing(8)
        self.model_form = ModelForm(self._controller, theme, icons)
        self.workload_form = WorkloadForm(self._controller, theme)
        self.levers_form = LeversForm(self._controller, theme)
        self.output_form = OutputForm(self._controller, theme)
        for form in (self.model_form, self.workload_form, self.levers_form, self.output_form):
            column.addWidget(form)
            column.addWidget(rule())
        column.addWidget(self._make_summary(icons))
        column.addStretch(1)
        area.setWidget(inner)
        return area

    def _make_summary(self, icons: ThemedIcons) -> QWidget:
        holder = QWidget()
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(label("This variant", level=2, size=12, bold=True))
        self.variant_name = ElidedLabel("", bold=True)
        self.differs = ElidedLabel("", level=2, size=12)
        column.addWidget(self.variant_name)
        column.addWidget(self.differs)
        grid = QGridLayout()
        grid.setContentsMargins(0, 4, 0, 0)
        grid.setSpacing(0)
        grid.setColumnStretch(1, 1)
        self.memory, self.ceiling = ElidedLabel("", size=12), ElidedLabel("", size=12)
        for row, (key, text, value) in enumerate(
            (("predicted_memory", "Predicted memory", self.memory), ("ceiling", "Roofline ceiling", self.ceiling))
        ):
            name = label(text, level=2, size=12)
            name.setToolTip(help_for(key))
            value.setToolTip(help_for(key))
            value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            grid.addWidget(name, row, 0)
            grid.addWidget(value, row, 1)
        column.addLayout(grid)
        links = QHBoxLayout()
        links.setContentsMargins(0, 2, 0, 0)
        copy = button("Copy as command", self.copy_command, kind="link", tip="The same run without a window")
        icons.on_button(copy, "copy", "accentText", 14)
        self.measure = button(
            "Measure peak",
            lambda: self._controller.measure_peaks(),
            kind="link",
            tip="Measure this machine's memory bandwidth and arithmetic",
        )
        links.addWidget(copy)
        links.addStretch(1)
        links.addWidget(self.measure)
        column.addLayout(links)
        return holder

    def _make_buttons(self, icons: ThemedIcons) -> QWidget:
        holder = QWidget()
        holder.setProperty("fill", "bg1")
        row = QHBoxLayout(holder)
        row.setContentsMargins(12, 10, 12, 10)
        row.setSpacing(8)
        self.run = button("Run", self._controller.run, kind="primary", tip="Run this setting (Ctrl+R)")
        self.stop = button("Stop", self._controller.stop, tip="Stop and keep what was measured (Esc)")
        self.pin = button(
            "",
            self._controller.pin_current,
            kind="icon",
            tip="Pin the shown run as baseline (Ctrl+P)",
            name="Pin as baseline",
        )
        icons.on_button(self.run, "play", "onAccent", 14)
        icons.on_button(self.stop, "stop", "t1", 14)
        icons.on_button(self.pin, "pin", "t1")
        self._run_tip = self.run.toolTip()
        row.addWidget(self.run, 1)
        row.addWidget(self.stop, 1)
        row.addWidget(self.pin)
        return holder

    def refresh(self) -> None:
        """Show the variant's name and predicted cost."""
        controller, setup = self._controller, self._controller.setup
        fusion_names = [lever.name for lever in levers_of(controller.capabilities, "fusion")]
        set_text(self.variant_name, setup.name())
        set_text(self.differs, differs_sentence(setup, fusion_names))
        cost = estimate(controller.model, setup.workload, setup.variant, controller.peaks)
        set_text(self.memory, fmt.quantity(cost.memory_bytes, "bytes", cost.memory_reason))
        set_text(self.ceiling, fmt.quantity(cost.ceiling_tokens_per_second, "rate", cost.ceiling_reason))
        self.measure.setVisible(controller.peaks is None and controller.capabilities is not None)
        self.refresh_buttons()

    def refresh_buttons(self) -> None:
        """Enable what can be done now."""
        running = self._controller.running
        wrong = next(iter(self._controller.problems().values()), "")
        self.run.setEnabled(not running and not wrong)
        self.run.setToolTip(wrong or self._run_tip)
        self.run.setAccessibleDescription(wrong)
        set_text_of = "Running" if running else "Run"
        if self.run.text() != set_text_of:
            self.run.setText(set_text_of)
        self.stop.setEnabled(running and not self._controller.stopping)
        self.stop.setText("Stopping" if self._controller.stopping else "Stop")
        self.measure.setEnabled(not running)
        self.pin.setEnabled(self._controller.experiment is not None)

    def settle(self) -> None:
        """Take what is still being typed: a field tells its value only when it is left."""
        focus = QApplication.focusWidget()
        if focus is not None and self.isAncestorOf(focus):
            focus.clearFocus()
            focus.setFocus()

    def copy_command(self) -> None:
        """Put the command line that repeats this setting on the clipboard."""
        self.settle()
        experiment = self._controller.setup.experiment(self._controller.capabilities)
        text = command_line(experiment, experiment.variants[-1])
        QGuiApplication.clipboard().setText(text)
        self._controller.told.emit(f"Copied: {text}", "info")
