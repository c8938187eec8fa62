"""The table all views share: sort by header, copy rows, swatches and bars, a total row, a sentence when empty."""

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPersistentModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QFontMetrics,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
)

from gptscope.app.gui.tables.column_model import CATEGORY_ROLE, FRACTION_ROLE, TONE_ROLE, ColumnModel
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded
from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.tables import Table, as_tsv

_PADDING = 8


class CellDelegate(QStyledItemDelegate):
    """Draws a cell: swatch, text, share bar, tone."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._plain, self._strong = theme.font(12), theme.font(12, bold=True)

    @guarded
    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        theme, box = self._theme, option.rect
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, theme.color("sel"))
        painter.setPen(theme.pen("grid"))
        painter.drawLine(box.left(), box.bottom(), box.right(), box.bottom())
        inner = box.adjusted(_PADDING, 0, -_PADDING, 0)
        category, elide = index.data(CATEGORY_ROLE), Qt.TextElideMode.ElideRight
        if isinstance(category, str):
            painter.fillRect(QRectF(inner.left(), box.center().y() - 3, 8, 8), theme.category(category))
            inner.setLeft(inner.left() + 16)
            elide = Qt.TextElideMode.ElideMiddle  # names of operators and kernels often differ at their ends only
        fraction = index.data(FRACTION_ROLE)
        if isinstance(fraction, float):
            track = QRectF(inner.left(), box.center().y() - 3, max(inner.width() - 56, 10), 8)
            painter.fillRect(track, theme.color("bg4", 0.6))
            row_category = index.sibling(index.row(), 0).data(CATEGORY_ROLE)
            colour = theme.category(row_category) if isinstance(row_category, str) else theme.color("base")
            painter.fillRect(QRectF(track.left(), track.top(), track.width() * min(max(fraction, 0.0), 1.0), 8), colour)
            inner.setLeft(round(track.right()) + 8)
        tone = index.data(TONE_ROLE)
        painter.setFont(self._strong if tone == "strong" else self._plain)
        token = {"good": "good", "bad": "bad", "strong": "t1"}.get(str(tone), "t1" if index.column() == 0 else "t2")
        painter.setPen(theme.color(token))
        text = str(index.data(Qt.ItemDataRole.DisplayRole) or "")
        text = QFontMetrics(painter.font()).elidedText(text, elide, max(inner.width(), 4))
        alignment = index.data(Qt.ItemDataRole.TextAlignmentRole)
        painter.drawText(inner, alignment if isinstance(alignment, int) else 0, text)


class TableView(QTableView):
    """One `Table`. `chosen` carries the key of the row that was clicked or reached by keyboard."""

    chosen = Signal(str)
    opened = Signal(str)  # double-click or Enter

    def __init__(self, theme: Theme, name: str, *, row_height: int = 20) -> None:
        super().__init__()
        self._theme = theme
        self.columns = ColumnModel()
        self._widths_for: tuple[tuple[str, int], ...] = ()
        self._total_metrics = QFontMetrics(theme.font(12, bold=True))
        self.setModel(self.columns)
        self.setAccessibleName(name)
        self._delegate = CellDelegate(theme)
        self.setItemDelegate(self._delegate)
        self.setShowGrid(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        vertical = self.verticalHeader()
        vertical.hide()
        vertical.setMinimumSectionSize(row_height)
        vertical.setDefaultSectionSize(row_height)
        vertical.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header = self.horizontalHeader()
        header.setFixedHeight(24)
        header.setHighlightSections(False)
        header.setSectionsMovable(True)
        header.setSectionsClickable(True)
        header.setSortIndicatorShown(False)  # the arrow stands in the title, where it covers nothing
        header.setMinimumSectionSize(40)
        header.sectionClicked.connect(self.sort_by)
        self.selectionModel().currentRowChanged.connect(self._on_current)
        self.doubleClicked.connect(lambda index: self.opened.emit(self.columns.key(index.row())))
        theme.changed.connect(self.viewport().update)

    def show_table(self, table: Table) -> None:
        """Show another table; the chosen row stays chosen when it is still there."""
        kept = self.chosen_key()
        self.columns.show_table(table)
        wanted = tuple((column.title, self._width(place)) for place, column in enumerate(table.columns))
        if wanted != self._widths_for:
            self._widths_for = wanted
            self._fit()
        if kept:
            self.choose(kept)
        self.viewport().update()

    def sort_by(self, column: int) -> None:
        """Sort by a column; once more turns it round. Numbers begin with the largest."""
        if not self.columns.table.sortable:
            return
        current, descending = self.columns.sorting
        numeric = self.columns.table.columns[column].numeric
        down = not descending if column == current else numeric
        self.columns.sort(column, Qt.SortOrder.DescendingOrder if down else Qt.SortOrder.AscendingOrder)

    def _fit(self) -> None:
        """Columns as wide as they ask for; what is left goes to the stretching one."""
        columns = self.columns.table.columns
        if not columns:
            return
        widths = [self._width(place) for place in range(len(columns))]
        spare = self.viewport().width() - sum(widths)
        for index, column in enumerate(columns):
            extra = spare if column.stretch and spare > 0 else 0
            self.setColumnWidth(index, widths[index] + extra)

    def _width(self, place: int) -> int:
        """What a column asks for, and numbers never less than their total needs."""
        table = self.columns.table
        column = table.columns[place]
        total = table.footer[place] if table.footer and column.look == "number" else ""
        return max(column.width, self._total_metrics.horizontalAdvance(total) + 2 * _PADDING + 2 if total else 0)

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    @guarded
    def focusInEvent(self, event: QFocusEvent) -> None:
        """Only passing by chooses nothing: Qt would go to the first row."""
        model = self.selectionModel()
        if self.currentIndex().isValid():
            super().focusInEvent(event)
            return
        model.blockSignals(True)
        super().focusInEvent(event)
        model.setCurrentIndex(QModelIndex(), QItemSelectionModel.SelectionFlag.NoUpdate)
        model.blockSignals(False)

    def chosen_key(self) -> str:
        """Key of the current row, empty when there is none."""
        index = self.currentIndex()
        return self.columns.key(index.row()) if index.isValid() else ""

    def selected_keys(self) -> list[str]:
        """Keys of all selected rows, from top to bottom."""
        return [self.columns.key(row) for row in sorted({i.row() for i in self.selectionModel().selectedRows()})]

    def choose(self, key: str) -> None:
        """Select the row with this key, if it is shown."""
        row = self.columns.shown_row(key)
        if row is not None and (not self.currentIndex().isValid() or self.currentIndex().row() != row):
            self.selectionModel().blockSignals(True)
            self.selectRow(row)
            self.selectionModel().blockSignals(False)
            self.scrollTo(self.columns.index(row, 0))
            self.viewport().update()

    def _on_current(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid():
            self.chosen.emit(self.columns.key(current.row()))

    @guarded
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_rows()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self.opened.emit(self.chosen_key())
        else:
            super().keyPressEvent(event)

    def copy_rows(self) -> int:
        """Put the selected rows (or all) on the clipboard; returns how many."""
        shown = sorted({index.row() for index in self.selectionModel().selectedRows()})
        shown = shown or list(range(self.columns.rowCount()))
        rows = [self.columns.source_row(row) for row in shown]
        if rows:
            QGuiApplication.clipboard().setText(as_tsv(self.columns.table, rows))
        return len(rows)

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.columns.rowCount() == 0:
            painter = QPainter(self.viewport())
            painter.setFont(self._theme.font(12))
            painter.setPen(self._theme.color("t3"))
            text = self.columns.table.empty if not self.columns.table.rows else "No row matches the filter."
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.viewport().rect().adjusted(16, 8, -16, -8), int(flags), fmt.unbroken(text))
            painter.end()
