"""Draws a `ColumnChart`: stacked columns beside each other, such as steps; a column can be pointed at and clicked."""

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter

from gptscope.app.gui.charts.axes import NAME_HEIGHT, paint_name, paint_ticks
from gptscope.app.gui.charts.looks import legend_height, paint_empty, paint_legend, paint_look
from gptscope.app.gui.charts.pointed import PointedCanvas
from gptscope.app.gui.theme import Theme
from gptscope.app.viewmodels.charts.bars import ColumnChart, no_columns

_TOP, _AXIS, _WIDEST = 8, 22, 56
_PX = 11


class ColumnsCanvas(PointedCanvas[ColumnChart, int]):
    """Columns fill the width, up to a width that still looks like a column."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, no_columns(" "))

    # ---------------------------------------------------------------------------------------------- where things are

    def area(self) -> QRectF:
        """Where columns are drawn."""
        metrics, chart = self.theme.metrics(_PX), self._chart
        left = max((metrics.horizontalAdvance(text) for _, text in chart.y_axis.ticks), default=0.0) + 10
        bottom = self.height() - self._below() - legend_height(self.theme, chart.legend, float(self.width()))
        width = min(max(self.width() - left - 12, 10), max(len(chart.keys), 1) * _WIDEST)
        return QRectF(left, _TOP, width, max(bottom - _TOP, 10))

    def _below(self) -> float:
        """Room for the ticks, and for the axis's name where it is written."""
        return _AXIS + (NAME_HEIGHT if self._chart.x_axis.named else 0.0)

    def column(self, area: QRectF, number: int) -> tuple[float, float]:
        """Left and right edge of a column."""
        wide = area.width() / max(len(self._chart.keys), 1)
        gap = 6.0 if wide > 24 else 2.0 if wide > 6 else 1.0 if wide > 3 else 0.0
        left = area.left() + number * wide
        return left + gap / 2, left + max(wide - gap / 2, gap / 2 + 1)

    def _at(self, position: QPointF) -> int | None:
        area, count = self.area(), len(self._chart.keys)
        if self._chart.empty or not count or not area.adjusted(0, -_TOP, 0, 4).contains(position):
            return None
        return min(int((position.x() - area.left()) / area.width() * count), count - 1)

    # ---------------------------------------------------------------------------------------------- drawing

    def paint(self, painter: QPainter) -> None:
        chart, theme = self._chart, self.theme
        if chart.empty:
            paint_empty(painter, theme, QRectF(self.rect()), chart.empty)
            return
        area = self.area()
        self._paint_grid(painter, area)
        for number in range(len(chart.keys)):
            self._paint_column(painter, area, number)
        self._paint_axis(painter, area)
        paint_legend(painter, theme, chart.legend, 0.0, area.bottom() + self._below(), float(self.width()))

    def _paint_grid(self, painter: QPainter, area: QRectF) -> None:
        theme, metrics = self.theme, self.theme.metrics(_PX)
        painter.setFont(theme.font(_PX))
        for value, text in self._chart.y_axis.ticks:
            y = round(area.bottom() - self._chart.y_axis.position(value) * area.height()) + 0.5
            painter.setPen(theme.pen("grid"))
            painter.drawLine(QLineF(area.left(), y, self.width() - 12, y))
            painter.setPen(theme.color("t3"))
            box = QRectF(0, y - metrics.height() / 2, area.left() - 8, metrics.height())
            painter.drawText(box, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), text)

    def _paint_column(self, painter: QPainter, area: QRectF, number: int) -> None:
        left, right = self.column(area, number)
        bottom = area.bottom()
        for layer in self._chart.layers:
            height = self._chart.y_axis.position(float(layer.heights[number])) * area.height()
            if height > 0:
                box = QRectF(left, bottom - max(height, 0.5), right - left, max(height, 0.5))
                paint_look(painter, self.theme, box, layer.look)
                bottom -= height
        chosen = self._chart.keys[number] == self.chosen_key
        if chosen or number == self._hit:
            painter.setPen(self.theme.pen("t1", 2.0 if chosen else 1.0))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(QRectF(left - 1, bottom - 1, right - left + 2, area.bottom() - bottom + 1))

    def _paint_axis(self, painter: QPainter, area: QRectF) -> None:
        theme, axis = self.theme, self._chart.x_axis
        painter.setFont(theme.font(_PX))
        bottom = round(area.bottom()) + 0.5
        painter.setPen(theme.pen("line2"))
        painter.drawLine(QLineF(area.left(), bottom, self.width() - 12, bottom))
        ticks = [(area.left() + axis.position(value) * area.width(), text) for value, text in axis.ticks]
        paint_ticks(painter, theme, ticks, bottom, self.width())
        if axis.named:
            paint_name(painter, theme, axis.title, area, bottom)

    # ---------------------------------------------------------------------------------------------- pointing

    def _beside(self, hit: int | None, right: int, down: int) -> int | None:
        last = len(self._chart.keys) - 1
        if self._chart.empty or last < 0:
            return None
        return 0 if hit is None else min(max(hit + right + down, 0), last)

    def _about(self, hit: int) -> str:
        return self._chart.labels[hit]

    def _key(self, hit: int) -> str:
        return self._chart.keys[hit]
