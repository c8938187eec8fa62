"""Draws a `BarChart`: names, stacked bars and numbers below each other; a part can be pointed at and clicked."""

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter

from gptscope.app.gui.charts.axes import AXIS_PX, paint_ticks
from gptscope.app.gui.charts.looks import legend_height, paint_empty, paint_legend, paint_look
from gptscope.app.gui.charts.pointed import PointedCanvas
from gptscope.app.gui.theme import Theme
from gptscope.app.viewmodels.charts.bars import BarChart, BarPart, BarRow, no_bars

_ROW, _ROW_MOST, _BAR, _TOP, _AXIS = 20, 28, 13, 4, 22
_LEFT, _NAME_MOST, _NAME_SHARE = 4, 190, 0.36
_PX = 12


class BarsCanvas(PointedCanvas[BarChart, tuple[BarRow, BarPart | None]]):
    """As many rows as there is room for; what is left out is counted in the last line."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, no_bars(" "))

    # ---------------------------------------------------------------------------------------------- where things are

    def area(self) -> QRectF:
        """Where bars are drawn; names stand left of it, numbers behind each bar, ticks below."""
        metrics, width = self.theme.metrics(_PX), float(self.width())
        rows = self._chart.rows
        names = max((metrics.horizontalAdvance(row.name) for row in rows), default=0.0)
        left = min(names, _NAME_MOST, width * _NAME_SHARE) + _LEFT + 8
        numbers = max((metrics.horizontalAdvance(row.text) for row in rows), default=0.0) + 8
        bottom = self.height() - _AXIS - legend_height(self.theme, self._chart.legend, width)
        return QRectF(left, _TOP, max(width - left - numbers - 4, 24), max(bottom - _TOP, 10))

    def shown_rows(self, area: QRectF) -> tuple[float, tuple[BarRow, ...]]:
        """Height of a row, and the rows that fit."""
        rows = self._chart.rows
        room = max(int(area.height() // _ROW), 1)
        if len(rows) > room:
            return float(_ROW), rows[: max(room - 1, 1)]
        return min(area.height() / max(len(rows), 1), _ROW_MOST), rows

    def _box(self, area: QRectF, number: int, height: float) -> QRectF:
        return QRectF(area.left(), area.top() + number * height + (height - _BAR) / 2, area.width(), _BAR)

    def _x(self, area: QRectF, value: float) -> float:
        return area.left() + self._chart.axis.position(value) * area.width()

    def _at(self, position: QPointF) -> tuple[BarRow, BarPart | None] | None:
        if self._chart.empty:
            return None
        area = self.area()
        height, rows = self.shown_rows(area)
        number = int((position.y() - area.top()) // height)
        if not 0 <= number < len(rows):
            return None
        row, reached = rows[number], 0.0
        for part in row.parts:
            low, high = self._x(area, reached), self._x(area, reached + part.value)
            if low <= position.x() < max(high, low + 1):
                return row, part
            reached += part.value
        return row, None

    # ---------------------------------------------------------------------------------------------- drawing

    def paint(self, painter: QPainter) -> None:
        chart, theme = self._chart, self.theme
        if chart.empty:
            paint_empty(painter, theme, QRectF(self.rect()), chart.empty)
            return
        area = self.area()
        height, rows = self.shown_rows(area)
        for number, row in enumerate(rows):
            self._paint_row(painter, row, self._box(area, number, height), area)
        left_out = len(chart.rows) - len(rows)
        if left_out > 0:
            painter.setFont(theme.font(11))
            painter.setPen(theme.color("t3"))
            top = area.top() + len(rows) * height
            text = f"{left_out} more in the table"
            painter.drawText(QRectF(area.left(), top, area.width() + 80, height), _MIDDLE_LEFT, text)
        self._paint_axis(painter, area)
        paint_legend(painter, theme, chart.legend, 0.0, area.bottom() + _AXIS, float(self.width()))

    def _paint_row(self, painter: QPainter, row: BarRow, box: QRectF, area: QRectF) -> None:
        theme, hit = self.theme, self._hit
        painter.setFont(theme.font(_PX))
        painter.setPen(theme.color("t1"))
        metrics = theme.metrics(_PX)
        name = metrics.elidedText(row.name, Qt.TextElideMode.ElideMiddle, area.left() - _LEFT - 8)
        painter.drawText(QRectF(_LEFT, box.top() - 4, area.left() - _LEFT - 8, box.height() + 8), _MIDDLE_RIGHT, name)
        x, outlined = box.left(), []
        for part in row.parts:
            wide = self._chart.axis.position(part.value) * area.width()
            gap = 1.0 if wide >= 3 else 0.0
            one = QRectF(x, box.top(), max(wide - gap, 0.6), box.height())
            paint_look(painter, theme, one, part.look)
            if self.chosen_key and part.key == self.chosen_key:
                outlined.append((one, 2.0))
            elif hit is not None and hit[1] is part:
                outlined.append((one, 1.0))
            x += wide
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for one, width in outlined:
            painter.setPen(theme.pen("t1", width))
            painter.drawRect(one.adjusted(-0.5, -0.5, 0.5, 0.5))
        painter.setPen(theme.color("t1"))
        painter.drawText(QRectF(x + 6, box.top() - 4, self.width() - x - 6, box.height() + 8), _MIDDLE_LEFT, row.text)

    def _paint_axis(self, painter: QPainter, area: QRectF) -> None:
        theme = self.theme
        painter.setFont(theme.font(AXIS_PX))
        bottom = round(area.bottom()) + 0.5
        painter.setPen(theme.pen("line2"))
        painter.drawLine(QLineF(area.left(), area.top(), area.left(), bottom))
        painter.drawLine(QLineF(area.left(), bottom, area.right(), bottom))
        ticks = [(self._x(area, value), text) for value, text in self._chart.axis.ticks]
        paint_ticks(painter, theme, ticks, bottom, self.width())

    # ---------------------------------------------------------------------------------------------- pointing

    def _beside(
        self, hit: tuple[BarRow, BarPart | None] | None, right: int, down: int
    ) -> tuple[BarRow, BarPart | None] | None:
        rows = self.shown_rows(self.area())[1]
        if self._chart.empty or not rows:
            return None
        if hit is None or hit[0] not in rows:
            return rows[0], next(iter(_seen(rows[0])), None)
        before = _seen(hit[0])
        place = before.index(hit[1]) if hit[1] in before else 0
        row = rows[min(max(rows.index(hit[0]) + down, 0), len(rows) - 1)]
        parts = _seen(row)
        return row, parts[min(max(place + right, 0), len(parts) - 1)] if parts else None

    def _about(self, hit: tuple[BarRow, BarPart | None]) -> str:
        row, part = hit
        return part.label if part is not None else f"{row.name}: {row.text}"

    def _key(self, hit: tuple[BarRow, BarPart | None]) -> str:
        row, part = hit
        return part.key if part is not None else row.key


def _seen(row: BarRow) -> list[BarPart]:
    return [part for part in row.parts if part.value > 0]


_MIDDLE_LEFT = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
_MIDDLE_RIGHT = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight)
