"""The lower half of Trace: per analysis a table and its chart behind a tab, for the whole trace or the range."""

from collections.abc import Callable, Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from gptscope.app.gui.charts.exporting import Exportable
from gptscope.app.gui.tables.filter_field import filter_field
from gptscope.app.gui.tables.table_view import TableView
from gptscope.app.gui.tables.total_bar import TotalBar
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.views.trace_chart import WAITING as CHART_WAITING
from gptscope.app.gui.views.trace_chart import TraceChartPanel
from gptscope.app.gui.views.trace_diff import TraceDiffPage
from gptscope.app.gui.widgets.basics import ThemedIcons, button, label, set_text
from gptscope.app.gui.widgets.folding_tabs import FoldingTabs
from gptscope.app.viewmodels.tables import Table
from gptscope.app.viewmodels.trace_diff import DiffPage, changes
from gptscope.app.viewmodels.trace_page import TraceChart, TracePage
from gptscope.app.viewmodels.trace_tables import TABLES
from gptscope.profiling.trace.analysis.diff import Level

HEALTH, DIFFERENCE = "health", "difference"
_MARGIN = 12
_TABLE_SHARE, _CHART_SHARE = 64, 36
_SENTENCES = {"advice": 1, HEALTH: 1, "gaps": 7}
"""Table -> place of its column of sentences."""
_WAITING = Table(columns=(), rows=0, empty="Being computed…")


