"""Right of the timeline: sums of the selected range; all about the chosen event, its links and its arguments."""

import threading
from functools import partial
from typing import Any

from PySide6.QtCore import QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPixmap
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.timeline.state import TimelineState
from gptscope.app.gui.widgets.basics import ElidedLabel, button, label, rule, set_text, wrapped
from gptscope.app.gui.widgets.guarded import guarded_as
from gptscope.app.gui.widgets.named_lines import NamedLines
from gptscope.app.gui.widgets.painted import Painted
from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.charts.kernel_times import category_title
from gptscope.app.viewmodels.timeline_codes import NAMES, is_work
from gptscope.app.viewmodels.timeline_links import TITLES
from gptscope.app.viewmodels.timeline_work import RangeSums
from gptscope.app.viewmodels.trace_details import argument_lines, event_lines, range_lines

WIDTH = 296
_MOST_LINKS = 6
_PADDING, _SCROLL_BAR = 12, 12
_ROOM = WIDTH - 2 * _PADDING - _SCROLL_BAR
"""Pixels for a name and its value on one line."""


class ShareBar(Painted):
    """One bar with a part for each kind of work; what is left is hatched."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._sums: RangeSums | None = None
        self.setFixedHeight(10)
        self.setAccessibleName("Shares of the selected range")

    def show_sums(self, sums: RangeSums | None) -> None:
        """Show a range."""
        self._sums = sums
        self.update()

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(200, 10)

    def paint(self, painter: QPainter) -> None:
        if self._sums is None:
            return
        whole = max(self._sums.length_ns, sum(one.ns for one in self._sums.categories), 1)
        painter.fillRect(self.rect(), self.theme.color("bg2"))
        painter.fillRect(self.rect(), self.theme.hatch("t3"))
        x = 0.0
        for one in self._sums.categories:
            width = one.ns / whole * self.width()
            painter.fillRect(QRectF(x, 0, max(width - 1, 1 if one.ns else 0), 10), self.theme.category(one.category))
            x += width


class TraceInspector(QFrame):
    """Fixed width; scrolls when there is more."""

    row_wanted = Signal(int)
    step_wanted = Signal(int)  # to the next (1) or previous (-1) event of the same name
    export_wanted = Signal()
    _arguments = Signal(int, object)  # row, arguments: from the reading thread

    def __init__(self, state: TimelineState, theme: Theme) -> None:
        super().__init__()
        self._state, self._theme = state, theme
        self._asked = -1
        self.setProperty("fill", "bg1")
        self.setFixedWidth(WIDTH)
        self.setAccessibleName("Details")
        outer = QVBoxLayout(self)
        outer.setContentsMargins(1, 0, 0, 0)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inner = QWidget()
        inner.setProperty("fill", "bg1")
        column = QVBoxLayout(inner)
        column.setContentsMargins(_PADDING, 8, _PADDING, 8)
        column.setSpacing(4)
        column.addLayout(self._make_range())
        column.addWidget(rule())
        column.addLayout(self._make_event())
        column.addStretch(1)
        area.setWidget(inner)
        outer.addWidget(area)
        self._arguments.connect(self._on_arguments)
        state.opened.connect(lambda: QTimer.singleShot(0, self, self.refresh))  # lanes first
        state.chosen.connect(self._show_event)
        state.range_changed.connect(self._show_range)
        theme.changed.connect(self.refresh)
        self.refresh()

    def _make_range(self) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(4)
        head = QHBoxLayout()
        self.range_title, self.range_length = label("Whole trace", bold=True), label("", bold=True)
        head.addWidget(self.range_title)
        head.addStretch(1)
        head.addWidget(self.range_length)
        column.addLayout(head)
        self.shares = ShareBar(self._theme)
        column.addWidget(self.shares)
        self._range_grid = _grid(column)
        self._range_grid.setHorizontalSpacing(6)  # room for the longest name of a category
        self.range_note = wrapped(level=3, size=11)
        column.addWidget(self.range_note)
        return column

    def _make_event(self) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(4)
        head = QHBoxLayout()
        head.setSpacing(8)
        self._swatch, self.title, self.length = QLabel(), ElidedLabel("", bold=True), label("", bold=True)
        head.addWidget(self._swatch)
        head.addWidget(self.title, 1)
        head.addWidget(self.length)
        column.addLayout(head)
        self.details = NamedLines(_ROOM)
        column.addWidget(self.details)
        self._links = QVBoxLayout()
        self._links.setSpacing(0)
        column.addLayout(self._links)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        self.previous = button("Previous", lambda: self.step_wanted.emit(-1), kind="tool", tip="The one before it")
        self.next = button("Next alike", lambda: self.step_wanted.emit(1), kind="tool", tip="The next of this name")
        self.export = button(
            "Export range", self.export_wanted.emit, kind="tool", tip="Save the selected range, or all, as a file"
        )
        for widget in (self.previous, self.next):
            buttons.addWidget(widget)
        buttons.addStretch(1)
        buttons.addWidget(self.export)
        column.addLayout(buttons)
        self.arguments_title = label("Arguments", bold=True, size=12)
        column.addWidget(self.arguments_title)
        self.arguments = NamedLines(_ROOM)
        column.addWidget(self.arguments)
        return column

    # ---------------------------------------------------------------------------------------------- showing

    def refresh(self) -> None:
        """Show range and event anew."""
        self._show_range()
        self._show_event()

    def _show_range(self) -> None:
        timeline, selected = self._state.timeline, self._state.range
        set_text(self.range_title, "Selected range" if selected is not None else "Whole trace")
        _clear(self._range_grid)
        self.export.setEnabled(timeline is not None)
        self.export.setText("Export range" if selected is not None else "Export")
        if timeline is None:
            set_text(self.range_length, "")
            self.shares.show_sums(None)
            set_text(self.range_note, "Open a trace to see its sums here.")
            return
        low, high = selected if selected is not None else (0.0, timeline.span)
        sums = timeline.sums.in_range(round(low), round(high))
        set_text(self.range_length, fmt.duration((high - low) / 1e9))
        self.shares.show_sums(sums)
        for number, (category, calls, time, share) in enumerate(range_lines(sums)):
            sign = QLabel()
            sign.setPixmap(self._swatch_of(category))
            self._range_grid.addWidget(sign, number, 0)
            name = category_title(category) if category else "gaps"
            self._range_grid.addWidget(ElidedLabel(name, size=12), number, 1)
            for place, (text, level) in enumerate(((calls, 2), (time, 1), (share, 2))):
                cell = label(text, level=level, size=12)
                cell.setAlignment(Qt.AlignmentFlag.AlignRight)
                self._range_grid.addWidget(cell, number, 2 + place)
        self._range_grid.setColumnStretch(1, 1)
        work = sum(one.ns for one in sums.categories)
        note = "Calls, time, share of the range's time."
        if work > sums.busy_ns * 1.001:
            note += " Several streams or threads work at once, so they can add up to more than 100 %."
        if selected is None:
            note += " Drag over the timeline to select a range."
        set_text(self.range_note, note)

    def _swatch_of(self, category: str) -> QPixmap:
        pixmap = QPixmap(8, 8)
        if category:
            pixmap.fill(self._theme.category(category))
        else:
            pixmap.fill(self._theme.color("bg1"))
            painter = QPainter(pixmap)
            painter.fillRect(pixmap.rect(), self._theme.hatch("t3"))
            painter.end()
        return pixmap

    def _show_event(self) -> None:
        timeline, row = self._state.timeline, self._state.row
        _clear(self._links)
        chosen = timeline is not None and row is not None
        for widget in (self._swatch, self.length, self.previous, self.next, self.arguments_title):
            widget.setVisible(chosen)
        if timeline is None or row is None:
            self._asked = -1
            self.arguments.show_lines(())
            set_text(self.title, "Chosen event" if timeline is not None else "")
            self.details.show_lines(() if timeline is None else (("", "Click an event to see all about it."),))
            return
        lines = event_lines(timeline, row)
        set_text(self.title, lines[0][1])
        set_text(self.length, lines[1][1] if row >= 0 and not lines[1][1].startswith("n/a") else "")
        code = int(timeline.codes[row]) if row >= 0 else -1
        self._swatch.setVisible(row >= 0 and is_work(code))
        if row >= 0 and is_work(code):
            self._swatch.setPixmap(self._swatch_of(NAMES[code]))
        self.details.show_lines(lines[2:] if self.length.text() else lines[1:])
        self._show_links()
        self.arguments_title.setVisible(row >= 0)
        if row < 0:
            self.arguments.show_lines(())
        for widget in (self.previous, self.next):
            widget.setEnabled(row >= 0)
        if row >= 0:
            self._ask_arguments(row)

    def _show_links(self) -> None:
        timeline, found = self._state.timeline, self._state.links
        assert timeline is not None
        for link in found.links[:_MOST_LINKS]:
            line = QWidget()
            row = QHBoxLayout(line)
            row.setContentsMargins(0, 0, 0, 0)
            row.setSpacing(8)
            row.addWidget(label(TITLES[link.relation], level=2, size=12))
            text = timeline.label(link.row)
            go = button(
                text if len(text) <= 28 else f"{text[:27]}…",
                partial(self.row_wanted.emit, link.row),
                kind="link",
                tip=timeline.trace.name_of(link.row),
                name=f"{TITLES[link.relation]} {text}",
            )
            row.addStretch(1)
            row.addWidget(go)
            self._links.addWidget(line)
        more = len(found.links) - _MOST_LINKS + found.left_out
        if more > 0:
            self._links.addWidget(label(f"and {fmt.count(more)} more", level=3, size=12))

    # ---------------------------------------------------------------------------------------------- arguments

    def _ask_arguments(self, row: int) -> None:
        """Read them from the file on a thread of their own: a large packed file takes a moment."""
        timeline = self._state.timeline
        assert timeline is not None
        self._asked = row
        self.arguments.show_lines((("", "Reading…"),))
        trace = timeline.trace
        threading.Thread(
            target=lambda: self._arguments.emit(row, (trace, trace.args(row))), name="read arguments", daemon=True
        ).start()

    def _on_arguments(self, row: int, found: tuple[object, dict[str, Any]]) -> None:
        trace, args = found
        timeline = self._state.timeline
        if row != self._asked or timeline is None or trace is not timeline.trace:
            return
        lines = argument_lines(args)
        self.arguments.show_lines(lines or (("", "The file has none for this event."),))


def _grid(column: QVBoxLayout) -> QGridLayout:
    grid = QGridLayout()
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setHorizontalSpacing(8)
    grid.setVerticalSpacing(2)
    column.addLayout(grid)
    return grid


def _clear(layout: QGridLayout | QVBoxLayout) -> None:
    while (item := layout.takeAt(0)) is not None:
        widget = item.widget()
        if widget is not None:
            widget.hide()  # it is deleted only in the next turn of the event loop
            widget.deleteLater()
