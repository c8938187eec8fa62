"""Charts whose parts can be pointed at and clicked, with the mouse or with the keyboard."""

from typing import Generic, TypeVar

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded, guarded_as
from gptscope.app.gui.widgets.painted import Painted
from gptscope.app.viewmodels.chart_data import ChartData
from gptscope.app.viewmodels.charts.bars import BarChart, ColumnChart

ChartT = TypeVar("ChartT", BarChart, ColumnChart, ChartData)
HitT = TypeVar("HitT")
_FAR = 1 << 30
_MOVES: dict[Qt.Key, tuple[int, int]] = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
    Qt.Key.Key_Home: (-_FAR, 0),
    Qt.Key.Key_End: (_FAR, 0),
}
"""Key -> how many parts to the right and down."""
_CLICKS = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_BY_KEYBOARD = (
    Qt.FocusReason.TabFocusReason,
    Qt.FocusReason.BacktabFocusReason,
    Qt.FocusReason.ShortcutFocusReason,
)


class PointedCanvas(Painted, Generic[ChartT, HitT]):
    """Shows a chart, tells what is pointed at and what was clicked.

    Arrow keys, Home and End move what is pointed at, Enter clicks it, Esc lets it go. While the keyboard points, the
    accessible description is about that part.
    """

    clicked = Signal(str)  # key of what was clicked
    told = Signal(str)  # about what is pointed at; empty: nothing

    def __init__(self, theme: Theme, chart: ChartT, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._chart: ChartT = chart
        self._hit: HitT | None = None
        self._ring = False
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
        policy = Qt.FocusPolicy.StrongFocus if self._has_parts() else Qt.FocusPolicy.NoFocus
        if policy != self.focusPolicy():
            self.setFocusPolicy(policy)
        self.update()

    # ---------------------------------------------------------------------------------------------- what charts say

    def _has_parts(self) -> bool:
        """Whether there is anything to point at."""
        return not self._chart.empty

    def _at(self, position: QPointF) -> HitT | None:
        """What lies there."""
        raise NotImplementedError

    def _beside(self, hit: HitT | None, right: int, down: int) -> HitT | None:
        """What lies so many parts away, or at the end of them; from nothing the first; None: there is nothing."""
        raise NotImplementedError

    def _about(self, hit: HitT) -> str:
        """What it says about itself."""
        raise NotImplementedError

    def _key(self, hit: HitT) -> str:
        """What a click on it chooses."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------------- pointing

    def _point_at(self, hit: HitT | None) -> None:
        if hit != self._hit:
            self._hit = hit
            self.told.emit("" if hit is None else self._about(hit))
            self.update()

    def _describe(self) -> None:
        """Tell a screen reader about what the keyboard points at, else about the whole."""
        whole = self._chart.summary or self._chart.empty
        self.setAccessibleDescription(whole if self._hit is None else self._about(self._hit))

    @guarded
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        hit = self._at(event.position())
        self.setCursor(Qt.CursorShape.ArrowCursor if hit is None else Qt.CursorShape.PointingHandCursor)
        self._point_at(hit)

    @guarded
    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._point_at(None)

    @guarded
    def mousePressEvent(self, event: QMouseEvent) -> None:
        hit = self._at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and hit is not None:
            self.clicked.emit(self._key(hit))

    @guarded
    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, hit = Qt.Key(event.key()), self._hit
        beside = self._beside(hit, *_MOVES[key]) if key in _MOVES else None
        if beside is not None:
            self._point_at(beside)
        elif key in _CLICKS and hit is not None:
            self.clicked.emit(self._key(hit))
        elif key == Qt.Key.Key_Escape and hit is not None:
            self._point_at(None)
        else:
            super().keyPressEvent(event)
            return
        self._describe()

    # ---------------------------------------------------------------------------------------------- focus

    @guarded
    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the ring only when the keyboard brought the focus here."""
        self._ring = event.reason() in _BY_KEYBOARD
        super().focusInEvent(event)

    @guarded
    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ring = False
        if event.reason() in _BY_KEYBOARD:
            self._point_at(None)
            self._describe()
        super().focusOutEvent(event)

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._ring:
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(self.theme.pen("accent"))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
            painter.end()
