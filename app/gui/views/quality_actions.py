"""What the Quality view can have done: run a mix, measure a map, calibrate, fine-tune. Setup shows what is run."""

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.tuning_dialog import TuningDialog
from gptscope.app.viewmodels.progress_text import progress_note
from gptscope.app.viewmodels.quality import QualityPage
from gptscope.profiling.experiment import Experiment, Variant
from gptscope.profiling.records import Calibrate, Calibrated, Failure, Progress


class QualityActions(QObject):
    """Acts on the controller for one shown page."""

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self._controller = controller
        self.tuning: TuningDialog | None = None
        self._calibrating = False
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

    def calibrate(self, shown: QualityPage) -> None:
        """Measure the ranges of the shown variant's activations; they go into Setup when they are there."""
        experiment = self._experiment()
        if experiment is None or shown.variant is None:
            return
        model = shown.variant.model or experiment.model
        recipe = shown.variant.precision
        text = str(shown.variant.options.get(recipe, {}).get("calibration-text", ""))
        problem = self._controller.work(Calibrate(model=model, recipe=recipe, text=text))
        self._calibrating = not problem or self._calibrating
        said = problem or f"Calibrating on {text or 'the text that comes with gptscope'}; Esc stops it."
        self._controller.told.emit(said, "warning" if problem else "info")

    def _on_work(self, record: object) -> None:
        if isinstance(record, Progress) and self._calibrating:
            self._controller.told.emit(f"Calibrating: {progress_note(record)}. Esc stops it.", "info")
        elif isinstance(record, Failure):
            self._calibrating = False
        if not isinstance(record, Calibrated):
            return
        self._calibrating = False
        setup = self._controller.setup
        own = {**setup.variant.options.get(record.recipe, {}), "ranges": record.path}
        setup.set_variant(precision=record.recipe, options={**setup.variant.options, record.recipe: own})
        self._controller.setup_changed.emit()
        self._controller.told.emit(f"Calibrated on {record.tokens} tokens; Setup now uses {record.path}.", "info")
