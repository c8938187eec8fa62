"""Ruler, headings and lanes in one widget that paints itself; mouse and keys move the view, choose, select, measure."""

import logging

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QResizeEvent, QWheelEvent

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.timeline.headings import draw_headings
from gptscope.app.gui.timeline.labels import Labels
from gptscope.app.gui.timeline.minimap import GUTTER
from gptscope.app.gui.timeline.overlay import Overlay
from gptscope.app.gui.timeline.raster import Palette, Picture, draw
from gptscope.app.gui.timeline.rows import Rows, rows_of
from gptscope.app.gui.timeline.state import TimelineState
from gptscope.app.gui.widgets.guarded import guarded
from gptscope.app.gui.widgets.painted import Painted
from gptscope.app.viewmodels.timeline_axis import Ticks, ticks
from gptscope.app.viewmodels.timeline_hover import hover_text

logger = logging.getLogger(__name__)

RULER = 24
_TICK_ROOM = 110
_NEAR = 4
"""Pixels beside an event that still hit it, and within which a range snaps to an event's edge."""
_ZOOM_STEP, _PAN_STEP, _SCROLL_STEP = 1.25, 0.12, 40
_KEYS_ZOOM = {Qt.Key.Key_W: 1, Qt.Key.Key_Plus: 1, Qt.Key.Key_Equal: 1, Qt.Key.Key_S: -1, Qt.Key.Key_Minus: -1}
_KEYS_PAN = {Qt.Key.Key_A: -1, Qt.Key.Key_Left: -1, Qt.Key.Key_D: 1, Qt.Key.Key_Right: 1}
_KEYS_SCROLL = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -8, Qt.Key.Key_PageDown: 8}


