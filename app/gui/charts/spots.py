"""Paints `Spot`s: symbols by verdict, error bars, and labels that keep out of each other's way."""

from collections.abc import Sequence

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPolygonF

from gptscope.app.gui.charts.axes import Frame
from gptscope.app.gui.theme import Theme
from gptscope.app.viewmodels.chart_data import Spot, SpotTone

_TOKENS: dict[SpotTone, str] = {"good": "good", "warn": "warn", "bad": "bad", "": "t2", "baseline": "base"}
_RADIUS, _CAP, _GAP, _LABEL_PX = 5.0, 4.0, 9.0, 12


def paint_spots(painter: QPainter, theme: Theme, spots: Sequence[Spot], frame: Frame, chosen_key: str) -> None:
    """Draw all of them; the chosen one's label is bold."""
    if not spots:
        return
    for spot in spots:
        painter.setPen(theme.pen(_TOKENS[spot.tone], 1.5))
        _paint_bar(painter, spot, frame)
    for spot in spots:
        _paint_symbol(painter, theme, spot, frame)
    taken = [_around(spot, frame) for spot in spots]
    for spot in spots:
        _paint_label(painter, theme, spot, frame, taken, chosen=spot.key == chosen_key)


def _paint_bar(painter: QPainter, spot: Spot, frame: Frame) -> None:
    """The interval of x, with caps."""
    if spot.x_low is None or spot.x_high is None:
        return
    left, right, y = frame.x(spot.x_low), frame.x(spot.x_high), frame.y(spot.y)
    painter.drawLine(QLineF(left, y, right, y))
    for x in (left, right):
        painter.drawLine(QLineF(x, y - _CAP, x, y + _CAP))


def _paint_symbol(painter: QPainter, theme: Theme, spot: Spot, frame: Frame) -> None:
    center = QPointF(frame.x(spot.x), frame.y(spot.y))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color(_TOKENS[spot.tone]))
    if spot.shape == "square":
        painter.drawRect(_around(spot, frame).adjusted(0.5, 0.5, -0.5, -0.5))
    elif spot.shape == "triangle":
        corners = ((0, -_RADIUS - 1), (_RADIUS + 1, _RADIUS), (-_RADIUS - 1, _RADIUS))
        painter.drawPolygon(QPolygonF([center + QPointF(x, y) for x, y in corners]))
    else:
        painter.drawEllipse(center, _RADIUS, _RADIUS)


def _around(spot: Spot, frame: Frame) -> QRectF:
    x, y = frame.x(spot.x), frame.y(spot.y)
    return QRectF(x - _RADIUS, y - _RADIUS, 2 * _RADIUS, 2 * _RADIUS)


def _paint_label(
    painter: QPainter, theme: Theme, spot: Spot, frame: Frame, taken: list[QRectF], *, chosen: bool
) -> None:
    metrics = theme.metrics(_LABEL_PX, bold=chosen)
    box = label_box(spot, frame, metrics.horizontalAdvance(spot.label) + 2, metrics.height(), taken)
    taken.append(box)
    painter.setFont(theme.font(_LABEL_PX, bold=chosen))
    painter.setPen(theme.color("t1" if spot.tone != "baseline" else "t2"))
    painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), spot.label)


def label_box(spot: Spot, frame: Frame, width: float, height: float, taken: Sequence[QRectF]) -> QRectF:
    """The first free place: right of the interval, above or below the symbol, left of the interval, aslant."""
    x, y = frame.x(spot.x), frame.y(spot.y)
    right = frame.x(spot.x_high) if spot.x_high is not None else x
    left = frame.x(spot.x_low) if spot.x_low is not None else x
    middle, sides = x - width / 2, y - height / 2
    places = [
        QRectF(right + _GAP, sides, width, height),
        QRectF(middle, y - _GAP - height + 2, width, height),
        QRectF(middle, y + _GAP - 2, width, height),
        QRectF(left - _GAP - width, sides, width, height),
        QRectF(x + _GAP, y - _GAP - height, width, height),
        QRectF(x + _GAP, y + _GAP, width, height),
    ]
    room = frame.area.adjusted(-4, -8, 12, 0)
    free = [one for one in places if room.contains(one) and not any(one.intersects(other) for other in taken)]
    return free[0] if free else places[0]


def spot_at(spots: Sequence[Spot], frame: Frame, position: QPointF) -> Spot | None:
    """The symbol under the pointer, the last drawn first."""
    found = [spot for spot in spots if _around(spot, frame).adjusted(-3, -3, 3, 3).contains(position)]
    return found[-1] if found else None
