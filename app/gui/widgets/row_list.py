"""A list whose rows are drawn by a function: low rows, the whole text as tool tip, one of them chosen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QAbstractItemView, QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import NOTHING, guarded, guarded_as

Index = QModelIndex | QPersistentModelIndex
RowT = TypeVar("RowT")
_HEIGHT = 20


@dataclass(frozen=True)
class RowTexts:
    """What a row is called, what its tool tip says, and what is read out."""

    title: str
    tip: str
    spoken: str


class RowModel(QAbstractListModel, Generic[RowT]):
    """Rows in their order; `texts` says what each is called."""

    def __init__(self, texts: Callable[[RowT], RowTexts]) -> None:
        super().__init__()
        self._texts = texts
        self.rows: tuple[RowT, ...] = ()

    def show_rows(self, rows: Sequence[RowT]) -> None:
        """Replace what is shown."""
        self.beginResetModel()
        self.rows = tuple(rows)
        self.endResetModel()

    @guarded_as(0)
    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 (Qt's signature)
        return 0 if parent.isValid() else len(self.rows)

    @guarded_as(NOTHING)
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        row = self.rows[index.row()]
        texts = self._texts(row)
        known: dict[int, object] = {
            Qt.ItemDataRole.DisplayRole: texts.title,
            Qt.ItemDataRole.ToolTipRole: texts.tip,
            Qt.ItemDataRole.AccessibleTextRole: texts.spoken,
            Qt.ItemDataRole.UserRole: row,
        }
        return known.get(role)


class _Delegate(QStyledItemDelegate):
    def __init__(self, theme: Theme, paint_row: Callable[[QPainter, Theme, QRect, Any], None]) -> None:
        super().__init__()
        self._theme, self._paint_row = theme, paint_row

    @guarded_as(QSize())
    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(100, _HEIGHT)

    @guarded
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(option.rect, self._theme.color("sel"))
        painter.setFont(self._theme.font(12))
        self._paint_row(painter, self._theme, option.rect, index.data(Qt.ItemDataRole.UserRole))


class RowList(QListView, Generic[RowT]):
    """The list of one model."""

    def __init__(
        self,
        theme: Theme,
        name: str,
        texts: Callable[[RowT], RowTexts],
        paint_row: Callable[[QPainter, Theme, QRect, RowT], None],
    ) -> None:
        super().__init__()
        self.rows: RowModel[RowT] = RowModel(texts)
        self.setModel(self.rows)
        self._delegate = _Delegate(theme, paint_row)
        self.setItemDelegate(self._delegate)
        self.setUniformItemSizes(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(name)
        theme.changed.connect(self.viewport().update)


def paint_elided(painter: QPainter, room: QRect, text: str) -> None:
    """Draw a text in a row, shortened at its end."""
    shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, room.width())
    painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter), shown)