class TimelineCanvas(Painted):
    """Shows the state's timeline. `scrolled` tells the scroll bar that heights or position changed."""

    scrolled = Signal()
    search_step = Signal(int)
    search_wanted = Signal()

    def __init__(self, state: TimelineState, theme: Theme) -> None:
        super().__init__(theme)
        self.state = state
        self.rows = Rows()
        self.offset = 0
        self._folded: frozenset[str] = frozenset()
        self._palette = Palette(theme)
        self._labels = Labels(theme)
        self._overlay = Overlay(state, theme)
        self._picture: Picture | None = None
        self._picture_key: tuple[object, ...] = ()
        self._press: QPointF | None = None
        self._press_scroll = 0
        self._dragging = ""  # "range" or "pan" once the pointer has moved
        self._pointer: QPointF | None = None
        self._by_keyboard = False  # whether the focus came by Tab: then it is shown
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Timeline")
        self.setAccessibleDescription(
            "Wheel or W and S zoom, A and D move, drag selects a range, click chooses an event, M measures, F fits."
        )
        theme.changed.connect(self._on_theme)
        state.opened.connect(self._on_opened)
        for signal in (state.moved, state.chosen, state.range_changed, state.marks_changed):
            signal.connect(self.update)

    # ---------------------------------------------------------------------------------------------- geometry

    @property
    def lanes_width(self) -> int:
        """Pixels of the time axis."""
        return max(self.width() - GUTTER, 1)

    @property
    def lanes_height(self) -> int:
        """Pixels below the ruler."""
        return max(self.height() - RULER, 1)

    def _time(self, x: float) -> float:
        return self.state.axis.time(x - GUTTER, self.lanes_width)

    def _on_opened(self) -> None:
        self._folded, self.offset = frozenset(), 0
        self._lay_out()

    def _on_theme(self) -> None:
        self._palette, self._picture_key = Palette(self.theme), ()
        self._labels.forget()

    def _lay_out(self) -> None:
        self.rows = rows_of(self.state.timeline, self._folded)
        self.scroll_to(self.offset)
        self.update()

    def scroll_to(self, y: int) -> None:
        """Scroll so that this height is at the top."""
        self.offset = min(max(y, 0), max(self.rows.height - self.lanes_height, 0))
        self.scrolled.emit()
        self.update()

    def fold(self, key: str) -> None:
        """Show only the first lane of a group, or all of them again."""
        self._folded = self._folded ^ {key}
        self._lay_out()

    def show_row(self, row: int) -> None:
        """Scroll to an event's lane."""
        place = self.state.timeline.place_of(row) if self.state.timeline is not None else None
        if place is None or self.state.timeline is None:
            return
        lane = self.state.timeline.groups[place[0]].lanes[place[1]]
        found = next((one for one in self.rows.lanes if one.lane is lane), None)
        if found is not None and not self.offset <= found.top <= self.offset + self.lanes_height - 24:
            self.scroll_to(found.top - self.lanes_height // 3)

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.scroll_to(self.offset)

    # ---------------------------------------------------------------------------------------------- drawing

    def _drawn(self, marks: Ticks) -> Picture:
        size, ratio = (self.lanes_width, self.lanes_height), self.devicePixelRatioF()
        key = (self.state.axis, size, self.offset, ratio, id(self.rows), self.theme.name)
        if self._picture is None or key != self._picture_key:
            self._picture = draw(self.rows, self.state.axis, self._palette, size, self.offset, ratio, marks.times)
            self._picture_key = key
        return self._picture

    def paint(self, painter: QPainter) -> None:
        theme, state = self.theme, self.state
        width, height = self.lanes_width, self.lanes_height
        marks = ticks(state.axis, max(width // _TICK_ROOM, 2))
        picture = self._drawn(marks)
        painter.fillRect(QRectF(0, 0, self.width(), RULER), theme.color("bg1"))
        painter.save()
        painter.translate(GUTTER, RULER)
        painter.drawImage(0, 0, picture.image)
        self._draw_ruler(painter, marks)
        painter.setClipRect(QRectF(0, -RULER, width, height + RULER))
        if state.timeline is not None:
            self._labels.draw(painter, state.timeline, picture.wide, width, self.offset)
            self._overlay.draw_range_length(painter, width)
            painter.setClipRect(QRectF(0, -8, width, height + 8))
            self._overlay.draw_range(painter, width, height)
            painter.setClipRect(QRectF(0, 0, width, height))
            self._overlay.draw_links(painter, self.rows, width, self.offset)
            self._overlay.draw_chosen(painter, picture.wide, self.rows, width, self.offset)
            painter.setClipRect(QRectF(0, -RULER, width, height + RULER))
            pointer = self._time(self._pointer.x()) if self._pointer is not None and state.measuring else None
            self._overlay.draw_marks(painter, width, height, pointer)
        painter.restore()
        draw_headings(painter, theme, self.rows, self.offset, height, marks.unit)
        if self.hasFocus() and self._by_keyboard:
            painter.setPen(theme.pen("accent"))
            painter.drawRect(QRectF(0.5, 0.5, self.width() - 1, self.height() - 1))

    def _draw_ruler(self, painter: QPainter, marks: Ticks) -> None:
        theme, width = self.theme, self.lanes_width
        painter.setFont(theme.font(11))
        for time, text in zip(marks.times, marks.labels, strict=True):
            x = self.state.axis.x(time, width)
            painter.setPen(theme.pen("ctl"))
            painter.drawLine(QPointF(round(x) + 0.5, -5), QPointF(round(x) + 0.5, -1))
            painter.setPen(theme.color("t3"))
            if 24 <= x <= width - 24:
                painter.drawText(QRectF(x - 60, -RULER, 120, RULER - 5), Qt.AlignmentFlag.AlignCenter, text)
        painter.setPen(theme.pen("line2"))
        painter.drawLine(QPointF(0, -0.5), QPointF(width, -0.5))

    # ---------------------------------------------------------------------------------------------- mouse

    def row_at(self, position: QPointF) -> int | None:
        """The event under a point of the widget, or one a few pixels beside it."""
        if position.x() < GUTTER or position.y() < RULER:
            return None
        found = self.rows.lane_at(position.y() - RULER + self.offset)
        if found is None:
            return None
        near = _NEAR * self.state.axis.length / self.lanes_width
        time = self._time(position.x())
        place = found.lane.at(time, 0.0)
        place = found.lane.at(time, near) if place is None else place
        return int(found.lane.rows[place]) if place is not None else None

    def _snapped(self, position: QPointF) -> float:
        """The moment under a point, or the near edge of the event there."""
        time = self._time(position.x())
        row = self.row_at(position)
        if row is None or self.state.timeline is None:
            return time
        near = _NEAR * self.state.axis.length / self.lanes_width
        edge = min(self.state.timeline.times(row), key=lambda moment: abs(moment - time))
        return edge if abs(edge - time) <= near else time

    @guarded
    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.setFocus(Qt.FocusReason.MouseFocusReason)
        if event.position().x() < GUTTER:
            group = self.rows.group_at(event.position().y() - RULER + self.offset)
            if group is not None and event.position().y() > RULER:
                self.fold(group.key)
            return
        self._press, self._press_scroll, self._dragging = event.position(), self.offset, ""
        pans = event.button() == Qt.MouseButton.MiddleButton or event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if pans:
            self._dragging = "pan"
            self.setCursor(Qt.CursorShape.ClosedHandCursor)

    @guarded
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        before, self._pointer = self._pointer, event.position()
        if self._press is not None and self._dragging == "pan" and before is not None:
            moved = before.x() - self._pointer.x()
            self.state.look(self.state.axis.moved(moved / self.lanes_width))
            self.scroll_to(self._press_scroll + round(self._press.y() - self._pointer.y()))
        elif self._press is not None and event.buttons() & Qt.MouseButton.LeftButton:
            if not self._dragging and abs(self._pointer.x() - self._press.x()) > _NEAR and not self.state.measuring:
                self._dragging = "range"
            if self._dragging == "range":
                low, high = sorted((self._snapped(self._press), self._snapped(self._pointer)))
                self.state.select((low, high) if high > low else None)
        elif self.state.measuring:
            self.update()
        if self.state.timeline is not None:
            y = self._pointer.y() - RULER + self.offset
            if self._pointer.x() < GUTTER:
                group = self.rows.group_at(y)
                self.state.hovered.emit(f"{group.title}, {group.note}".rstrip(", ") if group is not None else "")
                return
            time = self._time(self._pointer.x())
            text = hover_text(self.state.timeline, self.row_at(self._pointer), time, self.rows.counter_at(y))
            self.state.hovered.emit(text)

    @guarded
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        press, dragged = self._press, self._dragging
        self._press, self._dragging = None, ""
        self.unsetCursor()
        if press is None or dragged or event.button() != Qt.MouseButton.LeftButton:
            return
        if self.state.measuring:
            self.state.mark(self._snapped(event.position()))
            return
        row = self.row_at(event.position())
        self.state.choose(row)
        if row is None:
            self.state.select(None)

    @guarded
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        row = self.row_at(event.position())
        if row is not None and self.state.timeline is not None:
            start, end = self.state.timeline.times(row)
            room = max(end - start, 1.0) * 0.1
            self.state.look(self.state.axis.to(start - room, end + room))

    @guarded
    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._by_keyboard = event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        self.update()

    @guarded
    def leaveEvent(self, _event: object) -> None:
        self._pointer = None
        self.state.hovered.emit("")
        self.update()

    @guarded
    def wheelEvent(self, event: QWheelEvent) -> None:
        delta, sideways = event.angleDelta().y(), event.angleDelta().x()
        notches = (delta or sideways) / 120
        modifiers = event.modifiers()
        if event.position().x() < GUTTER or modifiers & Qt.KeyboardModifier.ControlModifier:
            self.scroll_to(self.offset - round(notches * _SCROLL_STEP))
        elif modifiers & Qt.KeyboardModifier.ShiftModifier or abs(sideways) > abs(delta):
            self.state.look(self.state.axis.moved(-notches * _PAN_STEP))
        else:
            self.state.look(self.state.axis.zoomed(_ZOOM_STEP**notches, self._time(event.position().x())))
        event.accept()

    # ---------------------------------------------------------------------------------------------- keys

    def _focus_time(self) -> float:
        """Where keys zoom: at the pointer, else in the middle."""
        if self._pointer is not None and self._pointer.x() >= GUTTER:
            return self._time(self._pointer.x())
        return (self.state.axis.start + self.state.axis.end) / 2

    @guarded
    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, state = Qt.Key(event.key()), self.state
        plain = not event.modifiers() & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier)
        back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if not plain:
            super().keyPressEvent(event)
        elif key in _KEYS_ZOOM:
            state.look(state.axis.zoomed(_ZOOM_STEP ** (2 * _KEYS_ZOOM[key]), self._focus_time()))
        elif key in _KEYS_PAN:
            state.look(state.axis.moved(_KEYS_PAN[key] * _PAN_STEP))
        elif key in _KEYS_SCROLL:
            self.scroll_to(self.offset + _KEYS_SCROLL[key] * _SCROLL_STEP)
        elif key in (Qt.Key.Key_F, Qt.Key.Key_0):
            state.fit()
        elif key == Qt.Key.Key_Home:
            state.look(state.axis.widest())
        elif key == Qt.Key.Key_M:
            self._mark_here()
        elif key == Qt.Key.Key_N:
            self.search_step.emit(-1 if back else 1)
        elif key == Qt.Key.Key_Slash:
            self.search_wanted.emit()
        elif key == Qt.Key.Key_Escape:
            state.measure(on=False)
            state.select(None)
            state.choose(None)
        else:
            super().keyPressEvent(event)

    def _mark_here(self) -> None:
        """M sets a mark at the pointer, and turns measuring on first."""
        if not self.state.measuring:
            self.state.measure(on=True)
        if self._pointer is not None and self._pointer.x() >= GUTTER:
            self.state.mark(self._snapped(self._pointer))
