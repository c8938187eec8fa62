"""What each run computes: kind, batch, context, new tokens, steps, prompt."""

from PySide6.QtWidgets import QGridLayout, QLabel, QPlainTextEdit, QSpinBox, QVBoxLayout, QWidget

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.forms.problem_label import problem_label, show_problem
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import label, set_text
from gptscope.app.gui.widgets.number_boxes import WholeBox
from gptscope.app.gui.widgets.segmented import Segment, Segmented
from gptscope.app.viewmodels.help_texts import help_for
from gptscope.app.viewmodels.setup import STEP_NAMES, WORKLOADS
from gptscope.app.viewmodels.setup_problems import NEW_TOKENS

_MAX = {"batch": 4096, "context": 1_000_000, "new_tokens": 1_000_000, "steps": 1_000_000}
_WIDTHS = {"context": 76, "new_tokens": 76}
"""Pixels: six digits; the other two are rarely above four."""
_TIPS = {
    "train": "Forward, backward and optimizer steps.",
    "prefill": "Read prompts, write nothing.",
    "decode": "Write tokens after a prompt, one by one.",
    "generate": "Continue your own text.",
}
PROMPT_EXAMPLE = "Call me Ishmael. Some years ago"


class WorkloadForm(QWidget):
    """Writes the workload into the controller's setup; impossible numbers cannot be typed."""

    def __init__(self, controller: Controller, theme: Theme) -> None:
        super().__init__()
        self._controller = controller
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        title = label("Workload", level=2, size=12, bold=True)
        title.setToolTip(help_for("workload"))
        layout.addWidget(title)
        self.kind = Segmented("Workload")
        self.kind.set_segments([Segment(kind, kind, _TIPS[kind]) for kind in WORKLOADS])
        self.kind.chosen.connect(lambda name: self._change(kind=name))
        layout.addWidget(self.kind)
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(6)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(1, 1)
        grid.setColumnStretch(3, 1)
        self._labels: dict[str, QLabel] = {}
        self.spins: dict[str, QSpinBox] = {}
        places = {
            "batch": (0, 0, "Batch"),
            "context": (0, 2, "Context"),
            "steps": (1, 0, "Sequences"),
            "new_tokens": (1, 2, "New tokens"),
        }
        for name, (row, column, text) in places.items():
            self._labels[name] = label(text, level=2, size=12)
            spin = self._make_spin(name, text)
            self._labels[name].setBuddy(spin)
            grid.addWidget(self._labels[name], row, column)
            grid.addWidget(spin, row, column + 1)
        layout.addLayout(grid)
        self.problem = problem_label()
        layout.addWidget(self.problem)
        self.prompt = QPlainTextEdit()
        self.prompt.setPlaceholderText("Text to continue; empty: a random prompt of Context tokens")
        self.prompt.setAccessibleName("Prompt")
        self.prompt.setFixedHeight(64)
        self.prompt.setTabChangesFocus(True)
        self.prompt.setPlainText(PROMPT_EXAMPLE)
        self.prompt.textChanged.connect(self._on_prompt)
        layout.addWidget(self.prompt)
        controller.setup_changed.connect(self.refresh)
        controller.model_changed.connect(self.refresh)
        self.refresh()

    def _make_spin(self, name: str, text: str) -> QSpinBox:
        spin = WholeBox()
        spin.setRange(1, _MAX[name])
        spin.setFixedHeight(28)
        spin.setMinimumWidth(_WIDTHS.get(name, 50))
        spin.setAccessibleName(text)
        spin.setToolTip(help_for(name))
        spin.setKeyboardTracking(False)
        spin.valueChanged.connect(lambda value: self._change(**{name: value}))
        self.spins[name] = spin
        return spin

    def _change(self, **changes: object) -> None:
        if changes.get("kind") == "generate" and self._controller.setup.workload.prompt is None:
            changes["prompt"] = self.prompt.toPlainText() or None
        try:
            self._controller.setup.set_workload(**changes)
        except ValueError as error:
            self._controller.told.emit(str(error), "warning")
        self._controller.setup_changed.emit()

    def _on_prompt(self) -> None:
        self._controller.setup.set_workload(prompt=self.prompt.toPlainText() or None)

    def refresh(self) -> None:
        """Show the setup's workload; fields that do not apply disappear."""
        workload = self._controller.setup.workload
        self.kind.choose(workload.kind)
        model = self._controller.model
        limit = model.context_length if model is not None else _MAX["context"]
        for name, spin in self.spins.items():
            spin.blockSignals(True)
            if name == "context":
                spin.setMinimum(2 if workload.kind == "train" else 1)
                spin.setMaximum(limit)
                spin.setToolTip(
                    f"{help_for('context')} This model reads at most {limit} tokens." if model else help_for(name)
                )
            spin.setValue(getattr(workload, name))
            spin.blockSignals(False)
        if self.spins["context"].value() != workload.context:
            self._controller.setup.set_workload(context=self.spins["context"].value())
        set_text(self._labels["steps"], STEP_NAMES[workload.kind])
        self.spins["steps"].setAccessibleName(STEP_NAMES[workload.kind])
        writes = workload.kind in ("decode", "generate")
        self.spins["new_tokens"].setVisible(writes)
        self._labels["new_tokens"].setVisible(writes)
        show_problem(self.problem, self._controller.problems().get(NEW_TOKENS, ""))
        self.prompt.setVisible(workload.kind == "generate")
        own_text = workload.kind == "generate" and bool(workload.prompt)
        self.spins["context"].setEnabled(not own_text)
        if own_text:
            self.spins["context"].setToolTip("Your own text sets the prompt's length. Clear it to use random tokens.")
