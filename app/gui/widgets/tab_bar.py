"""A tab bar whose tabs keep their width when the chosen one turns bold."""

from PySide6.QtCore import QSize
from PySide6.QtGui import QFont, QFontMetrics
from PySide6.QtWidgets import QSizePolicy, QTabBar

from gptscope.app.gui.widgets.guarded import guarded, guarded_as

_PADDING = 30


class TabBar(QTabBar):
    """Flat, not expanding, without scroll buttons."""

    def __init__(self) -> None:
        super().__init__()
        self.setExpanding(False)
        self.setDrawBase(False)
        self.setUsesScrollButtons(False)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)

    def setTabVisible(self, index: int, visible: bool) -> None:
        """Qt forgets to lay out a tab that is shown twice in a row before it was painted."""
        if visible != self.isTabVisible(index):
            super().setTabVisible(index, visible)
            self.updateGeometry()

    @guarded
    def tabLayoutChange(self) -> None:
        """A tab was shown, hidden or renamed: ask for the new width."""
        self.updateGeometry()

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        """As wide as the visible tabs: Qt's own hint is too small once a tab has been hidden and shown."""
        sizes = [self.tabSizeHint(index) for index in range(self.count()) if self.isTabVisible(index)]
        return QSize(sum(size.width() for size in sizes), max((size.height() for size in sizes), default=0))

    @guarded_as(QSize())
    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    @guarded_as(QSize())
    def tabSizeHint(self, index: int) -> QSize:
        font = QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)
        width = QFontMetrics(font).horizontalAdvance(self.tabText(index)) + _PADDING
        return QSize(width, super().tabSizeHint(index).height())
