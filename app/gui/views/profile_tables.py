"""The lower half of Profile: kernel, operator and module tables behind tabs, with one filter and one copy button."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from gptscope.app.gui.tables.filter_field import filter_field
from gptscope.app.gui.tables.table_view import TableView
from gptscope.app.gui.tables.total_bar import TotalBar
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import ThemedIcons, button, label
from gptscope.app.gui.widgets.tab_bar import TabBar

_MARGIN = 12


class ProfileTables(QWidget):
    """Three tables of one profile. Which row is chosen in which is the owner's business."""

    copied = Signal(int)  # rows, by the button

    def __init__(self, theme: Theme, icons: ThemedIcons) -> None:
        super().__init__()
        self.setProperty("fill", "bg1")
        self.setMinimumHeight(180)
        self.kernels, self.operators = TableView(theme, "Kernels"), TableView(theme, "Operators")
        self.modules = TableView(theme, "Modules")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._make_bar(icons))
        self.stack = QStackedWidget()
        for table in (self.kernels, self.operators, self.modules):
            page = QWidget()
            inner = QVBoxLayout(page)
            inner.setContentsMargins(0, 0, 0, 0)
            inner.setSpacing(0)
            inner.addWidget(table, 1)
            inner.addWidget(TotalBar(table, theme))
            self.stack.addWidget(page)
        column.addWidget(self.stack, 1)
        self.tabs.currentChanged.connect(self._on_tab)
        self.filter.textChanged.connect(lambda words: self.front().columns.set_filter(words))

    def _make_bar(self, icons: ThemedIcons) -> QWidget:
        bar = QWidget()
        bar.setProperty("bar", "true")
        bar.setFixedHeight(37)
        row = QHBoxLayout(bar)
        row.setContentsMargins(4, 0, _MARGIN, 0)
        row.setSpacing(8)
        self.tabs = TabBar()
        self.tabs.setAccessibleName("Tables")
        for name in ("Kernels", "Operators", "Modules"):
            self.tabs.addTab(name)
        row.addWidget(self.tabs)
        row.addStretch(1)
        self.unit = label("", level=3, size=12)
        row.addWidget(self.unit)
        self.filter = filter_field("Filter rows", width=220)
        row.addWidget(self.filter)
        copy = button("", lambda: self.copied.emit(self.copy_rows()), kind="flat", tip="Copy rows", name="Copy rows")
        icons.on_button(copy, "copy")
        row.addWidget(copy)
        return bar

    def front(self) -> TableView:
        """The table in front."""
        return (self.kernels, self.operators, self.modules)[self.stack.currentIndex()]

    def copy_rows(self) -> int:
        """Copy the chosen rows of the table in front, or all; returns how many."""
        return self.front().copy_rows()

    def filter_kernels(self, words: str) -> None:
        """Show the kernels that hold these words."""
        self.tabs.setCurrentIndex(0)
        self.filter.setText(words)

    def _on_tab(self, index: int) -> None:
        self.stack.setCurrentIndex(index)
        self.filter.setPlaceholderText(f"Filter {self.tabs.tabText(index).lower()}")
        self.front().columns.set_filter(self.filter.text())