class TraceTables(QWidget):
    """All tables and charts of one trace. `chosen`: table and key of what was chosen in either."""

    chosen = Signal(str, str)
    copied = Signal(int)
    range_wanted = Signal(bool)  # tables of the selected range, or of the whole trace

    def __init__(self, theme: Theme, icons: ThemedIcons, export: Callable[[Exportable, str], object]) -> None:
        super().__init__()
        self.setProperty("fill", "bg1")
        self.setMinimumHeight(140)
        self._charts: dict[str, TraceChart] = {}
        self._places: dict[str, Mapping[str, tuple[int, int]]] = {}
        self._pages: dict[str, TracePage] = {}
        self.keys = (*TABLES, HEALTH, DIFFERENCE)
        self.views: dict[str, TableView] = {}
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._make_bar(icons))
        self.stack = QStackedWidget()
        self.difference = TraceDiffPage(theme)
        for key in self.keys:
            if key == DIFFERENCE:
                self.views[key] = self.difference.table
                self.difference.table.chosen.connect(lambda row: self._on_row(DIFFERENCE, row))
                self.stack.addWidget(self.difference)
                continue
            view = self.views[key] = TableView(theme, _title(key))
            view.chosen.connect(lambda row, table=key: self._on_row(table, row))
            page = QWidget()
            inner = QVBoxLayout(page)
            inner.setContentsMargins(0, 0, 0, 0)
            inner.setSpacing(0)
            inner.addWidget(view, 1)
            inner.addWidget(TotalBar(view, theme))
            self.stack.addWidget(page)
        self.chart = TraceChartPanel(theme, icons, export)
        self.chart.clicked.connect(self._on_chart)
        self.difference.shown.connect(self._on_difference)
        column.addWidget(self._make_halves(), 1)
        self.tabs.chosen.connect(self._on_tab)
        self.filter.textChanged.connect(lambda words: self.front().columns.set_filter(words))
        self.show_waiting()

    def _make_halves(self) -> QSplitter:
        halves = QSplitter(Qt.Orientation.Horizontal)
        halves.setChildrenCollapsible(False)
        self.stack.setMinimumWidth(320)
        halves.addWidget(self.stack)
        halves.addWidget(self.chart)
        halves.setStretchFactor(0, _TABLE_SHARE)
        halves.setStretchFactor(1, _CHART_SHARE)
        halves.setSizes([1000 * _TABLE_SHARE, 1000 * _CHART_SHARE])
        return halves

    def _make_bar(self, icons: ThemedIcons) -> QWidget:
        bar = QWidget()
        bar.setProperty("bar", "true")
        bar.setFixedHeight(37)
        row = QHBoxLayout(bar)
        row.setContentsMargins(4, 0, _MARGIN, 0)
        row.setSpacing(8)
        self.tabs = FoldingTabs([_title(key) for key in self.keys], "Tables of the trace", icons)
        self.tabs.offer(self.keys.index(DIFFERENCE), offered=False)  # until another trace is compared
        row.addWidget(self.tabs, 1)
        self.unit = label("", level=3, size=12)
        row.addWidget(self.unit)
        self.range_button = button(
            "Range only",
            lambda: self.range_wanted.emit(self.range_button.isChecked()),
            kind="tool",
            tip="Tables of the selected range only; drag over the timeline to select one",
        )
        self.range_button.setCheckable(True)
        self.range_button.setEnabled(False)
        row.addWidget(self.range_button)
        self.shape_button = button(
            "By shape", self._on_shape, kind="tool", tip="One row for each shape of the inputs, not for each name"
        )
        self.shape_button.setCheckable(True)
        row.addWidget(self.shape_button)
        self.chart_button = button("Chart", self._show_chart, kind="tool", tip="The chart beside the table")
        self.chart_button.setCheckable(True)
        self.chart_button.setChecked(True)
        row.addWidget(self.chart_button)
        self.filter = filter_field("Filter rows of the trace", width=150)
        row.addWidget(self.filter)
        copy = button("", lambda: self.copied.emit(self.copy_rows()), kind="flat", tip="Copy rows", name="Copy rows")
        icons.on_button(copy, "copy")
        row.addWidget(copy)
        return bar

    def front(self) -> TableView:
        """The table in front."""
        return self.views[self.front_key()]

    def front_key(self) -> str:
        """Which table is in front."""
        return self.keys[self.stack.currentIndex()]

    def show_waiting(self) -> None:
        """Nothing is computed yet: another trace begins on the first tab, with all rows."""
        self.filter.clear()
        self.show_tab(self.keys[0])
        for key, view in self.views.items():
            if key != DIFFERENCE:
                view.show_table(_WAITING)
                self._charts[key] = CHART_WAITING
        del self._charts[HEALTH]
        self._places.clear()
        self._pages.clear()
        self.shape_button.setChecked(False)
        self.shape_button.hide()
        self.difference.clear()
        self.tabs.offer(self.keys.index(DIFFERENCE), offered=False)
        self._show_chart()

    def show_table(self, key: str, table: Table) -> None:
        """Show what was computed."""
        self.views[key].show_table(table)

    def show_page(self, key: str, page: TracePage) -> None:
        """Show a table and its chart; by shape where that is chosen and can be."""
        self._pages[key] = page
        if page.by_shape is not None and self.shape_button.isChecked():
            page = page.by_shape
        self.show_table(key, page.table)
        self._places[key] = page.places
        if page.chart is None:
            self._charts.pop(key, None)
        else:
            self._charts[key] = page.chart
        if key == self.front_key():
            self._show_shape_button()
            self._show_chart()

    def by_shape(self, key: str) -> bool:
        """Whether a table's rows are told apart by shapes now."""
        page = self._pages.get(key)
        return page is not None and page.by_shape is not None and self.shape_button.isChecked()

    def switch_shapes(self) -> bool:
        """Show the operators, by shape instead of by name or the other way round; whether that can be."""
        self.show_tab("operators")
        if self.shape_button.isHidden():
            return False
        self.shape_button.click()
        return True

    def _on_shape(self) -> None:
        for key, page in self._pages.items():
            if page.by_shape is not None:
                self.show_page(key, page)

    def _show_shape_button(self) -> None:
        page = self._pages.get(self.front_key())
        self.shape_button.setVisible(page is not None and page.by_shape is not None)

    def place_of(self, table: str, key: str) -> tuple[int, int] | None:
        """From when to when a row leads, where its table knows that."""
        return self._places.get(table, {}).get(key)

    def sentence_of(self, table: str) -> str:
        """The whole sentence of the chosen row, where a table has sentences, which its cells may cut off."""
        index = self.views[table].currentIndex()
        if table not in _SENTENCES or not index.isValid():
            return ""
        return str(index.siblingAtColumn(_SENTENCES[table]).data())

    def show_tab(self, key: str) -> None:
        """Bring a table to the front."""
        self.tabs.choose(self.keys.index(key))

    def show_difference(self, about: str, pages: dict[Level, DiffPage]) -> None:
        """Show the comparison with another trace."""
        self.difference.show_pages(about, pages)
        self.tabs.offer(self.keys.index(DIFFERENCE), offered=True)
        self.show_tab(DIFFERENCE)

    def choose(self, keys: dict[str, str]) -> None:
        """Mark the rows that an event counts in; without a whole key the first row that begins with it."""
        for table, key in keys.items():
            view = self.views[table]
            known = view.columns.table.keys
            found = key if key in known else next((one for one in known if one.split("\n")[0] == key), "")
            if found:
                view.choose(found)
        self.chart.mark(self.front().chosen_key())

    def copy_rows(self) -> int:
        """Copy the chosen rows of the table in front, or all; returns how many."""
        return self.front().copy_rows()

    def show_range(self, text: str) -> None:
        """Say what the tables are about."""
        set_text(self.unit, text)

    def _on_row(self, table: str, key: str) -> None:
        if table == self.front_key():
            self.chart.mark(key)
        self.chosen.emit(table, key)

    def _on_chart(self, key: str) -> None:
        """A part of the chart is a row of the table; what is no row still leads to the timeline."""
        self.front().choose(key)
        self._on_row(self.front_key(), key)

    def _on_difference(self) -> None:
        self._charts.pop(DIFFERENCE, None)
        if self.difference.comparing():
            self._charts[DIFFERENCE] = changes(self.difference.table.columns.table)
        self._show_chart()

    def _show_chart(self) -> None:
        shown = self._charts.get(self.front_key())
        self.chart_button.setEnabled(shown is not None)
        self.chart.setVisible(shown is not None and self.chart_button.isChecked())
        if shown is not None:
            self.chart.show_chart(shown, self.front().chosen_key())

    def exportables(self) -> list[Exportable]:
        """The chart that is shown."""
        return [] if self.chart.isHidden() or self.chart.shown.chart.empty else [self.chart.exportable()]

    def _on_tab(self, index: int) -> None:
        self.stack.setCurrentIndex(index)
        self.filter.setPlaceholderText(f"Filter {self.tabs.title(index).lower()}")
        self.front().columns.set_filter(self.filter.text())
        self._show_shape_button()
        self._show_chart()


def _title(key: str) -> str:
    return TABLES[key].title if key in TABLES else key.capitalize()
