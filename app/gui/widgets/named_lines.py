"""Names and values below each other, as inspectors show them."""

import re

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from gptscope.app.gui.widgets.basics import label, set_text, wrapped

_GAP = 8
_LONG = 24
_BREAKS = re.compile(r"(?<=[.,_:<>(){}/&])(?<!\d\.(?=\d))")
"""Where a long text without spaces may be broken: never in the middle of a word or a number."""


class NamedLines(QWidget):
    """Lines of a fixed width."""

    def __init__(self, width_px: int) -> None:
        super().__init__()
        self._width_px = width_px
        self._lines: list[_Line] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(1)

    def show_lines(self, lines: tuple[tuple[str, str], ...]) -> None:
        """Show names and values; without a name a value has the whole width."""
        while len(self._lines) < len(lines):
            line = _Line(self._width_px)
            self._column.addWidget(line)
            self._lines.append(line)
        for index, line in enumerate(self._lines):
            if index < len(lines) and lines[index] != line.texts:
                line.show_texts(*lines[index])
            _set_shown(line, index < len(lines))

    def texts(self) -> tuple[tuple[str, str], ...]:
        """What is shown."""
        return tuple(line.texts for line in self._lines if not line.isHidden())


class _Line(QWidget):
    """A name and its value: beside it where it fits, else below over the whole width."""

    def __init__(self, width_px: int) -> None:
        super().__init__()
        self._width_px = width_px
        self.texts = ("", "")
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(_GAP)
        self._grid.setVerticalSpacing(0)
        self._grid.setColumnStretch(1, 1)
        self._name, self._value = label("", level=2, size=12), wrapped(size=12)
        self._name.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._grid.addWidget(self._name, 0, 0)
        self._grid.addWidget(self._value, 0, 1)
        self._beside = True

    def show_texts(self, name: str, value: str) -> None:
        """Show one line."""
        self.texts = name, value
        set_text(self._name, name)
        set_text(self._value, breakable(value))
        self._name.ensurePolished()
        self._value.ensurePolished()
        _set_shown(self._name, bool(name))
        taken = self._name.fontMetrics().horizontalAdvance(name) + _GAP if name else 0
        beside = self._value.fontMetrics().horizontalAdvance(value) <= self._width_px - taken
        side = Qt.AlignmentFlag.AlignRight if beside and name else Qt.AlignmentFlag.AlignLeft
        self._value.setAlignment(side | Qt.AlignmentFlag.AlignTop)
        if beside != self._beside:
            self._beside = beside
            self._grid.removeWidget(self._value)
            self._grid.addWidget(self._value, *((0, 1) if beside else (1, 0, 1, 2)))


def _set_shown(widget: QWidget, shown: bool) -> None:
    """Show or hide a widget; when it is so already, that costs no layout."""
    if widget.isHidden() == shown:
        widget.setVisible(shown)


def breakable(text: str) -> str:
    """Long module paths, shapes and names may be broken where their parts meet (zero-width spaces)."""
    return _BREAKS.sub("\u200b", text) if len(text) > _LONG else text
