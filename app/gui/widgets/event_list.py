"""What happened, newest first, with the time on the run's clock."""

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QPainter

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded_as
from gptscope.app.gui.widgets.row_list import RowList, RowTexts, paint_elided
from gptscope.app.viewmodels.experiment_view import Event
from gptscope.app.viewmodels.scales import clock

_ICONS = {"warning": ("warning", "warn"), "error": ("error", "bad")}


def _texts(event: Event) -> RowTexts:
    """The whole sentence is its tool tip."""
    spoken = f"{event.level}: {event.text}" if event.level != "info" else event.text
    return RowTexts(title=event.text, tip=event.text, spoken=spoken)


def _paint(painter: QPainter, theme: Theme, box: QRect, event: Event) -> None:
    painter.setPen(theme.color("t3"))
    at = clock(event.at_s) if event.at_s is not None else ""
    painter.drawText(box, int(Qt.AlignmentFlag.AlignVCenter), at)
    left = 44
    icon, token = _ICONS.get(event.level, ("", "t1"))
    if icon:
        painter.drawPixmap(box.left() + left, box.top() + 3, theme.pixmap(icon, token, 14))
        left += 20
    painter.setPen(theme.color(token))
    paint_elided(painter, box.adjusted(left, 0, 0, 0), event.text)


class EventList(RowList[Event]):
    """The events of one experiment."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Events", _texts, _paint)
        self._shown = -1
        self.setMinimumHeight(84)

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(240, 96)

    def show_events(self, events: list[Event], revision: int) -> None:
        """Show the events, newest first, if they changed."""
        if revision != self._shown:
            self._shown = revision
            self.rows.show_rows(events[::-1])
