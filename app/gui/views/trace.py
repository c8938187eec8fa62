"""The Trace view: an opened trace as a timeline over its tables, with an inspector; everything chosen is linked."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from gptscope.app.gui.charts.exporting import Exportable
from gptscope.app.gui.controller import Controller
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.timeline.state import TimelineState
from gptscope.app.gui.timeline.timeline_view import TimelineView
from gptscope.app.gui.views.trace_header import TraceHeader
from gptscope.app.gui.views.trace_inspector import TraceInspector
from gptscope.app.gui.views.trace_loading import OpenedTrace, TraceLoader
from gptscope.app.gui.views.trace_tables import HEALTH, TraceTables
from gptscope.app.gui.widgets.basics import ThemedIcons, button, label, set_text
from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.timeline_search import Found, alike, find
from gptscope.app.viewmodels.trace_health import banner, health_table
from gptscope.app.viewmodels.trace_page import TracePage
from gptscope.app.viewmodels.trace_targets import between, keys_of, target_of

_SPLIT = (480, 330)
_SEARCH_AFTER_MS = 200
_FRAME_MS = 16
_HINT = "Drag to select, wheel to zoom, W A S D to move, click an event for its details."
_EMPTY = "No trace is open. Open one with Ctrl+O, or drop a file on this window."


class TraceView(QWidget):
    """Shows one trace at a time."""

    shown = Signal()  # another trace is shown, or none
    export_wanted = Signal()

    def __init__(
        self,
        controller: Controller,
        theme: Theme,
        icons: ThemedIcons,
        export: Callable[[Exportable, str], object],
    ) -> None:
        super().__init__()
        self._controller = controller
        self.setObjectName("canvas")
        self.state = TimelineState()
        self.loader = TraceLoader()
        self.trace: OpenedTrace | None = None
        self._found: Found | None = None
        self.name = ""
        self._name_wanted = ""
        self._whose = ""
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self.header = TraceHeader(icons)
        column.addWidget(self.header)
        self.stack = QStackedWidget()
        self.stack.addWidget(self._make_empty())
        self._page = self._make_opened(theme, icons, export)
        self.stack.addWidget(self._page)
        column.addWidget(self.stack, 1)
        self._search_timer = QTimer(self)
        self._search_timer.setSingleShot(True)
        self._search_timer.setInterval(_SEARCH_AFTER_MS)
        self._search_timer.timeout.connect(self._search)
        self._wire()
        self._show_header()

    def _make_empty(self) -> QWidget:
        holder = QWidget()
        holder.setProperty("fill", "bg1")
        column = QVBoxLayout(holder)
        column.addStretch(1)
        self.empty = label(_EMPTY, level=2)
        self.empty.setWordWrap(True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column.addWidget(self.empty)
        row = QHBoxLayout()
        row.addStretch(1)
        self.open_button = button("Open a trace…", lambda: None, tip="Ctrl+O")
        row.addWidget(self.open_button)
        row.addStretch(1)
        column.addSpacing(8)
        column.addLayout(row)
        column.addStretch(1)
        return holder

    def _make_opened(self, theme: Theme, icons: ThemedIcons, export: Callable[[Exportable, str], object]) -> QWidget:
        self.timeline, self.inspector = TimelineView(self.state, theme), TraceInspector(self.state, theme)
        self.tables = TraceTables(theme, icons, export)
        top = QWidget()
        row = QHBoxLayout(top)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.timeline, 1)
        row.addWidget(self.inspector)
        top.setMinimumHeight(200)
        splitter = QSplitter(Qt.Orientation.Vertical)
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(top)
        splitter.addWidget(self.tables)
        splitter.setStretchFactor(0, 3)
        splitter.setStretchFactor(1, 2)
        splitter.setSizes(_SPLIT)
        return splitter

    def _wire(self) -> None:
        loader, header, state = self.loader, self.header, self.state
        loader.progressed.connect(header.show_progress)
        loader.opened.connect(self._on_opened)
        loader.table_ready.connect(self._on_table)
        loader.finished.connect(self._on_finished)
        loader.compared.connect(self.tables.show_difference)
        loader.failed.connect(self._on_failed)
        loader.stopped.connect(self._on_stopped)
        header.cancel_wanted.connect(loader.cancel)
        header.health_wanted.connect(lambda: self.tables.show_tab(HEALTH))
        header.measure_toggled.connect(lambda on: state.measure(on=on))
        header.fit_wanted.connect(state.fit)
        header.search.textChanged.connect(lambda _text: self._search_timer.start())
        header.search.stepped.connect(self.search_step)
        header.search.left.connect(self.timeline.canvas.setFocus)
        state.hovered.connect(self._on_hovered)
        state.chosen.connect(self._on_chosen)
        state.range_changed.connect(self._on_range)
        state.marks_changed.connect(lambda: header.measure.setChecked(state.measuring))
        self.timeline.canvas.search_step.connect(self.search_step)
        self.timeline.canvas.search_wanted.connect(self.focus_search)
        self.inspector.row_wanted.connect(self.timeline.show_row)
        self.inspector.step_wanted.connect(self._step_alike)
        self.inspector.export_wanted.connect(self.export_wanted)
        self.tables.chosen.connect(self._on_table_row)
        self.tables.copied.connect(self._tell_copied)
        self.tables.range_wanted.connect(self._on_range_wanted)

    # ---------------------------------------------------------------------------------------------- opening

    def open(self, path: Path, name: str = "") -> None:
        """Open a file; what is shown stays until it is ready. `name`: what to call it instead of the file's name."""
        self._name_wanted = name
        for widget in self._page.findChildren(QWidget):
            widget.ensurePolished()  # now, so that nothing but drawing is left to do when the trace is there
        self.header.show_progress(f"Reading {path.name}", 0.0)
        self._controller.told.emit(f"Opening {path.name}; Cancel gives up.", "info")
        set_text(self.empty, f"Opening {path.name}…")
        self.open_button.setEnabled(False)
        self.loader.load(path)

    def compare(self, path: Path) -> None:
        """Compare the shown trace with another file: the shown one is before, the other after."""
        if self.state.timeline is not None:
            self.header.show_progress(f"Reading {path.name}", 0.0)
            self.loader.compare(self.state.timeline, path)

    def show_whose(self, whose: str) -> None:
        """Say in the header of what the trace is, where one could be mistaken; empty where not."""
        self._whose = whose
        self._show_header()

    def forget_refusal(self) -> None:
        """Where a file was refused and nothing is shown, say again how to open a trace."""
        if self.trace is None and not self.loader.busy:
            set_text(self.empty, _EMPTY)

    def close_loader(self) -> None:
        """End the thread, when the window closes."""
        self.loader.close()

    def _on_opened(self, opened: OpenedTrace) -> None:
        self.trace, self.name = opened, self._name_wanted
        self._found = None
        self.header.search.clear()
        self.tables.show_waiting()
        self.tables.show_table(HEALTH, health_table(opened.health))
        self.tables.range_button.setChecked(False)
        self._paint_one_after_another()
        self.stack.setCurrentIndex(1)
        self.state.open(opened.timeline)
        self.timeline.canvas.setFocus()
        QTimer.singleShot(0, self, self._show_header)
        self._controller.told.emit(_HINT, "info")
        self.shown.emit()

    def _paint_one_after_another(self) -> None:
        """Let each part of the page paint in a frame of its own: all in one would be a stall that one notices."""
        timeline, tables = self.timeline, self.tables
        parts = (timeline.canvas, timeline.minimap, tables.stack, tables.chart, self.inspector)
        for part in parts:
            part.setUpdatesEnabled(False)
        self._paint_next(parts)

    def _paint_next(self, parts: tuple[QWidget, ...]) -> None:
        """After a frame let the first part paint, then in the same way the others."""

        def paint() -> None:
            parts[0].setUpdatesEnabled(True)
            self._paint_next(parts[1:])

        if parts:
            QTimer.singleShot(_FRAME_MS, self, paint)

    def _on_table(self, key: str, page: TracePage) -> None:
        self.tables.show_page(key, page)

    def _on_finished(self) -> None:
        self._end_progress()

    def _on_failed(self, sentence: str, _detail: str) -> None:
        self._end_progress()
        set_text(self.empty, sentence)
        self._controller.told.emit(sentence, "error")

    def _on_stopped(self) -> None:
        self._end_progress()
        self._controller.told.emit("Stopped opening the trace.", "info")

    def _end_progress(self) -> None:
        self.header.show_progress("", None)
        self.open_button.setEnabled(True)
        set_text(self.empty, _EMPTY)

    def _show_header(self) -> None:
        opened = self.trace
        tools = (self.header.search, self.header.found, self.header.measure, self.header.fit)
        for widget in tools:
            widget.setVisible(opened is not None)
        if opened is None:
            self.header.show_health("", "")
            return
        trace, timeline = opened.timeline.trace, opened.timeline
        set_text(self.header.name, self.name or opened.path.name)
        text, tone = banner(trace, opened.health)
        self.header.show_health(text, tone)
        steps = len(timeline.steps)
        parts = [self._whose] if self._whose else []
        parts += [
            fmt.duration(timeline.span / 1e9),
            f"{steps} step{'s' if steps != 1 else ''}" if steps else "no steps",
        ]
        parts += opened.devices[:2]
        parts += [f"rank {trace.rank}"] if "distributedInfo" in trace.metadata else []
        set_text(self.header.about, ", ".join(parts))

    # ---------------------------------------------------------------------------------------------- linking

    def _on_hovered(self, text: str) -> None:
        self._controller.told.emit(text or _HINT, "info")

    def _on_chosen(self) -> None:
        timeline, row = self.state.timeline, self.state.row
        if timeline is not None and row is not None:
            self.tables.choose(keys_of(timeline, row))
        self._show_found()

    def _on_table_row(self, table: str, key: str) -> None:
        timeline = self.state.timeline
        if timeline is None:
            return
        sentence = self.tables.sentence_of(table)
        if sentence:
            self._controller.told.emit(sentence, "info")
        place = self.tables.place_of(table, key)
        target = between(timeline, *place) if place is not None else target_of(timeline, table, key)
        if target is None:
            return
        if target.row is not None:
            self.timeline.show_row(target.row)
        elif target.range is not None:
            low, high = target.range
            room = (high - low) * 0.05
            self.state.select(target.range)
            self.state.look(self.state.axis.to(low - room, high + room))

    def _on_range(self) -> None:
        selected = self.state.range
        self.tables.range_button.setEnabled(selected is not None or self.tables.range_button.isChecked())

    def _on_range_wanted(self, only: bool) -> None:
        timeline, selected = self.state.timeline, self.state.range
        if timeline is None:
            return
        if only and selected is not None:
            low, high = (round(moment) + timeline.origin_ns for moment in selected)
            self.tables.show_range(f"selected range, {fmt.duration((high - low) / 1e9)}")
            self.loader.tables(timeline, (low, high))
        else:
            self.tables.show_range("")
            self.loader.tables(timeline, None)

    def _tell_copied(self, rows: int) -> None:
        self._controller.told.emit(f"Copied {rows} rows." if rows else "There is no row to copy.", "info")

    def exportables(self) -> list[Exportable]:
        """The chart beside the table in front."""
        return self.tables.exportables() if self.trace is not None else []

    def copy_rows(self) -> int:
        """Copy the table in front; returns how many rows."""
        return self.tables.copy_rows()

    # ---------------------------------------------------------------------------------------------- searching

    def focus_search(self) -> None:
        """Let one type what to search for."""
        self.header.search.setFocus()
        self.header.search.selectAll()

    def _search(self) -> None:
        timeline = self.state.timeline
        words = self.header.search.text().strip()
        self._found = find(timeline, words) if timeline is not None and words else None
        self._show_found()

    def search_step(self, by: int) -> None:
        """Go to the next event found (or the previous one, `by` -1)."""
        if self._search_timer.isActive():
            self._search_timer.stop()
            self._search()
        if self._found is not None:
            self._go(self._found, by)

    def _step_alike(self, by: int) -> None:
        timeline, row = self.state.timeline, self.state.row
        if timeline is not None and row is not None and row >= 0:
            self._go(alike(timeline, row), by)

    def _go(self, found: Found, by: int) -> None:
        axis = self.state.axis
        row = found.step(self.state.row, (axis.start + axis.end) / 2, by)
        if row is not None:
            self.timeline.show_row(row)

    def _show_found(self) -> None:
        found = self._found
        if found is None:
            set_text(self.header.found, "")
            return
        here = found.number_of(self.state.row)
        count = fmt.count(len(found))
        set_text(self.header.found, f"{fmt.count(here + 1)} of {count}" if here is not None else f"{count} found")
