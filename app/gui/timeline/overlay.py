"""What is drawn over the lanes: selected range, marks, outlines of the chosen event and its like, arrows to links."""

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.timeline.raster import Wide
from gptscope.app.gui.timeline.rows import GAP, LANE, Rows
from gptscope.app.gui.timeline.state import TimelineState
from gptscope.app.viewmodels import formatting as fmt

_MOST_OUTLINES = 600
_RULER = 24


class Overlay:
    """Draws in the coordinates of the lanes: x from the gutter's edge, y from below the ruler."""

    def __init__(self, state: TimelineState, theme: Theme) -> None:
        self._state, self._theme = state, theme

    def draw_range(self, painter: QPainter, width: int, height: int) -> None:
        """The selected range: a veil and its edges."""
        if self._state.range is None:
            return
        low, high = (self._state.axis.x(moment, width) for moment in self._state.range)
        left, right = max(low, 0.0), min(high, float(width))
        if right > left:
            painter.fillRect(QRectF(left, 0, right - left, height), self._theme.color("t1", 0.07))
        painter.setPen(self._theme.pen("t1"))
        for x in (low, high):
            if 0 <= x <= width:
                painter.drawLine(QPointF(round(x) + 0.5, -8), QPointF(round(x) + 0.5, height))

    def draw_range_length(self, painter: QPainter, width: int) -> None:
        """Its length on the ruler."""
        if self._state.range is not None:
            low, high = self._state.range
            self._span(painter, width, low, high, fmt.duration((high - low) / 1e9))

    def _span(self, painter: QPainter, width: int, low: float, high: float, text: str) -> None:
        """A bar on the ruler from one moment to another with a text."""
        axis = self._state.axis
        left, right = max(axis.x(low, width), 0.0), min(axis.x(high, width), float(width))
        if right <= left:
            return
        box = QRectF(left, -_RULER + 3, right - left, _RULER - 6)
        painter.fillRect(box, self._theme.color("bg4"))
        painter.setFont(self._theme.font(12, bold=True))
        painter.setPen(self._theme.color("t1"))
        room = painter.fontMetrics().horizontalAdvance(text)
        if room > box.width() - 8:
            beside = box.right() + 6 if box.right() + room + 12 < width else box.left() - room - 6
            back = QRectF(beside - 3, box.top(), room + 6, box.height())
            painter.fillRect(back, self._theme.color("bg1"))
            painter.drawText(back, Qt.AlignmentFlag.AlignCenter, text)
        else:
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)

    def draw_marks(self, painter: QPainter, width: int, height: int, pointer: float | None) -> None:
        """One or two marks; with one, the distance to the pointer."""
        state = self._state
        moments = list(state.marks)
        if len(moments) == 1 and pointer is not None:
            moments.append(pointer)
        painter.setPen(self._theme.pen("accent", 1, Qt.PenStyle.DashLine))
        for moment in moments:
            x = state.axis.x(moment, width)
            if 0 <= x <= width:
                painter.drawLine(QPointF(round(x) + 0.5, -4), QPointF(round(x) + 0.5, height))
        if len(moments) == 2:
            low, high = sorted(moments)
            self._span(painter, width, low, high, f"↔ {fmt.duration((high - low) / 1e9)}")

    def draw_chosen(self, painter: QPainter, wide: list[Wide], rows: Rows, width: int, scroll: int) -> None:
        """Outlines: two pixels around the chosen event, one around those of the same name."""
        state, timeline = self._state, self._state.timeline
        if timeline is None or state.row is None:
            return
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if state.row >= 0:
            painter.setPen(self._theme.pen("t1", 1))
            name, left_over = timeline.trace.name[state.row], _MOST_OUTLINES
            for one in wide:
                found = one.row.lane.rows[one.places]
                same = np.flatnonzero((found >= 0) & (timeline.trace.name[np.maximum(found, 0)] == name))
                for place in same[:left_over].tolist():
                    left, right = max(float(one.left[place]), -2.0), min(float(one.right[place]), width + 2.0)
                    top = one.row.top - scroll
                    painter.drawRect(QRectF(left + 0.5, top + 0.5, max(right - left - 1, 1), LANE - GAP - 1))
                left_over = max(left_over - same.size, 0)
        box = self._box(state.row, rows, width, scroll)
        if box is not None:
            painter.setPen(self._theme.pen("t1", 2))
            painter.drawRect(box.adjusted(0, 1, 0, -1))

    def _box(self, row: int, rows: Rows, width: int, scroll: int) -> QRectF | None:
        """Where an event stands; None when its lane is folded away."""
        timeline = self._state.timeline
        place = timeline.place_of(row) if timeline is not None else None
        if timeline is None or place is None:
            return None
        top = self._top(place, rows)
        if top is None:
            return None
        start, end = timeline.times(row)
        left, right = self._state.axis.x(start, width), self._state.axis.x(end, width)
        left, right = max(left, -4.0), min(max(right, left + 3), width + 4.0)
        if right < left:
            return None
        return QRectF(left, top - scroll, right - left, LANE - GAP)

    def _top(self, place: tuple[int, int], rows: Rows) -> int | None:
        """Height of a lane, or of its group's first one when it is folded away."""
        timeline = self._state.timeline
        assert timeline is not None
        lane = timeline.groups[place[0]].lanes[place[1]]
        found = [row for row in rows.lanes if row.group == place[0]]
        return next((row.top for row in found if row.lane is lane), found[0].top if found else None)

    def draw_links(self, painter: QPainter, rows: Rows, width: int, scroll: int) -> None:
        """Curves from the chosen event to those that belong to it."""
        state, timeline = self._state, self._state.timeline
        if timeline is None or state.row is None or not state.links.links:
            return
        own = self._begin_of(state.row, rows, width, scroll)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for link in state.links.links:
            other = self._begin_of(link.row, rows, width, scroll)
            if own is None or other is None:
                continue
            outgoing = link.relation in {"launched", "kernel", "sent"}
            begin, end = (own, other) if outgoing else (other, own)
            middle = (begin.x() + end.x()) / 2
            path = QPainterPath(begin)
            path.cubicTo(QPointF(middle, begin.y()), QPointF(middle, end.y()), end)
            painter.setPen(self._theme.pen("accent", 1.2 if link.relation != "operator" else 1))
            painter.drawPath(path)
            painter.setBrush(self._theme.color("accent"))
            painter.drawEllipse(end, 2.5, 2.5)
            painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)

    def _begin_of(self, row: int, rows: Rows, width: int, scroll: int) -> QPointF | None:
        """Where an event begins; beside the view when that is outside it."""
        timeline = self._state.timeline
        place = timeline.place_of(row) if timeline is not None else None
        if timeline is None or place is None:
            return None
        top = self._top(place, rows)
        x = self._state.axis.x(timeline.times(row)[0], width)
        return None if top is None else QPointF(min(max(x, -40.0), width + 40.0), top - scroll + (LANE - GAP) / 2)
