"""Buttons for work on the shown variant's model: calibrate, fine-tune, save what a pruning left."""

from PySide6.QtWidgets import QHBoxLayout, QWidget

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.views.quality_actions import QualityActions
from gptscope.app.gui.widgets.basics import button
from gptscope.app.viewmodels.help_texts import help_for
from gptscope.app.viewmodels.quality import QualityPage
from gptscope.app.viewmodels.tuning import can_calibrate, can_save_pruned, can_tune

_CALIBRATE = "Measure the activations' ranges on the text, for Setup"


class QualityButtons(QWidget):
    """Only what is possible with the variant is there; what cannot be done now is grey."""

    def __init__(self, controller: Controller, actions: QualityActions) -> None:
        super().__init__()
        self._controller, self._actions = controller, actions
        self._page: QualityPage | None = None
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        self.calibrate = button("Calibrate", self._on_calibrate, kind="tool", tip=_CALIBRATE)
        self.tune = button("Fine-tune…", self._on_tune, kind="tool", tip=help_for("fine_tuning"))
        self.save = button("Save pruned…", self._on_save, kind="tool", tip="Write the pruned model as a folder")
        for one in (self.calibrate, self.tune, self.save):
            row.addWidget(one)
        controller.work_changed.connect(self.refresh)  # after `actions` has taken it
        controller.running_changed.connect(self.refresh)

    def show_page(self, page: QualityPage) -> None:
        """Offer what can be done with this page's variant."""
        self._page = page
        self.refresh()

    def refresh(self) -> None:
        """Show what can be done now."""
        variant = self._page.variant if self._page is not None else None
        free = not self._controller.running and not self._controller.working
        calibrating = self._actions.calibrating
        for one, possible, now in (
            (self.calibrate, can_calibrate(variant), free or calibrating),
            (self.tune, can_tune(variant), free),
            (self.save, can_save_pruned(variant), free),
        ):
            one.setVisible(possible)
            one.setEnabled(now)
        self.calibrate.setText("Stop calibrating" if calibrating else "Calibrate")
        self.calibrate.setAccessibleName(self.calibrate.text())
        self.calibrate.setToolTip("Stop it (Esc)" if calibrating else _CALIBRATE)

    def _on_calibrate(self) -> None:
        if self._page is not None:
            self._actions.calibrate(self._page)
            self.refresh()

    def _on_tune(self) -> None:
        if self._page is not None:
            self._actions.tune(self.window(), self._page)

    def _on_save(self) -> None:
        if self._page is not None:
            self._actions.save(self.window(), self._page)
