"""Where data lies in a plot, and the plot's grid and axes."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter

from gptscope.app.gui.theme import Theme
from gptscope.app.viewmodels.chart_data import Axis

AXIS_PX = 11
NAME_HEIGHT = 15.0
"""Room that a shown axis name takes below the ticks."""


@dataclass(frozen=True)
class Frame:
    """Maps data to pixels inside `area`."""

    area: QRectF
    x_axis: Axis
    y_axis: Axis

    def x(self, value: float) -> float:
        """Pixel column of a value."""
        return self.area.left() + self.x_axis.position(value) * self.area.width()

    def y(self, value: float) -> float:
        """Pixel row of a value; infinite for what a log axis cannot show."""
        return self.area.bottom() - self.y_axis.position(value) * self.area.height()

    def value_at(self, pixel_x: float) -> float:
        """Data value of a pixel column, kept inside the axis."""
        position = min(max((pixel_x - self.area.left()) / self.area.width(), 0.0), 1.0)
        return self.x_axis.value(position)


def paint_grid(painter: QPainter, theme: Theme, frame: Frame) -> None:
    """Horizontal lines with the values of the y axis; vertical ones, too, on a logarithmic x axis."""
    metrics = theme.metrics(AXIS_PX)
    for value, text in frame.y_axis.ticks:
        y = round(frame.y(value)) + 0.5
        painter.setPen(theme.pen("grid"))
        painter.drawLine(QLineF(frame.area.left(), y, frame.area.right(), y))
        painter.setPen(theme.color("t3"))
        box = QRectF(0, y - metrics.height() / 2, frame.area.left() - 8, metrics.height())
        painter.drawText(box, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), text)
    if frame.x_axis.log:
        for value, _ in frame.x_axis.ticks:
            x = round(frame.x(value)) + 0.5
            painter.setPen(theme.pen("grid"))
            painter.drawLine(QLineF(x, frame.area.top(), x, frame.area.bottom()))


def paint_axis(painter: QPainter, theme: Theme, frame: Frame) -> None:
    """The line below the plot, its ticks, and the axis' name where it is to be shown."""
    bottom = round(frame.area.bottom()) + 0.5
    painter.setPen(theme.pen("line2"))
    painter.drawLine(QLineF(frame.area.left(), bottom, frame.area.right(), bottom))
    paint_ticks(
        painter, theme, [(frame.x(value), text) for value, text in frame.x_axis.ticks], bottom, frame.area.right() + 10
    )
    if frame.x_axis.named:
        paint_name(painter, theme, frame.x_axis.title, frame.area, bottom)


def paint_ticks(
    painter: QPainter, theme: Theme, ticks: Iterable[tuple[float, str]], bottom: float, right: float
) -> None:
    """Ticks at pixel columns below `bottom`; texts stay inside 0 to `right`, touching ones are left out."""
    metrics = theme.metrics(AXIS_PX)
    free_from = -math.inf
    for x, text in ticks:
        width = metrics.horizontalAdvance(text)
        left = max(min(x - width / 2, right - width), 0.0)
        if left < free_from:
            continue
        painter.setPen(theme.pen("line2"))
        painter.drawLine(QLineF(round(x) + 0.5, bottom, round(x) + 0.5, bottom + 4))
        painter.setPen(theme.color("t3"))
        painter.drawText(QPointF(left, bottom + 5 + metrics.ascent()), text)
        free_from = left + width + 8


def paint_name(painter: QPainter, theme: Theme, name: str, area: QRectF, bottom: float) -> None:
    """The axis' name below its ticks."""
    height = theme.metrics(AXIS_PX).height()
    box = QRectF(area.left(), bottom + 5 + height, area.width(), height)
    painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), name)
