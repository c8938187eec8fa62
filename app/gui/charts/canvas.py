"""One plot area: draws `ChartData`, follows the pointer, selects a range. Also paints into files."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QEnterEvent, QFocusEvent, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import QSizePolicy, QWidget

from gptscope.app.gui.charts.axes import NAME_HEIGHT, Frame
from gptscope.app.gui.charts.marks import paint_chart
from gptscope.app.gui.charts.spots import spot_at
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded, guarded_as
from gptscope.app.gui.widgets.painted import Painted
from gptscope.app.viewmodels.chart_data import Axis, ChartData, Point

_TOP = 8.0
_EMPTY = ChartData(x_axis=Axis(low=0, high=1), y_axis=Axis(low=0, high=1), empty=" ")


class PlotCanvas(Painted):
    """Draws the newest `ChartData` it was given. Hover and range are told to the owner in data units."""

    hovered = Signal(object)  # x in data units, or None when the pointer left
    range_chosen = Signal(object)  # (low, high), or None for everything
    point_clicked = Signal(str)

    def __init__(self, theme: Theme, *, zoomable: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._chart = _EMPTY
        self._hover_x: float | None = None
        self._drag_from: float | None = None
        self._drag_to: float | None = None
        self._zoomable = zoomable
        self._focus_shown = False
        self.chosen_key = ""
        self.setMouseTracking(True)
        self.setMinimumSize(160, 96)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        if zoomable:
            self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    @property
    def chart(self) -> ChartData:
        """What is shown."""
        return self._chart

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(320, 160)

    def show_chart(self, chart: ChartData) -> None:
        """Show new data."""
        self._chart = chart
        self.setAccessibleDescription(chart.summary or chart.empty)
        self.update()

    def set_hover(self, x: float | None) -> None:
        """Show the hairline at `x` (linked charts share it)."""
        if x != self._hover_x:
            self._hover_x = x
            self.update()

    def frame(self, size: QSize | None = None) -> Frame:
        """Where the plot area lies for a given size of the whole widget."""
        whole = size or self.size()
        metrics = self.theme.metrics(11)
        widest = max((metrics.horizontalAdvance(text) for _, text in self._chart.y_axis.ticks), default=0.0)
        left = widest + 10 if widest else 2.0
        bottom = 22.0 if self._chart.x_axis.ticks else 4.0
        bottom += NAME_HEIGHT if self._chart.x_axis.named else 0.0
        area = QRectF(left, _TOP, max(whole.width() - left - 12, 10), max(whole.height() - _TOP - bottom, 10))
        return Frame(area=area, x_axis=self._chart.x_axis, y_axis=self._chart.y_axis)

    def paint(self, painter: QPainter) -> None:
        frame = self.frame()
        paint_chart(painter, self.theme, self._chart, frame, hover_x=self._hover_x, chosen_key=self.chosen_key)
        if self._drag_from is not None and self._drag_to is not None:
            left, right = sorted((frame.x(self._drag_from), frame.x(self._drag_to)))
            painter.fillRect(
                QRectF(left, frame.area.top(), right - left, frame.area.height()), self.theme.color("t1", 0.07)
            )
        if self._focus_shown:
            painter.setPen(self.theme.pen("accent"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)

    @guarded
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and not self._chart.empty:
            found = self._found_at(event.position())
            if found is not None:
                self.point_clicked.emit(found[0])
            elif self._zoomable:
                self._drag_from = self.frame().value_at(event.position().x())

    @guarded
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._chart.empty:
            return
        frame = self.frame()
        x = frame.value_at(event.position().x())
        if self._drag_from is not None:
            self._drag_to = x
            self.update()
        inside = frame.area.adjusted(-4, -8, 4, 8).contains(event.position())
        found = self._found_at(event.position())
        self.setToolTip(found[1] if found is not None else "")
        self.hovered.emit(x if inside else None)

    @guarded
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton or self._drag_from is None:
            return
        start, self._drag_from, self._drag_to = self._drag_from, None, None
        frame = self.frame()
        end = frame.value_at(event.position().x())
        if abs(frame.x(end) - frame.x(start)) >= 6:
            self.range_chosen.emit((min(start, end), max(start, end)))
        self.update()

    @guarded
    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        if self._zoomable:
            self.range_chosen.emit(None)

    @guarded
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self._zoomable or self._chart.empty:
            super().keyPressEvent(event)
            return
        axis = self._chart.x_axis
        step = (axis.high - axis.low) / 50
        at = self._hover_x if self._hover_x is not None else axis.high
        if event.key() == Qt.Key.Key_Left:
            self.hovered.emit(max(axis.low, at - step))
        elif event.key() == Qt.Key.Key_Right:
            self.hovered.emit(min(axis.high, at + step))
        elif event.key() == Qt.Key.Key_Plus:
            self.range_chosen.emit((max(axis.low, at - step * 12), min(axis.high, at + step * 12)))
        elif event.key() in (Qt.Key.Key_Minus, Qt.Key.Key_0):
            self.range_chosen.emit(None)
        else:
            super().keyPressEvent(event)

    @guarded
    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.hovered.emit(None)

    @guarded
    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        if self._zoomable:
            self.setStatusTip("Drag to zoom into a stretch, double-click for everything; arrow keys move the hairline.")

    @guarded
    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the frame only when the keyboard brought the focus here."""
        keyboard = (
            Qt.FocusReason.TabFocusReason,
            Qt.FocusReason.BacktabFocusReason,
            Qt.FocusReason.ShortcutFocusReason,
        )
        self._focus_shown = event.reason() in keyboard
        super().focusInEvent(event)

    @guarded
    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._focus_shown = False
        super().focusOutEvent(event)

    def _found_at(self, position: QPointF) -> tuple[str, str] | None:
        """Key and text of the dot or symbol under the pointer."""
        frame = self.frame()
        point = nearest_point(self._chart.points, frame, position)
        if point is not None:
            return point.key, point.label
        spot = spot_at(self._chart.spots, frame, position)
        return (spot.key, spot.tip) if spot is not None else None


def nearest_point(points: Sequence[Point], frame: Frame, position: QPointF) -> Point | None:
    """The dot under the pointer, the smallest first when they overlap."""
    for point in sorted(points, key=lambda p: p.size):
        dx, dy = frame.x(point.x) - position.x(), frame.y(point.y) - position.y()
        if dx * dx + dy * dy <= (point.size + 3) ** 2:
            return point
    return None
