"""What charts share whose parts can be pointed at and clicked."""

from typing import Generic, TypeVar

from PySide6.QtCore import QEvent, QPointF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QSizePolicy

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded, guarded_as
from gptscope.app.gui.widgets.painted import Painted
from gptscope.app.viewmodels.charts.bars import BarChart, ColumnChart

ChartT = TypeVar("ChartT", BarChart, ColumnChart)
HitT = TypeVar("HitT")


class PointedCanvas(Painted, Generic[ChartT, HitT]):
    """Shows a chart, tells what the pointer is on and what was clicked."""

    clicked = Signal(str)  # key of what was clicked
    told = Signal(str)  # about what is under the pointer; empty: nothing

    def __init__(self, theme: Theme, chart: ChartT) -> None:
        super().__init__(theme)
        self._chart: ChartT = chart
        self._hit: HitT | None = None
        self.chosen_key = ""
        self.setMouseTracking(True)
        self.setMinimumSize(220, 96)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    @property
    def chart(self) -> ChartT:
        """What is shown."""
        return self._chart

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(400, 240)

    def show_chart(self, chart: ChartT) -> None:
        """Show another chart."""
        self._chart, self._hit = chart, None
        self.setAccessibleDescription(chart.summary or chart.empty)
        self.update()

    def _at(self, position: QPointF) -> HitT | None:
        """What lies there."""
        raise NotImplementedError

    def _about(self, hit: HitT) -> str:
        """What it says about itself."""
        raise NotImplementedError

    def _key(self, hit: HitT) -> str:
        """What a click on it chooses."""
        raise NotImplementedError

    @guarded
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        hit = self._at(event.position())
        if hit == self._hit:
            return
        self._hit = hit
        self.told.emit("" if hit is None else self._about(hit))
        self.setCursor(Qt.CursorShape.ArrowCursor if hit is None else Qt.CursorShape.PointingHandCursor)
        self.update()

    @guarded
    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hit = None
        self.told.emit("")
        self.update()

    @guarded
    def mousePressEvent(self, event: QMouseEvent) -> None:
        hit = self._at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and hit is not None:
            self.clicked.emit(self._key(hit))
