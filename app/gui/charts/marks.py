"""Paints `ChartData` into a rectangle: grid, regions, bands, bars, lines, marks, points, hairline."""

import math

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFontMetricsF, QPainter, QPainterPath, QPen

from gptscope.app.gui.charts.axes import AXIS_PX, Frame, paint_axis, paint_grid
from gptscope.app.gui.charts.spots import paint_spots
from gptscope.app.gui.theme import Theme
from gptscope.app.viewmodels.chart_data import Axis, Bars, ChartData, Floats, Level, Line, Mark, Region, Role

_ROLE_TOKEN: dict[Role, str] = {
    "current": "accent",
    "baseline": "base",
    "context": "t3",
    "peak": "t1",
    "warn": "warn",
    "bad": "bad",
    "other": "t2",
    "faint": "bg4",
}


def paint_chart(
    painter: QPainter,
    theme: Theme,
    chart: ChartData,
    frame: Frame,
    *,
    hover_x: float | None = None,
    chosen_key: str = "",
) -> None:
    """Draw one chart with its axes."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setFont(theme.font(AXIS_PX))
    if chart.empty:
        painter.setPen(theme.color("t3"))
        painter.setFont(theme.font(12))
        flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
        painter.drawText(QRectF(painter.viewport()).adjusted(8, 4, -8, -4), int(flags), chart.empty)
        return
    paint_grid(painter, theme, frame)
    painter.save()
    painter.setClipRect(frame.area.adjusted(-1, -8, 12, 1))
    for region in chart.regions:
        _paint_region(painter, theme, region, frame)
    for level in chart.levels:
        _paint_level(painter, theme, level, frame)
    for bars in chart.bars:
        _paint_bars(painter, theme, bars, frame)
    for line in chart.lines:
        _paint_line(painter, theme, line, frame)
    painter.restore()
    paint_axis(painter, theme, frame)
    _paint_marks(painter, theme, chart.marks, frame)
    paint_spots(painter, theme, chart.spots, frame, chosen_key)
    taken = [box for line in chart.lines if (box := _paint_end(painter, theme, line, frame)) is not None]
    painter.setFont(theme.font(AXIS_PX))
    for level in chart.levels:
        _paint_level_label(painter, theme, level, frame, taken)
    for region in chart.regions:  # last: they can stand anywhere in their stretch
        _paint_region_label(painter, theme, region, frame, taken)
    _paint_points(painter, theme, chart, frame, chosen_key)  # no label covers a dot
    if hover_x is not None and chart.lines:
        _paint_hover(painter, theme, chart, frame, hover_x)


def _paint_region(painter: QPainter, theme: Theme, region: Region, frame: Frame) -> None:
    left, right = frame.x(max(region.start, frame.x_axis.low)), frame.x(min(region.end, frame.x_axis.high))
    box = QRectF(left, frame.area.top() - 8, max(right - left, 1.0), frame.area.height() + 8)
    if right < left:
        return
    painter.fillRect(box, theme.hatch("line2") if region.kind == "hatched" else QBrush(theme.color("warn", 0.16)))


def _paint_region_label(painter: QPainter, theme: Theme, region: Region, frame: Frame, taken: list[QRectF]) -> None:
    """At the region's lower left; higher where another label is, and not at all where there is no room."""
    if not region.label or region.end < frame.x_axis.low or region.start > frame.x_axis.high:
        return
    lines = region.label.split("\n")
    box = _region_label_box(theme, region, lines, frame, taken)
    if box is None:
        return
    taken.append(box)
    metrics = theme.metrics(AXIS_PX)
    painter.fillRect(box.adjusted(-2, 0, 2, 0), theme.color("bg1", 0.75))
    painter.setPen(theme.color("warn" if region.kind == "warn" else "t3"))
    for index, line in enumerate(lines):
        painter.drawText(QPointF(box.left(), box.top() + metrics.ascent() + index * metrics.height()), line)


def _region_label_box(
    theme: Theme, region: Region, lines: list[str], frame: Frame, taken: list[QRectF]
) -> QRectF | None:
    metrics = theme.metrics(AXIS_PX)
    width, height = max(metrics.horizontalAdvance(line) for line in lines), metrics.height() * len(lines)
    left = min(frame.x(max(region.start, frame.x_axis.low)) + 4, frame.area.right() - width)
    box = QRectF(left, frame.area.bottom() - 4 - height, width, height)
    while box.top() >= frame.area.top() - 8:
        hit = next((other for other in taken if box.intersects(other.adjusted(-4, -1, 4, 1))), None)
        if hit is None:
            return box
        box.moveBottom(hit.top() - 2)
    return None


