"""What the Quality view can have done: run a mix, measure a map, calibrate, fine-tune, save what a pruning left.

Setup shows what is run.
"""

import msgspec
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.saving_dialog import SavingDialog
from gptscope.app.gui.tuning_dialog import TuningDialog
from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.progress_text import progress_note
from gptscope.app.viewmodels.quality import QualityPage
from gptscope.app.viewmodels.tuning import made_variant
from gptscope.profiling.experiment import Experiment, Variant
from gptscope.profiling.records import Calibrate, Calibrated, Failure, Progress


class QualityActions(QObject):
    """Acts on the controller for one shown page."""

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self._controller = controller
        self.tuning: TuningDialog | None = None
        self.saving: SavingDialog | None = None
        self._calibrated: QualityPage | None = None
        """Whose ranges are being measured."""
        controller.work_changed.connect(self._on_work)

    def _experiment(self) -> Experiment | None:
        view = self._controller.experiment
        return view.experiment if view is not None else None

    def take(self, shown: QualityPage, variant: Variant, *, layer_map: bool = False) -> None:
        """Let Setup show this variant beside the shown experiment's baseline."""
        controller, experiment = self._controller, self._experiment()
        if experiment is None:
            return
        setup = controller.setup
        if setup.model != experiment.model:
            controller.inspect(experiment.model)
        setup.workload, setup.variant, setup.text = experiment.workload, variant, experiment.text
        setup.compare, setup.layer_map = True, layer_map
        if controller.baseline is None and shown.baseline_variant is not None:
            setup.baseline, setup.baseline_name = shown.baseline_variant, shown.baseline_name
        controller.setup_changed.emit()

    def run(self, shown: QualityPage, variant: Variant, *, layer_map: bool = False) -> None:
        """Run this variant and the shown baseline on the same text, and compare them."""
        experiment = self._experiment()
        if experiment is None:
            return
        self.take(shown, variant, layer_map=layer_map)
        self._controller.start(
            Experiment(
                model=experiment.model, workload=experiment.workload,
                variants=(shown.baseline_variant or Variant(), variant), device=experiment.device, quality=True,
                layer_map=layer_map, text=experiment.text,
            )
        )  # fmt: skip

    def tune(self, parent: QWidget, shown: QualityPage) -> None:
        """Open the dialog that trains the shown variant's model for its rounding."""
        experiment = self._experiment()
        if experiment is not None and shown.variant is not None:
            self.tuning = TuningDialog(
                parent, self._controller, experiment, shown.variant, lambda variant: self.run(shown, variant)
            )
            self.tuning.show()

    def save(self, parent: QWidget, shown: QualityPage) -> None:
        """Open the dialog that writes the shown variant's pruned weights as a folder."""
        experiment, variant = self._experiment(), shown.variant
        if experiment is None or variant is None:
            return
        use = ("Compare it", "Run the saved model beside the baseline")
        self.saving = SavingDialog(
            parent, self._controller, experiment.model, variant,
            (*use, lambda made: self.run(shown, made_variant(variant, made))),
        )  # fmt: skip
        self.saving.show()

    @property
    def calibrating(self) -> bool:
        """True while ranges are being measured."""
        return self._calibrated is not None

    def calibrate(self, shown: QualityPage) -> None:
        """Measure the ranges of the shown variant's activations, for Setup; called again while it does, stop."""
        if self.calibrating:
            self._controller.stop()
            return
        experiment = self._experiment()
        if experiment is None or shown.variant is None:
            return
        model = shown.variant.model or experiment.model
        recipe = shown.variant.precision
        text = str(shown.variant.options.get(recipe, {}).get("calibration-text", ""))
        self._calibrated = shown  # before the first progress comes
        problem = self._controller.work(Calibrate(model=model, recipe=recipe, text=text))
        if problem:
            self._calibrated = None
        said = problem or f"Calibrating on {text or 'the text that comes with gptscope'}; Esc stops it."
        self._controller.told.emit(said, "warning" if problem else "info")

    def _on_work(self, record: object) -> None:
        shown = self._calibrated
        if shown is None:
            return
        if isinstance(record, Progress):
            self._controller.told.emit(f"Calibrating: {progress_note(record)}. Esc stops it.", "info")
        elif isinstance(record, Failure):
            self._calibrated = None
        elif isinstance(record, Calibrated):
            self._calibrated = None
            self._take_ranges(shown, record)

    def _take_ranges(self, shown: QualityPage, found: Calibrated) -> None:
        """Let Setup show the calibrated variant of the calibrated model."""
        assert shown.variant is not None
        options = {**shown.variant.options}
        options[found.recipe] = {**options.get(found.recipe, {}), "ranges": found.path}
        self.take(shown, msgspec.structs.replace(shown.variant, options=options, name=""))
        tokens = fmt.count(found.tokens)
        self._controller.told.emit(
            f"Calibrated on {tokens} tokens; Setup now uses {found.path}. Run measures it.", "info"
        )
