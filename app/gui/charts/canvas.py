"""One plot area: draws `ChartData`, follows the pointer, selects a range. Also paints into files."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QEnterEvent, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import QWidget

from gptscope.app.gui.charts.axes import NAME_HEIGHT, Frame
from gptscope.app.gui.charts.marks import paint_chart
from gptscope.app.gui.charts.pointed import PointedCanvas
from gptscope.app.gui.charts.spots import spot_at
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded, guarded_as
from gptscope.app.viewmodels.chart_data import Axis, ChartData, Point, Spot

_TOP, _SPOT = 8.0, 6.0
_EMPTY = ChartData(x_axis=Axis(low=0, high=1), y_axis=Axis(low=0, high=1), empty=" ")


class PlotCanvas(PointedCanvas[ChartData, Point | Spot]):
    """Draws the newest `ChartData` it was given. Hover and range are told to the owner in data units.

    Arrow keys move from dot to dot, or the hairline where there are only curves.
    """

    hovered = Signal(object)  # x in data units, or None when the pointer left
    range_chosen = Signal(object)  # (low, high), or None for everything

    def __init__(self, theme: Theme, *, zoomable: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(theme, _EMPTY, parent)
        self._hover_x: float | None = None
        self._drag_from: float | None = None
        self._drag_to: float | None = None
        self._zoomable = zoomable
        self.setMinimumSize(160, 96)
        if zoomable:
            self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(320, 160)

    def _dots(self) -> tuple[Point | Spot, ...]:
        return (*self._chart.points, *self._chart.spots)

    def _has_parts(self) -> bool:
        return self._zoomable or bool(not self._chart.empty and (self._chart.lines or self._dots()))

    def show_chart(self, chart: ChartData) -> None:
        """Show new data; what is pointed at stays so when it is still there."""
        kept = self._hit
        super().show_chart(chart)
        if kept is not None:
            self._hit = next((dot for dot in self._dots() if (dot.key, dot.label) == (kept.key, kept.label)), None)

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
        if self._hit is not None:
            painter.setPen(self.theme.pen("accent", 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            radius = (self._hit.size if isinstance(self._hit, Point) else _SPOT) + 3
            painter.drawEllipse(QPointF(frame.x(self._hit.x), frame.y(self._hit.y)), radius, radius)

    @guarded
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and not self._chart.empty:
            dot = self._at(event.position())
            if dot is not None:
                self.clicked.emit(dot.key)
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
        dot = self._at(event.position())
        self.setToolTip(self._about(dot) if dot is not None else "")
        self._point_at(dot)
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
        if self._chart.empty or self._dots() or not self._has_parts():
            super().keyPressEvent(event)
            return
        key, axis = event.key(), self._chart.x_axis
        step = (axis.high - axis.low) / 50
        at = self._hover_x if self._hover_x is not None else axis.high
        places = {
            Qt.Key.Key_Left: max(axis.low, at - step),
            Qt.Key.Key_Right: min(axis.high, at + step),
            Qt.Key.Key_Home: axis.low,
            Qt.Key.Key_End: axis.high,
        }
        if key in places:
            self.hovered.emit(places[Qt.Key(key)])
        elif key == Qt.Key.Key_Escape and self._hover_x is not None:
            self.hovered.emit(None)
        elif key == Qt.Key.Key_Plus and self._zoomable:
            self.range_chosen.emit((max(axis.low, at - step * 12), min(axis.high, at + step * 12)))
        elif key in (Qt.Key.Key_Minus, Qt.Key.Key_0) and self._zoomable:
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

    # ---------------------------------------------------------------------------------------------- pointing

    def _at(self, position: QPointF) -> Point | Spot | None:
        """The dot or symbol under the pointer."""
        frame = self.frame()
        return nearest_point(self._chart.points, frame, position) or spot_at(self._chart.spots, frame, position)

    def _beside(self, hit: Point | Spot | None, right: int, down: int) -> Point | Spot | None:
        if self._chart.empty or not self._dots():
            return None
        order = (lambda dot: (-dot.y, dot.x)) if down else (lambda dot: (dot.x, dot.y))
        dots = sorted(self._dots(), key=order)
        return dots[min(max(dots.index(hit) + right + down, 0), len(dots) - 1)] if hit in dots else dots[0]

    def _about(self, hit: Point | Spot) -> str:
        return hit.label if isinstance(hit, Point) else hit.tip

    def _key(self, hit: Point | Spot) -> str:
        return hit.key


def nearest_point(points: Sequence[Point], frame: Frame, position: QPointF) -> Point | None:
    """The dot under the pointer, the smallest first when they overlap."""
    for point in sorted(points, key=lambda p: p.size):
        dx, dy = frame.x(point.x) - position.x(), frame.y(point.y) - position.y()
        if dx * dx + dy * dy <= (point.size + 3) ** 2:
            return point
    return None
