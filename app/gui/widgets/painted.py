"""Base of every widget that paints itself: an error while painting is logged, never thrown into Qt."""

from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded


class Painted(QWidget):
    """Subclasses write `paint`; an exception that left `paintEvent` could end the process."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme = theme
        theme.changed.connect(self.update)

    def paint(self, painter: QPainter) -> None:
        """Draw the widget."""
        raise NotImplementedError

    @guarded
    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        try:
            self.paint(painter)
        finally:
            painter.end()
