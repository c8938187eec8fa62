"""How parts of bars and columns are filled, and the legend below them."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from gptscope.app.gui.theme import Theme
from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.charts.bars import Look
from gptscope.app.viewmodels.charts.kernel_times import CATEGORY_TITLES

LEGEND_LINE = 16
_SWATCH, _GAP, _BETWEEN = 8, 5, 14
_PX = 11


def paint_look(painter: QPainter, theme: Theme, box: QRectF, look: Look) -> None:
    """Fill a box: solid for work, hatched for waiting, hollow for not known, pale for hidden."""
    if look == "hatch":
        painter.fillRect(box, theme.hatch("t3"))
        return
    name, _, kind = look.partition(":")
    colour = theme.color("t3") if look == "hollow" else theme.category(name) if _is_kind(name) else theme.color(name)
    if kind == "faint" or look == "hollow":
        if look != "hollow":
            pale = QColor(colour)
            pale.setAlphaF(0.4)
            painter.fillRect(box, pale)
        if box.width() >= 3 and box.height() >= 3:
            painter.setPen(colour)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))
        return
    painter.fillRect(box, colour)


def _is_kind(name: str) -> bool:
    return name in CATEGORY_TITLES


def legend_height(theme: Theme, legend: Sequence[tuple[Look, str]], width: float) -> float:
    """Room that the legend needs."""
    places = _places(theme, legend, width)
    return (places[-1].y() + LEGEND_LINE + 4) if places else 0.0


def paint_legend(
    painter: QPainter, theme: Theme, legend: Sequence[tuple[Look, str]], left: float, top: float, width: float
) -> None:
    """Swatches with their words, on as many lines as they need."""
    painter.setFont(theme.font(_PX))
    metrics = theme.metrics(_PX)
    for (look, text), place in zip(legend, _places(theme, legend, width), strict=True):
        x, y = left + place.x(), top + 4 + place.y()
        paint_look(painter, theme, QRectF(x, y + 4, _SWATCH, _SWATCH), look)
        painter.setPen(theme.color("t2"))
        painter.drawText(QPointF(x + _SWATCH + _GAP, y + 8 + metrics.capHeight() / 2), text)


def _places(theme: Theme, legend: Sequence[tuple[Look, str]], width: float) -> list[QPointF]:
    metrics, x, y, places = theme.metrics(_PX), 0.0, 0.0, []
    for _, text in legend:
        wide = _SWATCH + _GAP + metrics.horizontalAdvance(text)
        if x and x + wide > width:
            x, y = 0.0, y + LEGEND_LINE
        places.append(QPointF(x, y))
        x += wide + _BETWEEN
    return places


def paint_empty(painter: QPainter, theme: Theme, box: QRectF, sentence: str) -> None:
    """Why there is nothing."""
    painter.setPen(theme.color("t3"))
    painter.setFont(theme.font(12))
    flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
    painter.drawText(box.adjusted(8, 4, -8, -4), int(flags), fmt.unbroken(sentence))
