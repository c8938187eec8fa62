"""What a run finds out about the output: beside the baseline's, module by module, on which text, over which seeds."""

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QVBoxLayout, QWidget

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.forms.problem_label import problem_label, show_problem
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import ElidedLabel, button, label, set_text
from gptscope.app.gui.widgets.number_boxes import WholeBox
from gptscope.app.gui.widgets.switch import Switch
from gptscope.app.viewmodels.help_texts import help_for
from gptscope.app.viewmodels.setup_problems import TEXT

MOST_SEEDS = 100
_OWN_TEXT = "Text: comes with gptscope"


class OutputForm(QWidget):
    """Two switches, and below them the text, or for training the number of seeds."""

    def __init__(self, controller: Controller, theme: Theme) -> None:
        super().__init__()
        self._controller = controller
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        title = label("Output", level=2, size=12, bold=True)
        title.setToolTip(help_for("compare_output"))
        column.addWidget(title)
        row = QHBoxLayout()
        row.setSpacing(0)
        self.compare = Switch("Compare output", theme)
        self.compare.clicked.connect(self._on_compare)
        self.layer_map = Switch("Layer map", theme)
        self.layer_map.clicked.connect(self._on_layer_map)
        row.addWidget(self.compare, 1)
        row.addWidget(self.layer_map, 1)
        column.addLayout(row)
        self._text_row = QWidget()
        text_row = QHBoxLayout(self._text_row)
        text_row.setContentsMargins(0, 0, 0, 0)
        text_row.setSpacing(8)
        self.text = ElidedLabel(_OWN_TEXT, level=2, size=12)
        self.pick = button("Choose…", self._pick, kind="link", tip="Compare on a text file of yours (UTF-8)")
        self.clear = button("Bundled", lambda: self._take(None), kind="link", tip="Back to the text of gptscope")
        text_row.addWidget(self.text, 1)
        text_row.addWidget(self.clear)
        text_row.addWidget(self.pick)
        column.addWidget(self._text_row)
        column.addWidget(self._make_seeds())
        self.problem = problem_label()
        column.addWidget(self.problem)
        controller.setup_changed.connect(self.refresh)
        controller.capabilities_changed.connect(self.refresh)
        controller.baseline_changed.connect(self.refresh)
        self.refresh()

    def _make_seeds(self) -> QWidget:
        self._seeds_row = QWidget()
        row = QHBoxLayout(self._seeds_row)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        name = label("Seeds", size=12)
        name.setFixedWidth(88)
        name.setToolTip(help_for("seeds"))
        self.seeds = WholeBox()
        self.seeds.setRange(1, MOST_SEEDS)
        self.seeds.setFixedSize(64, 28)
        self.seeds.setKeyboardTracking(False)
        self.seeds.setAccessibleName("Seeds")
        self.seeds.setToolTip(help_for("seeds"))
        self.seeds.valueChanged.connect(self._on_seeds)
        name.setBuddy(self.seeds)
        self._seeds_note = ElidedLabel("", level=3, size=12)
        row.addWidget(name)
        row.addWidget(self.seeds)
        row.addWidget(self._seeds_note, 1)
        return self._seeds_row

    def _on_seeds(self, count: int) -> None:
        self._controller.setup.seeds = count
        self._controller.setup_changed.emit()

    def _on_compare(self, on: bool) -> None:
        self._controller.setup.compare = on
        self._controller.setup.layer_map &= on
        self._controller.setup_changed.emit()

    def _on_layer_map(self, on: bool) -> None:
        self._controller.setup.layer_map = on
        self._controller.setup.compare |= on
        self._controller.setup_changed.emit()

    def _pick(self) -> None:
        file, _ = QFileDialog.getOpenFileName(
            self, "Text to compare outputs on", "", "Text (*.txt *.md);;All files (*)"
        )
        if file:
            self._take(file)

    def _take(self, file: str | None) -> None:
        self._controller.setup.text = file
        self._controller.setup_changed.emit()

    def refresh(self) -> None:
        """Show the setup; what cannot be asked for is grey and says why."""
        setup = self._controller.setup
        reason = setup.compare_reason(self._controller.capabilities)
        _show(self.compare, setup.compare, reason, help_for("compare_output"))
        _show(self.layer_map, setup.layer_map, reason or setup.layer_map_reason(), help_for("layer_map"))
        self._text_row.setVisible(setup.compare and reason is None and setup.workload.kind != "train")
        self._seeds_row.setVisible(setup.compare and reason is None and setup.workload.kind == "train")
        self.seeds.blockSignals(True)
        self.seeds.setValue(setup.seeds)
        self.seeds.blockSignals(False)
        set_text(self._seeds_note, "the measured run" if setup.seeds == 1 else f"{setup.seeds - 1} more, not timed")
        set_text(self.text, f"Text: {Path(setup.text).name}" if setup.text else _OWN_TEXT)
        self.clear.setVisible(setup.text is not None)
        show_problem(self.problem, self._controller.problems().get(TEXT, "") if not self._text_row.isHidden() else "")


def _show(switch: Switch, on: bool, reason: str | None, tip: str) -> None:
    switch.setEnabled(reason is None)
    switch.setChecked(on and reason is None)
    switch.setToolTip(reason or tip)
    switch.setStatusTip(reason or "")
    switch.setAccessibleDescription(reason or tip)
