"""Fine-tuning from the Quality view: what trains and how long, progress, before and after, and comparing the result."""

from collections.abc import Callable
from pathlib import Path

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QDoubleSpinBox,
    QFileDialog,
    QFormLayout,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QProgressBar,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.widgets.basics import button, label, set_text, style_label
from gptscope.app.gui.widgets.guarded import guarded
from gptscope.app.gui.widgets.segmented import Segment, Segmented
from gptscope.app.viewmodels.progress_text import fraction_of, progress_note
from gptscope.app.viewmodels.tuning import new_folder, tuning_request, tuning_result
from gptscope.app.viewmodels.variant_names import title_of
from gptscope.profiling.experiment import Experiment, Variant
from gptscope.profiling.records import Failure, FineTuned, Progress

_MODES = (
    Segment("targeted", "worst layers", "Only the layers whose rounding changes the prediction most train."),
    Segment("qat", "all layers", "Every linear layer trains (quantization-aware training)."),
)
_FULL = 1000


class TuningDialog(QDialog):
    """Not modal: the window stays usable, but runs wait. `compare` is called with the tuned variant."""

    def __init__(
        self,
        parent: QWidget,
        controller: Controller,
        experiment: Experiment,
        variant: Variant,
        compare: Callable[[Variant], object],
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Fine-tune")
        self.setMinimumWidth(480)
        self._controller, self._experiment, self._variant, self._compare = controller, experiment, variant, compare
        self._folder = ""
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(10)
        about = label(f"Trains the model with the rounding of {title_of(variant)} in every forward pass.", level=2)
        about.setWordWrap(True)
        column.addWidget(about)
        column.addLayout(self._make_form())
        self.progress = QProgressBar()
        self.progress.setRange(0, _FULL)
        self.progress.setTextVisible(False)
        self.progress.hide()
        self.note = label("", level=2, size=12)
        self.note.setWordWrap(True)
        column.addWidget(self.progress)
        column.addWidget(self.note)
        self._rows = QGridLayout()
        self._rows.setHorizontalSpacing(16)
        column.addLayout(self._rows)
        row = QHBoxLayout()
        self.start = button("Start", self._start, kind="primary")
        self.stop = button("Stop", controller.stop, tip="Stop training; nothing is saved")
        self.compare = button("Compare it", self._compare_it, tip="Run the trained model beside the baseline")
        self.stop.setEnabled(False)
        self.compare.setEnabled(False)
        row.addWidget(self.start)
        row.addWidget(self.stop)
        row.addStretch(1)
        row.addWidget(self.compare)
        row.addWidget(button("Close", self.close))
        column.addLayout(row)
        controller.work_changed.connect(self._on_work)

    def _make_form(self) -> QFormLayout:
        form = QFormLayout()
        form.setHorizontalSpacing(16)
        self.mode = Segmented("What trains")
        self.mode.set_segments(_MODES)
        self.mode.choose("targeted")
        self.layers, self.steps, self.lr = QSpinBox(), QSpinBox(), QDoubleSpinBox()
        self.mode.chosen.connect(self._on_mode)
        self.layers.setRange(1, 999)
        self.layers.setValue(3)
        self.steps.setRange(1, 1_000_000)
        self.steps.setValue(200)
        self.lr.setDecimals(6)
        self.lr.setRange(1e-6, 1.0)
        self.lr.setSingleStep(1e-5)
        self.lr.setValue(2e-5)
        self.folder = QLineEdit(new_folder(self._experiment.model, self._variant.precision, Path.home()))
        choose = QHBoxLayout()
        choose.addWidget(self.folder, 1)
        choose.addWidget(button("Choose…", self._choose, name="Choose the folder"))
        self.text = QLineEdit(self._experiment.text or "")
        self.text.setPlaceholderText("the text that comes with gptscope")
        self.text.setAccessibleName("Text file")
        pick = QHBoxLayout()
        pick.addWidget(self.text, 1)
        pick.addWidget(button("Choose…", self._pick_text, name="Choose the text file"))
        for text, widget in (("What trains", self.mode), ("Layers", self.layers), ("Steps", self.steps)):
            widget.setAccessibleName(text)
            form.addRow(text, widget)
        self.lr.setAccessibleName("Learning rate")
        self.folder.setAccessibleName("New folder")
        form.addRow("Learning rate", self.lr)
        form.addRow("Text file", pick)
        form.addRow("New folder", choose)
        return form

    def _on_mode(self, name: str) -> None:
        self.layers.setEnabled(name == "targeted")

    def _choose(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, "Save the trained model in an empty folder", self.folder.text())
        if folder:
            self.folder.setText(folder)

    def _pick_text(self) -> None:
        file, _ = QFileDialog.getOpenFileName(self, "Train on a text file, UTF-8", self.text.text())
        if file:
            self.text.setText(file)

    def _start(self) -> None:
        try:
            request = tuning_request(
                self._experiment, self._variant, mode=self.mode.value(), layers=self.layers.value(),  # type: ignore[arg-type]
                steps=self.steps.value(), lr=self.lr.value(), folder=self.folder.text(),
                text=self.text.text(),
            )  # fmt: skip
        except ValueError as error:
            self._tell(str(error), "bad")
            return
        problem = self._controller.work(request)
        self._tell(problem or "Starting", "bad" if problem else "")
        self._working(on=not problem)

    @guarded
    def reject(self) -> None:
        """Esc, Close and the window's cross stop a training first; the next one closes."""
        if self.stop.isEnabled():
            self._controller.stop()
        else:
            super().reject()

    def _working(self, *, on: bool) -> None:
        self.start.setEnabled(not on)
        self.stop.setEnabled(on)
        self.progress.setVisible(on)

    def _tell(self, text: str, tone: str = "") -> None:
        set_text(self.note, text)
        style_label(self.note, level=2 if not tone else 1, size=12, tone=tone)  # type: ignore[arg-type]

    def _on_work(self, record: object) -> None:
        match record:
            case Progress():
                self.progress.setValue(round(_FULL * (fraction_of(record) or 0.0)))
                self._tell(progress_note(record))
            case Failure():
                self._working(on=False)
                self._tell(record.message, "bad" if record.kind != "cancelled" else "")
            case FineTuned():
                self._working(on=False)
                self._show(record)
            case _:
                pass

    def _show(self, found: FineTuned) -> None:
        result = tuning_result(found)
        for column, text in enumerate(("Perplexity", "before", "after")):
            self._rows.addWidget(label(text, level=3, size=12), 0, column)
        for row, texts in enumerate(result.rows, start=1):
            for column, text in enumerate(texts):
                self._rows.addWidget(label(text, level=1 if column else 2, size=12), row, column)
        self._tell(result.sentence, "good" if result.better else "")
        self._folder = found.folder
        self.compare.setEnabled(True)

    def _compare_it(self) -> None:
        self._compare(msgspec.structs.replace(self._variant, model=self._folder, name=""))
        self.close()
