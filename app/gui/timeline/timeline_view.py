"""Minimap, lanes and scroll bar together."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QScrollBar, QVBoxLayout, QWidget

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.timeline.canvas import TimelineCanvas
from gptscope.app.gui.timeline.minimap import Minimap
from gptscope.app.gui.timeline.state import TimelineState


class TimelineView(QWidget):
    """The timeline of one state."""

    def __init__(self, state: TimelineState, theme: Theme) -> None:
        super().__init__()
        self.state = state
        self.minimap, self.canvas = Minimap(state, theme), TimelineCanvas(state, theme)
        self.bar = QScrollBar(Qt.Orientation.Vertical)
        self.bar.setAccessibleName("Lanes")
        policy = self.bar.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # lanes keep their width
        self.bar.setSizePolicy(policy)
        column = QVBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.minimap)
        column.addWidget(self.canvas, 1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addLayout(column, 1)
        row.addWidget(self.bar)
        self.canvas.scrolled.connect(self._on_scrolled)
        self.bar.valueChanged.connect(self._on_bar)
        self._on_scrolled()

    def _on_scrolled(self) -> None:
        canvas = self.canvas
        self.bar.blockSignals(True)
        self.bar.setRange(0, max(canvas.rows.height - canvas.lanes_height, 0))
        self.bar.setPageStep(canvas.lanes_height)
        self.bar.setSingleStep(20)
        self.bar.setValue(canvas.offset)
        self.bar.blockSignals(False)
        self.bar.setVisible(self.bar.maximum() > 0)

    def _on_bar(self, value: int) -> None:
        self.canvas.scroll_to(value)

    def show_row(self, row: int) -> None:
        """Choose an event and bring it into view."""
        self.state.choose(row, show=True)
        self.canvas.show_row(row)
