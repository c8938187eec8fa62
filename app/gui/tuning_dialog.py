"""Fine-tuning from the Quality view: what trains and how long, progress, before and after, and comparing the result."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QFormLayout, QGridLayout, QWidget

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.forms.problem_label import problem_label, show_problem
from gptscope.app.gui.widgets.basics import label
from gptscope.app.gui.widgets.number_boxes import ExponentBox, WholeBox
from gptscope.app.gui.widgets.path_field import PathField
from gptscope.app.gui.widgets.segmented import Segment, Segmented
from gptscope.app.gui.work_dialog import WorkDialog
from gptscope.app.viewmodels.tuning import (
    aim,
    made_variant,
    new_folder,
    recipe_of,
    text_problem,
    tuning_request,
    tuning_result,
)
from gptscope.profiling.experiment import Experiment, Variant
from gptscope.profiling.records import FineTune, FineTuned, Message

_MODES = (
    Segment("targeted", "worst layers", "Only the layers that change the prediction most train."),
    Segment("qat", "all layers", "Every linear layer trains."),
)
_LEAST_RATE = 1e-9


class TuningDialog(WorkDialog):
    """`compare` is called with the variant that has the trained weights."""

    def __init__(
        self,
        parent: QWidget,
        controller: Controller,
        experiment: Experiment,
        variant: Variant,
        compare: Callable[[Variant], object],
    ) -> None:
        super().__init__(parent, controller, "Fine-tune", _about(variant), "Start")
        self._experiment, self._variant = experiment, variant
        self.form.addLayout(self._make_form())
        self._rows = QGridLayout()
        self._rows.setHorizontalSpacing(16)
        self.outcome.addLayout(self._rows)
        self.add_use(
            "Compare it", "Run the trained model beside the baseline", lambda made: compare(made_variant(variant, made))
        )
        self.check()

    def _make_form(self) -> QFormLayout:
        form = QFormLayout()
        form.setHorizontalSpacing(16)
        self.mode = Segmented("What trains")
        self.mode.set_segments(_MODES)
        self.mode.choose("targeted")
        self.layers, self.steps, self.lr = WholeBox(), WholeBox(), ExponentBox()
        self.mode.chosen.connect(self._on_mode)
        self.layers.setRange(1, 999)
        self.layers.setValue(3)
        self.layers.setToolTip("So many train: those whose rounding or pruning changes the prediction most.")
        self.steps.setRange(1, 1_000_000)
        self.steps.setValue(200)
        self.lr.setRange(_LEAST_RATE, 1.0)
        self.lr.setValue(2e-5)
        self.lr.setToolTip("Above 0 and at most 1; 2e-5 is usual.")
        what = aim(recipe_of(self._variant), self._variant.pruning).lower().replace(" ", "-").replace(":", "-")
        folder = self.add_folder(new_folder(self._experiment.model, f"{what}-tuned", Path.home()))
        self.text = PathField("Text file", _pick_text, placeholder="the text that comes with gptscope")
        self.text.set_path(self._experiment.text or "")
        self.text_problem = problem_label()
        self.text.line.textChanged.connect(self.check)
        for text, widget in (
            ("What trains", self.mode), ("Layers", self.layers), ("Steps", self.steps), ("Learning rate", self.lr)
        ):  # fmt: skip
            widget.setAccessibleName(text)
            widget.setFixedHeight(28)
            form.addRow(text, widget)
        form.addRow("Text file", self.text)
        form.addRow("", self.text_problem)
        form.addRow("New folder", folder)
        form.addRow("", self.folder_problem)
        return form

    def _on_mode(self, name: str) -> None:
        self.layers.setEnabled(name == "targeted")

    def problem(self) -> str:
        """What is wrong with text or folder, told at either."""
        wrong = text_problem(self.text.path())
        show_problem(self.text_problem, wrong)
        return super().problem() or wrong

    def request(self) -> FineTune:
        """What to ask the engine."""
        return tuning_request(
            self._experiment, self._variant, mode=self.mode.value(), layers=self.layers.value(),  # type: ignore[arg-type]
            steps=self.steps.value(), lr=self.lr.value(), folder=self.folder.path(), text=self.text.path(),
        )  # fmt: skip

    def took(self, answer: Message) -> bool:
        """Show perplexities before and after."""
        if not isinstance(answer, FineTuned):
            return False
        while (old := self._rows.takeAt(0)) is not None:
            widget = old.widget()
            assert widget is not None
            widget.deleteLater()
        found = tuning_result(answer)
        for column, text in enumerate(("Perplexity", "before", "after")):
            self._rows.addWidget(label(text, level=3, size=12), 0, column)
        for row, texts in enumerate(found.rows, start=1):
            for column, text in enumerate(texts):
                self._rows.addWidget(label(text, level=1 if column else 2, size=12), row, column)
        self.made = answer.folder
        self.tell(found.sentence, "good" if found.better else "")
        return True


def _pick_text(parent: QWidget, before: str) -> str:
    return QFileDialog.getOpenFileName(parent, "Train on a text file, UTF-8", before)[0]


def _about(variant: Variant) -> str:
    for_what, recipe = aim(recipe_of(variant), variant.pruning), recipe_of(variant)
    if variant.pruning == "none":
        return f"Trains the model with the rounding of {for_what} in every forward pass."
    rounding = "" if recipe == "fp32" else f", with the rounding of {aim(recipe, 'none')} in every forward pass"
    return f"Prunes the model ({variant.pruning}), then trains what is left to predict as before{rounding}."
