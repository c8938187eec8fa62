"""Tabs in a row; those without room move into a menu behind a button, and come out of it when they are chosen."""

from functools import partial

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QSizePolicy, QWidget

from gptscope.app.gui.widgets.basics import ThemedIcons, button
from gptscope.app.gui.widgets.guarded import guarded, guarded_as
from gptscope.app.gui.widgets.tab_bar import TabBar


class FoldingTabs(QWidget):
    """Takes the width it is given. Tabs keep their numbers whether they are folded away or not."""

    chosen = Signal(int)

    def __init__(self, titles: list[str], name: str, icons: ThemedIcons) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        self.bar = TabBar()
        self.bar.setAccessibleName(name)
        for title in titles:
            self.bar.addTab(title)
        self._offered = [True] * len(titles)
        self.more = button("More", self._open_menu, kind="tool", tip="The tabs that have no room here")
        icons.on_button(self.more, "chevron-down", "t2", 12)
        row.addWidget(self.bar)
        row.addWidget(self.more)
        row.addStretch(1)
        self.bar.currentChanged.connect(self._on_current)

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(self.bar.sizeHint().width() + self.more.sizeHint().width(), self.bar.sizeHint().height())

    @guarded_as(QSize())
    def minimumSizeHint(self) -> QSize:
        return QSize(220, self.bar.sizeHint().height())

    def current(self) -> int:
        """Number of the chosen tab."""
        return self.bar.currentIndex()

    def choose(self, number: int) -> None:
        """Bring a tab to the front, out of the menu if it is there."""
        self.bar.setTabVisible(number, True)
        self.bar.setCurrentIndex(number)

    def title(self, number: int) -> str:
        """What a tab is called."""
        return self.bar.tabText(number)

    def offer(self, number: int, *, offered: bool) -> None:
        """Whether there is such a tab at all."""
        if self._offered[number] != offered:
            self._offered[number] = offered
            self._fold()

    def offered(self) -> list[int]:
        """Tabs that there are, shown or behind the button."""
        return [number for number, offered in enumerate(self._offered) if offered]

    def folded(self) -> list[int]:
        """Tabs behind the button."""
        return [i for i, offered in enumerate(self._offered) if offered and not self.bar.isTabVisible(i)]

    def _on_current(self, number: int) -> None:
        self._fold()
        self.chosen.emit(number)

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fold()

    def _fold(self) -> None:
        """Show as many as fit, from the left; the chosen one always."""
        wide = [self.bar.tabSizeHint(i).width() if offered else 0 for i, offered in enumerate(self._offered)]
        current = self.bar.currentIndex()
        fits = sum(wide) <= self.width()
        room = self.width() - (0 if fits else self.more.sizeHint().width() + 8) - wide[current]
        for number, width in enumerate(wide):
            shown = self._offered[number] and (number == current or room >= width)
            if shown and number != current:
                room -= width
            elif not shown and self._offered[number]:
                room = -1  # what follows is folded too: the order stays readable
            self.bar.setTabVisible(number, shown)
        self.more.setVisible(bool(self.folded()))

    def _open_menu(self) -> None:
        menu = QMenu(self)
        for number in self.folded():
            menu.addAction(self.title(number), partial(self.choose, number))
        menu.exec(self.more.mapToGlobal(self.more.rect().bottomLeft()))