def _paint_level(painter: QPainter, theme: Theme, level: Level, frame: Frame) -> None:
    token = _ROLE_TOKEN[level.role]
    if level.low is not None and level.high is not None:
        top, bottom = frame.y(level.high), frame.y(level.low)
        box = QRectF(frame.area.left(), top, frame.area.width(), max(bottom - top, 2))
        painter.fillRect(box, theme.color(token, 0.22))
    pen = theme.pen(token, 1.2 if level.role != "peak" else 1.5)
    if level.role != "peak":
        pen.setDashPattern([5, 4])
    painter.setPen(pen)
    y = round(frame.y(level.y)) + 0.5
    painter.drawLine(QLineF(frame.area.left(), y, frame.area.right(), y))


def _level_label_box(painter: QPainter, level: Level, frame: Frame, taken: list[QRectF]) -> QRectF:
    """Above the line at the right end; below it, or at the left end, where something else is already."""
    metrics = QFontMetricsF(painter.font())
    width, height, y = metrics.horizontalAdvance(level.label) + 4, metrics.height(), frame.y(level.y)
    right, left = frame.area.right() - width, frame.area.left() + 4
    spots = [(right, y - height - 3), (right, y + 3), (left, y - height - 3), (left, y + 3)]
    boxes = [QRectF(x, top, width, height) for x, top in spots]
    # Below the area are the names of the axis.
    inside = [box for box in boxes if box.top() >= 0 and box.bottom() <= frame.area.bottom()]
    free = [box for box in inside if not any(box.intersects(other) for other in taken)]
    return (free or inside or boxes)[0]


def _paint_level_label(painter: QPainter, theme: Theme, level: Level, frame: Frame, taken: list[QRectF]) -> None:
    if not level.label:
        return
    box = _level_label_box(painter, level, frame, taken)
    taken.append(box)
    painter.fillRect(box, theme.color("bg1", 0.8))
    painter.setPen(theme.color("t2"))
    painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), level.label)


def _paint_bars(painter: QPainter, theme: Theme, bars: Bars, frame: Frame) -> None:
    base = frame.area.bottom()
    token = _ROLE_TOKEN[bars.role]
    if bars.role == "baseline":
        path = QPainterPath(QPointF(frame.x(float(bars.edges[0])), base))
        for left, right, height in zip(bars.edges[:-1], bars.edges[1:], bars.heights, strict=True):
            y = frame.y(float(height))
            path.lineTo(frame.x(float(left)), y)
            path.lineTo(frame.x(float(right)), y)
        path.lineTo(frame.x(float(bars.edges[-1])), base)
        pen = theme.pen(token, 1.2)
        pen.setDashPattern([3, 2])
        painter.setPen(pen)
        painter.setBrush(theme.color(token, 0.22))
        painter.drawPath(path)
        return
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color(token))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    for left, right, height in zip(bars.edges[:-1], bars.edges[1:], bars.heights, strict=True):
        if height > 0:
            x0, x1, y = frame.x(float(left)), frame.x(float(right)), frame.y(float(height))
            gap = 1.0 if x1 - x0 >= 4 else 0.0
            painter.drawRect(QRectF(x0, min(y, base - 1), max(x1 - x0 - gap, 1.0), max(base - y, 1.0)))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)


def thinned(x_px: Floats, y_px: Floats) -> tuple[Floats, Floats]:
    """At most the lowest and the highest value per pixel column, in their order: looks the same, costs little."""
    if x_px.size <= 4 * max(1.0, float(x_px[-1] - x_px[0]) if x_px.size else 1.0):
        return x_px, y_px
    column = np.floor(x_px).astype(np.int64)
    starts = np.flatnonzero(np.concatenate(([True], column[1:] != column[:-1])))
    filled_low, filled_high = np.where(np.isnan(y_px), np.inf, y_px), np.where(np.isnan(y_px), -np.inf, y_px)
    low, high = np.minimum.reduceat(filled_low, starts), np.maximum.reduceat(filled_high, starts)
    xs = np.repeat(x_px[starts], 2)
    ys = np.empty(2 * starts.size)
    ys[0::2], ys[1::2] = low, high
    ys[~np.isfinite(ys)] = np.nan
    return xs, ys


def _paint_line(painter: QPainter, theme: Theme, line: Line, frame: Frame) -> None:
    inside = (line.x >= frame.x_axis.low) & (line.x <= frame.x_axis.high) if line.x.size else np.zeros(0, bool)
    if not inside.any():
        return
    area, axis = frame.area, frame.y_axis
    x_px = area.left() + (_positions(line.x[inside], frame.x_axis)) * area.width()
    y_px = area.bottom() - _positions(line.y[inside], axis) * area.height()
    x_px, y_px = thinned(x_px, y_px)
    width = 1.5 if line.role == "current" else 1.2
    painter.setPen(theme.pen(_ROLE_TOKEN[line.role], width))
    finite = np.isfinite(y_px)
    joined = np.flatnonzero(finite[:-1] & finite[1:])
    ends = np.column_stack((x_px[joined], y_px[joined], x_px[joined + 1], y_px[joined + 1]))
    painter.drawLines([QLineF(*four) for four in ends.tolist()])


