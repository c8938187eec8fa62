"""The lower half of Trace: one table per analysis behind tabs, with one filter, for the whole trace or the range."""

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from gptscope.app.gui.tables.filter_field import filter_field
from gptscope.app.gui.tables.table_view import TableView
from gptscope.app.gui.tables.total_bar import TotalBar
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.views.trace_diff import TraceDiffPage
from gptscope.app.gui.widgets.basics import ThemedIcons, button, label, set_text
from gptscope.app.gui.widgets.guarded import guarded_as
from gptscope.app.gui.widgets.tab_bar import TabBar
from gptscope.app.viewmodels.tables import Table
from gptscope.app.viewmodels.trace_tables import TABLES
from gptscope.profiling.trace.analysis.diff import Level

HEALTH, DIFFERENCE = "health", "difference"
_MARGIN = 12
_WAITING = Table(columns=(), rows=0, empty="Being computed…")


class ManyTabs(TabBar):
    """Tabs that scroll where there is no room for all."""

    def __init__(self) -> None:
        super().__init__()
        self.setUsesScrollButtons(True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)

    @guarded_as(QSize())
    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.sizeHint().height())


class TraceTables(QWidget):
    """All tables of one trace. `chosen`: table and key of the row that was chosen."""

    chosen = Signal(str, str)
    copied = Signal(int)
    range_wanted = Signal(bool)  # tables of the selected range, or of the whole trace

    def __init__(self, theme: Theme, icons: ThemedIcons) -> None:
        super().__init__()
        self.setProperty("fill", "bg1")
        self.setMinimumHeight(140)
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
                self.stack.addWidget(self.difference)
                continue
            view = self.views[key] = TableView(theme, _title(key))
            view.chosen.connect(lambda row, table=key: self.chosen.emit(table, row))
            page = QWidget()
            inner = QVBoxLayout(page)
            inner.setContentsMargins(0, 0, 0, 0)
            inner.setSpacing(0)
            inner.addWidget(view, 1)
            inner.addWidget(TotalBar(view, theme))
            self.stack.addWidget(page)
        column.addWidget(self.stack, 1)
        self.tabs.currentChanged.connect(self._on_tab)
        self.filter.textChanged.connect(lambda words: self.front().columns.set_filter(words))
        self.show_waiting()

    def _make_bar(self, icons: ThemedIcons) -> QWidget:
        bar = QWidget()
        bar.setProperty("bar", "true")
        bar.setFixedHeight(37)
        row = QHBoxLayout(bar)
        row.setContentsMargins(4, 0, _MARGIN, 0)
        row.setSpacing(8)
        self.tabs = ManyTabs()
        self.tabs.setAccessibleName("Tables of the trace")
        for key in self.keys:
            self.tabs.addTab(_title(key))
        self.tabs.setTabVisible(self.keys.index(DIFFERENCE), False)  # until another trace is compared
        row.addWidget(self.tabs)
        row.addStretch(1)
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
        """Nothing is computed yet."""
        for key, view in self.views.items():
            if key != DIFFERENCE:
                view.show_table(_WAITING)
        self.difference.clear()
        self.tabs.setTabVisible(self.keys.index(DIFFERENCE), False)

    def show_table(self, key: str, table: Table) -> None:
        """Show what was computed."""
        self.views[key].show_table(table)

    def show_tab(self, key: str) -> None:
        """Bring a table to the front."""
        self.tabs.setCurrentIndex(self.keys.index(key))

    def show_difference(self, about: str, tables: dict[Level, Table]) -> None:
        """Show the comparison with another trace."""
        self.difference.show_tables(about, tables)
        self.tabs.setTabVisible(self.keys.index(DIFFERENCE), True)
        self.show_tab(DIFFERENCE)

    def choose(self, keys: dict[str, str]) -> None:
        """Mark the rows that an event counts in; without a whole key the first row that begins with it."""
        for table, key in keys.items():
            view = self.views[table]
            known = view.columns.table.keys
            found = key if key in known else next((one for one in known if one.split("\n")[0] == key), "")
            if found:
                view.choose(found)

    def copy_rows(self) -> int:
        """Copy the chosen rows of the table in front, or all; returns how many."""
        return self.front().copy_rows()

    def show_range(self, text: str) -> None:
        """Say what the tables are about."""
        set_text(self.unit, text)

    def _on_tab(self, index: int) -> None:
        self.stack.setCurrentIndex(index)
        self.filter.setPlaceholderText(f"Filter {self.tabs.tabText(index).lower()}")
        self.front().columns.set_filter(self.filter.text())


def _title(key: str) -> str:
    return TABLES[key].title if key in TABLES else key.capitalize()
