"""The evaluation prompts: how each went, and at which token the texts part."""

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QPainter

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.row_list import RowList, RowTexts, paint_elided
from gptscope.app.viewmodels.quality_text import LOOKS, PromptLine

_PLACE = 46


def _texts(line: PromptLine) -> RowTexts:
    return RowTexts(title=line.title, tip=line.spoken, spoken=line.spoken)


def _paint(painter: QPainter, theme: Theme, box: QRect, line: PromptLine) -> None:
    icon, tone = LOOKS[line.outcome]
    painter.drawPixmap(box.left() + 8, box.top() + 3, theme.pixmap(icon, tone, 14))
    painter.setPen(theme.color("t1"))
    paint_elided(painter, box.adjusted(28, 0, -_PLACE - 8, 0), line.title)
    painter.setPen(theme.color("t2" if line.outcome == "equal" else tone))
    flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
    painter.drawText(box.adjusted(0, 0, -8, 0), int(flags), line.place)


class PromptList(RowList[PromptLine]):
    """Choosing a row shows that prompt."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Prompts", _texts, _paint)
        self.setFixedWidth(232)

    def show_lines(self, lines: tuple[PromptLine, ...], chosen: int) -> None:
        """Show the prompts with one chosen."""
        self.rows.show_rows(lines)
        if lines:
            self.setCurrentIndex(self.rows.index(chosen))
