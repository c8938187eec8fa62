"""The Difference tab of Trace: the opened trace beside another one, by kernel, category, operator, module or step."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gptscope.app.gui.tables.table_view import TableView
from gptscope.app.gui.tables.total_bar import TotalBar
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import ElidedLabel, set_text
from gptscope.app.gui.widgets.segmented import Segment, Segmented
from gptscope.app.viewmodels.tables import Table
from gptscope.app.viewmodels.trace_diff import LEVEL_TITLES, DiffPage
from gptscope.profiling.trace.analysis.diff import Level

_NOTHING = Table(columns=(), rows=0, empty="Choose “Compare with another trace…” in the Trace menu.")


class TraceDiffPage(QWidget):
    """A choice of levels over one table. `shown`: another table is shown."""

    shown = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._pages: dict[Level, DiffPage] = {}
        self._about = ""
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        bar = QWidget()
        bar.setFixedHeight(36)
        row = QHBoxLayout(bar)
        row.setContentsMargins(12, 0, 12, 0)
        row.setSpacing(12)
        self.levels = Segmented("What is compared")
        self.levels.set_segments([Segment(name, title) for name, title in LEVEL_TITLES.items()])
        self.levels.setFixedWidth(420)
        self.levels.choose("kernel")
        self.levels.chosen.connect(lambda _level: self._show())
        self.about = ElidedLabel("", level=2, size=12)
        row.addWidget(self.levels)
        row.addWidget(self.about, 1)
        column.addWidget(bar)
        self.table = TableView(theme, "Difference")
        column.addWidget(self.table, 1)
        column.addWidget(TotalBar(self.table, theme))
        self.table.show_table(_NOTHING)

    def show_pages(self, about: str, pages: dict[Level, DiffPage]) -> None:
        """Show a comparison."""
        self._pages, self._about = pages, about
        self._show()

    def clear(self) -> None:
        """Nothing is compared."""
        self._pages, self._about = {}, ""
        self._show()

    def comparing(self) -> bool:
        """Whether there is anything to compare."""
        return bool(self._pages)

    def page(self) -> DiffPage | None:
        """The comparison on the chosen level."""
        chosen = self.levels.value()
        return next((page for level, page in self._pages.items() if level == chosen), None)

    def _show(self) -> None:
        page = self.page()
        notes = page.about if page is not None else ""
        set_text(self.about, f"{self._about}. {notes}" if notes else self._about)
        self.table.show_table(page.table if page is not None else _NOTHING)
        self.shown.emit()
