"""Writing a model, pruned or not, as a Hugging Face folder that other programs and later runs can open."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QFormLayout, QWidget

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.work_dialog import WorkDialog
from gptscope.app.viewmodels.tuning import new_folder, saving_request, saving_result, saving_title
from gptscope.profiling.experiment import Variant
from gptscope.profiling.records import Message, ModelSaved, SaveModel


class SavingDialog(WorkDialog):
    """One field: where. `use` is called with the folder once it is there."""

    def __init__(
        self,
        parent: QWidget,
        controller: Controller,
        model: str,
        variant: Variant,
        use: tuple[str, str, Callable[[str], object]],
    ) -> None:
        """`use`: text, tool tip and action of the button for the result."""
        super().__init__(parent, controller, "Save model", saving_title(model, variant), "Save")
        self._model, self._variant = model, variant
        form = QFormLayout()
        form.setHorizontalSpacing(16)
        what = "saved" if variant.pruning == "none" else f"{variant.pruning.replace(':', '-')}-pruned"
        form.addRow("New folder", self.add_folder(new_folder(variant.model or model, what, Path.home())))
        form.addRow("", self.folder_problem)
        self.form.addLayout(form)
        self.add_use(*use)
        self.check()

    def request(self) -> SaveModel:
        """What to ask the engine."""
        return saving_request(self._model, self._variant, self.folder.path())

    def took(self, answer: Message) -> bool:
        """Say what was written."""
        if not isinstance(answer, ModelSaved):
            return False
        self.made = answer.folder
        self.tell(saving_result(answer), "good")
        return True
