"""The left column: a name for every group of lanes, a chevron that folds it, and the ruler's unit above."""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPolygonF

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.timeline.minimap import GUTTER
from gptscope.app.gui.timeline.rows import PAD, GroupRow, Rows

_RULER = 24
_TEXT = 28
_HEIGHT = 36
"""Of a title with its note, and the room above."""


def draw_headings(painter: QPainter, theme: Theme, rows: Rows, scroll: int, height: int, unit: str) -> None:
    """Draw the column over its whole height."""
    painter.fillRect(QRectF(0, 0, GUTTER, height + _RULER), theme.color("bg2"))
    painter.save()
    painter.setClipRect(QRectF(0, _RULER, GUTTER, height))
    for group in rows.groups:
        top = group.top - scroll + _RULER
        if top < height + _RULER and top + group.height > _RULER:
            _draw_group(painter, theme, group, top)
    painter.restore()
    painter.setFont(theme.font(11))
    painter.setPen(theme.color("t3"))
    shown = QFontMetrics(painter.font()).elidedText(f"Time, {unit}", Qt.TextElideMode.ElideRight, GUTTER - 20)
    painter.drawText(QRectF(12, 0, GUTTER - 20, _RULER), Qt.AlignmentFlag.AlignVCenter, shown)
    painter.setPen(theme.pen("line"))
    painter.drawLine(QPointF(GUTTER - 0.5, 0), QPointF(GUTTER - 0.5, height + _RULER))
    painter.drawLine(QPointF(0, _RULER - 0.5), QPointF(GUTTER, _RULER - 0.5))


def _draw_group(painter: QPainter, theme: Theme, group: GroupRow, top: int) -> None:
    painter.setPen(theme.pen("line"))
    painter.drawLine(QPointF(0, top + group.height - 0.5), QPointF(GUTTER, top + group.height - 0.5))
    text_top = min(max(top, _RULER), top + group.height - _HEIGHT) + PAD  # it stays in sight while its lanes are
    if group.kind != "counter":
        painter.setPen(theme.pen("t2", 1.5))
        x, y = 16.0, text_top + 9.0
        down = ((-3.5, -1.5), (0, 2), (3.5, -1.5))
        across = ((-1.5, -3.5), (2, 0), (-1.5, 3.5))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.drawPolyline(QPolygonF([QPointF(x + a, y + b) for a, b in (across if group.folded else down)]))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    note = f"{group.hidden_lanes} more lanes" if group.folded and group.hidden_lanes else group.note
    for text, size, token, y in ((group.title, 12, "t1", text_top), (note, 11, "t3", text_top + 16)):
        painter.setFont(theme.font(size))
        painter.setPen(theme.color(token))
        room = GUTTER - _TEXT - 8
        shown = QFontMetrics(painter.font()).elidedText(text, Qt.TextElideMode.ElideRight, room)
        painter.drawText(QRectF(_TEXT, y, room, 18 if size == 12 else 14), Qt.AlignmentFlag.AlignVCenter, shown)
