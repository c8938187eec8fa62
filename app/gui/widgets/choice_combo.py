"""A list of choices for which segments have no room; unavailable ones are grey and say why."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QStandardItemModel, QWheelEvent
from PySide6.QtWidgets import QComboBox, QSizePolicy

from gptscope.app.gui.widgets.guarded import guarded
from gptscope.app.gui.widgets.segmented import Segment


class ChoiceCombo(QComboBox):
    """Emits `picked` with the name when a person chooses; `choose` does not."""

    picked = Signal(str)

    def __init__(self, accessible_name: str) -> None:
        super().__init__()
        self.setAccessibleName(accessible_name)
        self.setFixedHeight(28)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(6)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._shown: tuple[Segment, ...] = ()
        self.activated.connect(lambda index: self.picked.emit(self.itemData(index)))

    def set_choices(self, choices: Sequence[Segment]) -> None:
        """Show these choices, keeping the chosen one when it is still there."""
        choices = tuple(choices)
        if choices == self._shown:
            return
        self._shown, kept = choices, self.value()
        self.clear()
        model = self.model()
        assert isinstance(model, QStandardItemModel)
        for index, choice in enumerate(choices):
            self.addItem(choice.title, choice.name)
            self.setItemData(index, choice.reason or choice.tip, Qt.ItemDataRole.ToolTipRole)
            self.setItemData(index, choice.reason or choice.tip, Qt.ItemDataRole.AccessibleDescriptionRole)
            model.item(index).setEnabled(choice.reason is None)
        self.choose(kept)

    def value(self) -> str:
        """Name of the chosen one, empty when none is."""
        return self.currentData() or ""

    def choose(self, name: str) -> None:
        """Choose without emitting `picked`."""
        index = self.findData(name)
        if index >= 0 and index != self.currentIndex():
            self.setCurrentIndex(index)
        if index >= 0:
            self.setToolTip(self._shown[index].reason or self._shown[index].tip)
            self.setAccessibleDescription(self._shown[index].reason or self._shown[index].tip)

    @guarded
    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scrolling the dock must not change what the pointer happens to pass."""
        event.ignore()
