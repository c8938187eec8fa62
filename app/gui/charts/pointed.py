"""Charts whose parts can be pointed at and clicked, with the mouse or with the keyboard."""

from typing import Any, Generic, TypeVar

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import ElidedLabel, Panel, set_text
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


class Pointed(Painted, Generic[HitT]):
    """Tells what is pointed at and what was clicked.

    Arrow keys, Home and End move what is pointed at, Enter clicks it, Esc lets it go. While the keyboard points, the
    accessible description is about that part.
    """

    clicked = Signal(str)  # key of what was clicked
    told = Signal(str)  # about what is pointed at; empty: nothing

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._hit: HitT | None = None
        self._ring = False
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def _drawn_anew(self) -> None:
        """Something else is shown."""
        self._hit = None
        self.setAccessibleDescription(self._whole())
        policy = Qt.FocusPolicy.StrongFocus if self._has_parts() else Qt.FocusPolicy.NoFocus
        if policy != self.focusPolicy():
            self.setFocusPolicy(policy)
        self.update()

    # ---------------------------------------------------------------------------------------------- what charts say

    def _whole(self) -> str:
        """The chart in words, or why there is none."""
        raise NotImplementedError

    def _has_parts(self) -> bool:
        """Whether there is anything to point at."""
        raise NotImplementedError

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
        """What a click on it chooses; empty: nothing."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------------- pointing

    def _point_at(self, hit: HitT | None) -> None:
        if hit != self._hit:
            self._hit = hit
            self.told.emit("" if hit is None else self._about(hit))
            self.update()

    def _describe(self) -> None:
        """Tell a screen reader about what the keyboard points at, else about the whole."""
        self.setAccessibleDescription(self._whole() if self._hit is None else self._about(self._hit))

    @guarded
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        hit = self._at(event.position())
        clickable = hit is not None and bool(self._key(hit))
        self.setCursor(Qt.CursorShape.PointingHandCursor if clickable else Qt.CursorShape.ArrowCursor)
        self._point_at(hit)

    @guarded
    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._point_at(None)

    @guarded
    def mousePressEvent(self, event: QMouseEvent) -> None:
        hit = self._at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and hit is not None:
            self._click(hit)

    def _click(self, hit: HitT) -> None:
        key = self._key(hit)
        if key:
            self.clicked.emit(key)

    @guarded
    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, hit = Qt.Key(event.key()), self._hit
        beside = self._beside(hit, *_MOVES[key]) if key in _MOVES else None
        if beside is not None:
            self._point_at(beside)
        elif key in _CLICKS and hit is not None:
            self._click(hit)
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


class PointedCanvas(Pointed[HitT], Generic[ChartT, HitT]):
    """Shows a chart whose parts stand for rows of a table or runs."""

    def __init__(self, theme: Theme, chart: ChartT, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._chart: ChartT = chart
        self.chosen_key = ""
        self.setMinimumSize(220, 96)

    @property
    def chart(self) -> ChartT:
        """What is shown."""
        return self._chart

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(400, 240)

    def show_chart(self, chart: ChartT) -> None:
        """Show another chart."""
        self._chart = chart
        self._drawn_anew()

    def _whole(self) -> str:
        return self._chart.summary or self._chart.empty

    def _has_parts(self) -> bool:
        return not self._chart.empty


def tell_in_header(chart: Pointed[Any], panel: Panel) -> None:
    """While a part is pointed at, what it says stands in the place of the panel's source."""
    said = ElidedLabel("", level=3, size=12)
    said.elide = Qt.TextElideMode.ElideMiddle  # values stand at the end
    said.hide()
    panel.header.insertWidget(panel.header.indexOf(panel.source) + 1, said, 1)

    def show(text: str) -> None:
        set_text(said, text)
        said.setVisible(bool(text))
        panel.source.setVisible(not text)

    chart.told.connect(show)