def _positions(values: Floats, axis: Axis) -> Floats:
    if axis.log:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(values > 0, np.log10(values), np.nan)
        low, high = math.log10(axis.low), math.log10(axis.high)
        return np.asarray((logs - low) / (high - low), dtype=np.float64)
    return np.asarray((values - axis.low) / (axis.high - axis.low), dtype=np.float64)


def _paint_end(painter: QPainter, theme: Theme, line: Line, frame: Frame) -> QRectF | None:
    """Label a curve at its end; returns the room that the label took."""
    finite = np.flatnonzero(np.isfinite(line.y)) if line.y.size else np.zeros(0, np.int64)
    if not line.end_label or finite.size == 0:
        return None
    last = int(finite[-1])
    x, y = frame.x(float(line.x[last])), frame.y(float(line.y[last]))
    if not frame.area.adjusted(-1, -9, 1, 1).contains(QPointF(x, y)):
        return None
    if line.live:
        painter.setPen(theme.pen("line2"))
        painter.drawLine(QLineF(x, frame.area.top() - 8, x, frame.area.bottom()))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color(_ROLE_TOKEN[line.role]))
        painter.drawEllipse(QPointF(x, y), 3.5, 3.5)
    strong = theme.font(12 if line.role == "current" else AXIS_PX, bold=line.role == "current")
    plain = theme.font(AXIS_PX)
    width = QFontMetricsF(strong).horizontalAdvance(line.end_label)
    width = max(width, theme.metrics(AXIS_PX).horizontalAdvance(line.end_note))
    height = 32.0 if line.end_note else 17.0
    box = QRectF(x + 10, y - 9, width, height)
    if box.right() > frame.area.right() + 12 or line.role == "peak":
        box.moveTo(x - width, y - height - 4)
    if box.top() < 0:
        box.moveTop(y + 8)
    box.moveBottom(min(box.bottom(), frame.area.bottom() - 2))
    painter.fillRect(box.adjusted(-2, 0, 2, 0), theme.color("bg1", 0.75))
    painter.setFont(strong)
    painter.setPen(theme.color("t1" if line.role == "current" else "t2"))
    painter.drawText(QPointF(box.left(), box.top() + 13), line.end_label)
    if line.end_note:
        painter.setFont(plain)
        painter.setPen(theme.color("t3"))
        painter.drawText(QPointF(box.left(), box.top() + 28), line.end_note)
    return box


def _paint_marks(painter: QPainter, theme: Theme, marks: tuple[Mark, ...], frame: Frame) -> None:
    metrics = QFontMetricsF(painter.font())
    row = 0
    for mark in marks:
        x = frame.x(mark.x)
        if not frame.area.left() - 1 <= x <= frame.area.right() + 1:
            continue
        width = metrics.horizontalAdvance(mark.label)
        top = frame.area.top() + (row * (metrics.height() + 1) if mark.line else 0)
        if mark.line:
            painter.setPen(QPen(theme.color("t1" if mark.role != "baseline" else "base"), 1.2, Qt.PenStyle.DotLine))
            painter.drawLine(QLineF(x, top, x, frame.area.bottom()))
            row += 1
        left = x + 5 if mark.line else x - width / 2
        left = min(max(left, frame.area.left()), frame.area.right() + 8 - width)
        painter.fillRect(QRectF(left - 1, top - 2, width + 2, metrics.height() + 1), theme.color("bg1", 0.8))
        painter.setPen(theme.color("t1" if mark.role != "baseline" else "t2"))
        painter.drawText(QPointF(left, top + metrics.ascent() - 2), mark.label)


def _paint_points(painter: QPainter, theme: Theme, chart: ChartData, frame: Frame, chosen_key: str) -> None:
    for point in chart.points:
        center = QPointF(frame.x(point.x), frame.y(point.y))
        colour = theme.category(point.category)
        chosen = point.key == chosen_key
        outline = theme.color("t1") if chosen else colour
        fill = QColor(colour)
        fill.setAlphaF(0.4 if point.baseline else 0.85)
        painter.setPen(QPen(outline, 2.0 if chosen else 1.0))
        painter.setBrush(fill)
        painter.drawEllipse(center, point.size, point.size)


def _paint_hover(painter: QPainter, theme: Theme, chart: ChartData, frame: Frame, x: float) -> None:
    if not frame.x_axis.low <= x <= frame.x_axis.high:
        return
    pixel = round(frame.x(x)) + 0.5
    painter.setPen(theme.pen("t3"))
    painter.drawLine(QLineF(pixel, frame.area.top() - 8, pixel, frame.area.bottom()))
    for line in chart.lines:
        sample = line.at(x)
        if sample is not None and line.role in ("current", "baseline"):
            painter.setBrush(theme.color("bg1"))
            painter.setPen(theme.pen(_ROLE_TOKEN[line.role], 1.5))
            painter.drawEllipse(QPointF(frame.x(sample[0]), frame.y(sample[1])), 3.5, 3.5)
