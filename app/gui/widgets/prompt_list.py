"""The evaluation prompts: how each went, and at which token the texts part."""

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QSize, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QAbstractItemView, QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import NOTHING, guarded, guarded_as
from gptscope.app.viewmodels.quality_text import LOOKS, PromptLine

Index = QModelIndex | QPersistentModelIndex
_ROW = 20
_PLACE = 46


class PromptModel(QAbstractListModel):
    """One row per prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: tuple[PromptLine, ...] = ()

    def show_lines(self, lines: tuple[PromptLine, ...]) -> None:
        """Replace what is shown."""
        self.beginResetModel()
        self.lines = lines
        self.endResetModel()

    @guarded_as(0)
    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 (Qt's signature)
        return 0 if parent.isValid() else len(self.lines)

    @guarded_as(NOTHING)
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        line = self.lines[index.row()]
        texts: dict[int, object] = {
            Qt.ItemDataRole.DisplayRole: line.title,
            Qt.ItemDataRole.ToolTipRole: line.spoken,
            Qt.ItemDataRole.AccessibleTextRole: line.spoken,
            Qt.ItemDataRole.UserRole: line,
        }
        return texts.get(role)


class _PromptDelegate(QStyledItemDelegate):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme

    @guarded_as(QSize())
    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(100, _ROW)

    @guarded
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        line = index.data(Qt.ItemDataRole.UserRole)
        if not isinstance(line, PromptLine):
            return
        theme, box = self._theme, option.rect
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, theme.color("sel"))
        icon, tone = LOOKS[line.outcome]
        painter.drawPixmap(box.left() + 8, box.top() + 3, theme.pixmap(icon, tone, 14))
        painter.setFont(theme.font(12))
        painter.setPen(theme.color("t1"))
        middle = int(Qt.AlignmentFlag.AlignVCenter)
        room = box.adjusted(28, 0, -_PLACE - 8, 0)
        text = painter.fontMetrics().elidedText(line.title, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, middle, text)
        painter.setPen(theme.color("t2" if line.outcome == "equal" else tone))
        painter.drawText(box.adjusted(0, 0, -8, 0), middle | int(Qt.AlignmentFlag.AlignRight), line.place)


class PromptList(QListView):
    """Choosing a row shows that prompt."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._model = PromptModel()
        self.setModel(self._model)
        self._delegate = _PromptDelegate(theme)
        self.setItemDelegate(self._delegate)
        self.setUniformItemSizes(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFixedWidth(232)
        self.setAccessibleName("Prompts")
        theme.changed.connect(self.viewport().update)

    def show_lines(self, lines: tuple[PromptLine, ...], chosen: int) -> None:
        """Show the prompts with one chosen."""
        self._model.show_lines(lines)
        if lines:
            self.setCurrentIndex(self._model.index(chosen))
