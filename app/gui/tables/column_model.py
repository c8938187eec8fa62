"""The item model of every table: sorts and filters by index, makes texts only for cells that are drawn."""

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

from gptscope.app.gui.widgets.guarded import NOTHING, guarded, guarded_as
from gptscope.app.viewmodels.tables import Table, filtered_footer, filtered_rows, sorted_rows
from gptscope.profiling.printable import printable

Index = QModelIndex | QPersistentModelIndex
CATEGORY_ROLE = Qt.ItemDataRole.UserRole + 1
FRACTION_ROLE = Qt.ItemDataRole.UserRole + 2
TONE_ROLE = Qt.ItemDataRole.UserRole + 3
_NOWHERE = QModelIndex()
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class ColumnModel(QAbstractTableModel):
    """Shows one `Table`."""

    def __init__(self) -> None:
        super().__init__()
        self._table = Table(columns=(), rows=0)
        self._rows = np.zeros(0, np.int64)
        self._words = ""
        self._sort: tuple[int, bool] = (0, False)

    @property
    def table(self) -> Table:
        """What is shown."""
        return self._table

    def show_table(self, table: Table) -> None:
        """Show another table, keeping filter and (when the columns are the same) sorting."""
        same = [c.title for c in table.columns] == [c.title for c in self._table.columns]
        self.beginResetModel()
        self._table = table
        if not same and table.columns:
            self._sort = (table.default_sort, table.columns[table.default_sort].numeric)
        self._arrange()
        self.endResetModel()

    def _arrange(self) -> None:
        rows = filtered_rows(self._table, self._words)
        if self._table.columns and self._table.sortable and rows.size:
            rows = sorted_rows(self._table, self._sort[0], rows, descending=self._sort[1])
        self._rows = rows

    @property
    def footer(self) -> tuple[str, ...]:
        """The row below: of the whole table, or of what a filter leaves."""
        return filtered_footer(self._table, self._rows)

    @property
    def sorting(self) -> tuple[int, bool]:
        """Column and whether descending."""
        return self._sort

    def is_strong(self, column: int) -> bool:
        """Whether a column is drawn in semibold: where a number is, the one that the rows are sorted by."""
        columns, by = self._table.columns, self._sort[0]
        follows = any(one.strong and one.numeric for one in columns)
        if follows and self._table.sortable and columns[by].numeric:
            return column == by
        return columns[column].strong

    def set_filter(self, words: str) -> None:
        """Keep only rows that hold every word."""
        if words != self._words:
            self.beginResetModel()
            self._words = words
            self._arrange()
            self.endResetModel()

    @guarded
    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        if not 0 <= column < len(self._table.columns):
            return
        self.layoutAboutToBeChanged.emit()
        before = self.persistentIndexList()
        kept = [(int(self._rows[index.row()]), index.column()) for index in before]
        self._sort = (column, order == Qt.SortOrder.DescendingOrder)
        self._arrange()
        if before:
            place = {int(row): number for number, row in enumerate(self._rows.tolist())}
            after = [self.index(place[row], col) for row, col in kept]
            self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self._table.columns) - 1)

    def source_row(self, row: int) -> int:
        """The table's row behind a shown row."""
        return int(self._rows[row])

    def shown_row(self, key: str) -> int | None:
        """Where the row with this key is shown; None when it is not."""
        if key not in self._table.keys:
            return None
        source = list(self._table.keys).index(key)
        found = np.flatnonzero(self._rows == source)
        return int(found[0]) if found.size else None

    def key(self, row: int) -> str:
        """Identity of a shown row."""
        return self._table.keys[self.source_row(row)] if self._table.keys else ""

    @guarded_as(0)
    def rowCount(self, parent: Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else int(self._rows.size)

    @guarded_as(0)
    def columnCount(self, parent: Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._table.columns)

    @guarded_as(NOTHING)
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        row, column = self.source_row(index.row()), self._table.columns[index.column()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return printable(column.text(row))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(_RIGHT if column.look == "number" else _LEFT)
        if role == CATEGORY_ROLE and index.column() == 0 and self._table.categories:
            return self._table.categories[row]
        if role == FRACTION_ROLE and column.look == "bar":
            return float(column.values[row])
        if role == TONE_ROLE:
            return column.tone(row) if column.tone is not None else ("strong" if self.is_strong(index.column()) else "")
        return None

    @guarded_as(NOTHING)
    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self._table.columns):
            return None
        column = self._table.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            sorts = self._table.sortable and section == self._sort[0]
            arrow = "" if not sorts else " ↓" if self._sort[1] else " ↑"
            return column.title + arrow
        if role == Qt.ItemDataRole.ToolTipRole:
            return column.tip or None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(_RIGHT if column.look == "number" else _LEFT)
        return None
