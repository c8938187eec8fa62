"""Texts on events: shortened to the room they have, laid out once and kept."""

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QStaticText

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.timeline.raster import LABELLED, Wide
from gptscope.app.gui.timeline.rows import GAP, LANE
from gptscope.app.viewmodels.timeline_codes import NAMES, is_work
from gptscope.app.viewmodels.timeline_model import Timeline

_PADDING = 5
_BUCKET = 8
"""Room is rounded down to so many pixels, so that zooming does not lay out every text anew."""
_MOST_KEPT = 20_000
_MOST_IN_LANE = 400


class Labels:
    """Draws the labels of the wide events that are seen."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._font: QFont = theme.font(12)
        self._metrics = QFontMetricsF(self._font)
        self._kept: dict[tuple[str, int], QStaticText] = {}

    def forget(self) -> None:
        """Fonts or colours changed."""
        self._font = self._theme.font(12)
        self._metrics = QFontMetricsF(self._font)
        self._kept.clear()

    def draw(self, painter: QPainter, timeline: Timeline, wide: list[Wide], width: int, scroll: int) -> None:
        """Write on every event with room; colours change as seldom as possible."""
        painter.setFont(self._font)
        texts: dict[int, list[tuple[float, float, QStaticText]]] = {}
        for one in wide:
            lane = one.row.lane
            room = one.right.clip(None, width) - one.left.clip(0, None)
            y = one.row.top - scroll + (LANE - GAP - self._metrics.height()) / 2
            for place in (room >= LABELLED).nonzero()[0][:_MOST_IN_LANE].tolist():
                event = one.places[place]
                text = self._fitted(timeline.label(int(lane.rows[event])), float(room[place]) - 2 * _PADDING)
                x = max(float(one.left[place]), 0.0) + _PADDING
                texts.setdefault(int(lane.code[event]), []).append((x, y, text))
        for code, found in texts.items():
            painter.setPen(self._colour(code))
            for x, y, text in found:
                painter.drawStaticText(QPointF(x, y), text)

    def _colour(self, code: int) -> QColor:
        return self._theme.category_label(NAMES[code]) if is_work(code) else self._theme.color("t1")

    def _fitted(self, text: str, room: float) -> QStaticText:
        key = (text, int(room) // _BUCKET)
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            shown = self._shortened(text, key[1] * _BUCKET + 1.0)
            found = QStaticText(shown)
            found.setTextFormat(Qt.TextFormat.PlainText)
            found.setPerformanceHint(QStaticText.PerformanceHint.AggressiveCaching)
            found.prepare(font=self._font)
            self._kept[key] = found
        return found

    def _shortened(self, text: str, room: float) -> str:
        """The last part of a dotted path says most, so it stays; else letters go at the end."""
        if self._metrics.horizontalAdvance(text) <= room:
            return text
        tail = text.rpartition(".")[2].strip()
        if " " not in text and tail and not tail.isdigit() and self._metrics.horizontalAdvance(tail) <= room:
            return tail
        return self._metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
