"""What happened, newest first, with the time on the run's clock."""

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QSize, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QAbstractItemView, QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import NOTHING, guarded, guarded_as
from gptscope.app.viewmodels.experiment_view import Event
from gptscope.app.viewmodels.scales import clock

Index = QModelIndex | QPersistentModelIndex
_ROW = 20
_ICONS = {"warning": ("warning", "warn"), "error": ("error", "bad")}


class EventModel(QAbstractListModel):
    """The events of one experiment, newest first."""

    def __init__(self) -> None:
        super().__init__()
        self._events: list[Event] = []

    def show_events(self, events: list[Event]) -> None:
        """Replace what is shown."""
        self.beginResetModel()
        self._events = events[::-1]
        self.endResetModel()

    @guarded_as(0)
    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 (Qt's signature)
        return 0 if parent.isValid() else len(self._events)

    @guarded_as(NOTHING)
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        event = self._events[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return event.text
        if role == Qt.ItemDataRole.UserRole:
            return event
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{event.level}: {event.text}" if event.level != "info" else event.text
        return None


class _EventDelegate(QStyledItemDelegate):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme

    @guarded_as(QSize())
    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(100, _ROW)

    @guarded
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        event = index.data(Qt.ItemDataRole.UserRole)
        if not isinstance(event, Event):
            return
        theme, box = self._theme, option.rect
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, theme.color("sel"))
        painter.setFont(theme.font(12))
        painter.setPen(theme.color("t3"))
        middle = int(Qt.AlignmentFlag.AlignVCenter)
        painter.drawText(box.adjusted(0, 0, 0, 0), middle, clock(event.at_s) if event.at_s is not None else "")
        left = 44
        if event.level in _ICONS:
            icon, token = _ICONS[event.level]
            painter.drawPixmap(box.left() + left, box.top() + 3, theme.pixmap(icon, token, 14))
            left += 20
            painter.setPen(theme.color(token))
        else:
            painter.setPen(theme.color("t1"))
        room = box.adjusted(left, 0, 0, 0)
        text = painter.fontMetrics().elidedText(event.text, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, middle, text)


class EventList(QListView):
    """The list; the whole sentence is each row's tool tip."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._model = EventModel()
        self._shown = -1
        self.setModel(self._model)
        self._delegate = _EventDelegate(theme)
        self.setItemDelegate(self._delegate)
        self.setUniformItemSizes(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMinimumHeight(84)
        self.setAccessibleName("Events")
        theme.changed.connect(self.viewport().update)

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(240, 96)

    def show_events(self, events: list[Event], revision: int) -> None:
        """Show the events if they changed."""
        if revision != self._shown:
            self._shown = revision
            self._model.show_events(events)
