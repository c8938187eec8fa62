"""A small axis with a speedup's interval on it, beside 1x."""

import math
from collections.abc import Callable

from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import QSizePolicy

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded_as
from gptscope.app.gui.widgets.painted import Painted

_TICKS = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 20.0, 50.0, 100.0)
_HEIGHT, _MARGIN, _WIDEST = 44, 14, 420


class IntervalAxis(Painted):
    """Logarithmic, so that twice as fast and twice as slow are as far from 1x."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._value: tuple[float, float, float] | None = None
        self._extent = (1.0, 1.0)
        self._colour = "t2"
        self.setFixedHeight(_HEIGHT)
        self.setMinimumWidth(96)
        self.setMaximumWidth(_WIDEST)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(180, _HEIGHT)

    def show_interval(self, value: tuple[float, float, float] | None, extent: tuple[float, float], colour: str) -> None:
        """Show value, low and high on an axis that spans `extent`, in a token's colour."""
        self._value, self._extent, self._colour = value, extent, colour
        self.update()

    def paint(self, painter: QPainter) -> None:
        if self._value is None:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        low, high = self._range()
        left, right, middle = float(_MARGIN), float(self.width() - _MARGIN), 18.0

        def x(ratio: float) -> float:
            return left + (right - left) * (math.log(ratio) - math.log(low)) / (math.log(high) - math.log(low))

        painter.setPen(self.theme.pen("line2"))
        painter.drawLine(QLineF(left - 8, middle, right + 8, middle))
        painter.setPen(self.theme.pen("t2", 1.2, Qt.PenStyle.DashLine))
        painter.drawLine(QLineF(x(1.0), 3, x(1.0), middle + 5))
        self._paint_ticks(painter, low, high, x, middle)
        value, least, most = self._value
        painter.setPen(Qt.PenStyle.NoPen)
        if most > least:
            painter.setBrush(self.theme.color(self._colour))
            width = max(x(most) - x(least), 5.0)
            painter.drawRoundedRect(QRectF((x(most) + x(least) - width) / 2, middle - 6, width, 12), 1, 1)
        else:
            painter.setPen(self.theme.pen(self._colour, 1.5))
            painter.setBrush(self.theme.color("bg1"))
            painter.drawEllipse(QPointF(x(value), middle), 4, 4)

    def _range(self) -> tuple[float, float]:
        low, high = min(self._extent[0], 1.0) / 1.08, max(self._extent[1], 1.0) * 1.08
        return (low, high) if high / low > 1.5 else (low / 1.2, high * 1.2)

    def _paint_ticks(
        self, painter: QPainter, low: float, high: float, x: Callable[[float], float], middle: float
    ) -> None:
        painter.setFont(self.theme.font(11))
        metrics = QFontMetricsF(painter.font())
        taken = [(x(1.0) - 14, x(1.0) + 14)]
        for tick in sorted(_TICKS, key=lambda tick: tick != 1.0):
            if not low <= tick <= high:
                continue
            text = f"{tick:g}x"
            width = metrics.horizontalAdvance(text)
            place = x(tick)
            if tick != 1.0 and any(place - width / 2 < b + 6 and place + width / 2 > a - 6 for a, b in taken):
                continue
            taken.append((place - width / 2, place + width / 2))
            painter.setPen(self.theme.pen("line2"))
            painter.drawLine(QLineF(place, middle - 3, place, middle + 3))
            painter.setPen(self.theme.color("t3"))
            painter.drawText(QPointF(place - width / 2, middle + 20), text)
