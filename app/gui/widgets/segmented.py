"""A segmented choice: exclusive push buttons in one frame."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QSizePolicy, QWidget

from gptscope.app.gui.widgets.basics import repolish


@dataclass(frozen=True)
class Segment:
    """One choice; `reason` says why it cannot be chosen, `tip` what it does."""

    name: str
    title: str
    tip: str = ""
    reason: str | None = None


class Segmented(QWidget):
    """Exactly one segment is chosen. Arrow keys move between the available ones."""

    chosen = Signal(str)

    def __init__(self, accessible_name: str) -> None:
        super().__init__()
        self.setAccessibleName(accessible_name)
        self._layout = QHBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self._group = QButtonGroup(self)
        self._group.setExclusive(True)
        self._buttons: dict[str, QPushButton] = {}
        self._segments: tuple[Segment, ...] = ()

    def set_segments(self, segments: Sequence[Segment]) -> None:
        """Show these choices, keeping the chosen one when it is still there."""
        segments = tuple(segments)
        if segments == self._segments:
            return
        if tuple(segment.name for segment in segments) != tuple(self._buttons):
            self._rebuild(segments)
        self._segments = segments
        for segment in segments:
            made = self._buttons[segment.name]
            made.setEnabled(segment.reason is None)
            made.setToolTip(segment.reason or segment.tip)
            made.setStatusTip(segment.reason or segment.tip)
            made.setAccessibleDescription(segment.reason or segment.tip)

    def _rebuild(self, segments: Sequence[Segment]) -> None:
        kept = self.value()
        for old in self._buttons.values():
            self._group.removeButton(old)
            self._layout.removeWidget(old)
            old.hide()
            old.deleteLater()
        self._buttons = {}
        for index, segment in enumerate(segments):
            made = QPushButton(segment.title)
            made.setCheckable(True)
            place = "first" if index == 0 else "last" if index == len(segments) - 1 else "mid"
            made.setProperty("seg", "only" if len(segments) == 1 else place)
            made.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            made.setMinimumWidth(10)
            made.setAccessibleName(f"{self.accessibleName()}: {segment.title}")
            made.clicked.connect(lambda _checked=False, name=segment.name: self.chosen.emit(name))
            self._group.addButton(made)
            self._layout.addWidget(made)
            self._buttons[segment.name] = made
            repolish(made)
        if kept in self._buttons:
            self._buttons[kept].setChecked(True)

    def value(self) -> str:
        """Name of the chosen segment, empty when none is."""
        return next((name for name, made in self._buttons.items() if made.isChecked()), "")

    def choose(self, name: str) -> None:
        """Choose a segment without emitting `chosen`."""
        made = self._buttons.get(name)
        if made is not None and not made.isChecked():
            made.setChecked(True)

    def segment(self, name: str) -> QPushButton:
        """The button of one segment."""
        return self._buttons[name]
