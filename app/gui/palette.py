"""The command palette: every action, model and recent run, found by typing."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QDialog, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout

from gptscope.app.gui.actions import ACTIONS
from gptscope.app.gui.widgets.guarded import guarded_as
from gptscope.app.viewmodels.fuzzy import best_matches
from gptscope.app.viewmodels.variant_names import run_title

if TYPE_CHECKING:
    from gptscope.app.gui.window import MainWindow

_WIDTH, _HEIGHT, _MOST = 520, 380, 60


@dataclass(frozen=True)
class Entry:
    """One line of the palette."""

    text: str
    hint: str
    do: Callable[[], object]
    place: str = ""
    """Where else it is found, which is searched too."""


def _told(entry: Entry) -> str:
    return f"{entry.text} {entry.place} {entry.hint}".casefold()


class CommandPalette(QDialog):
    """Type to find, arrows to move, Enter to do, Esc to leave."""

    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName("Command palette")
        self._window = window
        self._entries = self._collect()
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 8)
        column.setSpacing(6)
        self.input = QLineEdit()
        self.input.setPlaceholderText("Type a command, a model or a run")
        self.input.setAccessibleName("Search commands")
        self.input.textChanged.connect(self._show)
        self.input.installEventFilter(self)
        self.list = QListWidget()
        self.list.setAccessibleName("Matching commands")
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.itemClicked.connect(lambda _item: self._do())
        column.addWidget(self.input)
        column.addWidget(self.list, 1)
        self._show("")

    def _collect(self) -> list[Entry]:
        window = self._window
        made = []
        for spec in ACTIONS:
            action = window.actions_by_id[spec.id]
            if action.isEnabled() and spec.id != "palette":
                place = f"{spec.menu}, {spec.submenu}" if spec.submenu else spec.menu
                made.append(Entry(spec.title.rstrip("…"), spec.shortcut or place, action.trigger, place))
        made += self._trace_tables()
        capabilities = window.controller.capabilities
        if capabilities is not None:
            sources = ["bundled", *capabilities.catalogue, *(f"preset:{name}" for name in capabilities.presets)]
            made += [Entry(f"Model: {s}", "choose", partial(window.dock.model_form.choose, s)) for s in sources]
        library = window.controller.library
        for entry in library.entries()[:40] if library is not None and not window.controller.running else ():
            text = f"Run: {run_title(entry.name, entry.variant)}, {entry.model}, {entry.workload.kind}"
            made.append(Entry(text, "reopen", partial(window.controller.reopen, entry.run_id)))
        return made

    def _trace_tables(self) -> list[Entry]:
        """The tables of the opened trace; without one they would lead to empty pages."""
        window, view = self._window, self._window.tracing.view
        if view is None or view.trace is None:
            return []
        tables = view.tables

        def show(number: int) -> None:
            window.show_view(window.TRACE)
            tables.tabs.choose(number)

        return [
            Entry(f"Trace table: {tables.tabs.title(number)}", "show", partial(show, number))
            for number in tables.tabs.offered()
        ]

    def open_at_top(self) -> None:
        """Show the palette centred under the menu bar."""
        window = self._window
        width = min(_WIDTH, window.width() - 40)
        corner = window.mapToGlobal(window.rect().topLeft())
        self.setGeometry(corner.x() + (window.width() - width) // 2, corner.y() + 64, width, _HEIGHT)
        self.show()
        self.input.setFocus()

    def _show(self, words: str) -> None:
        self.list.clear()
        self._found = self._matches(words)[:_MOST]
        for entry in self._found:
            item = QListWidgetItem(f"{entry.text}    {entry.hint}")
            item.setData(Qt.ItemDataRole.AccessibleTextRole, entry.text)
            self.list.addItem(item)
        if self._found:
            self.list.setCurrentRow(0)
            return
        nothing = QListWidgetItem("Nothing found")
        nothing.setFlags(Qt.ItemFlag.NoItemFlags)
        self.list.addItem(nothing)

    def _matches(self, words: str) -> list[Entry]:
        """Entries whose title has the words, those whose menu or hint has them, those with the letters in order."""
        titled = best_matches(words, self._entries, lambda entry: entry.text)
        wanted = words.casefold().split()
        whole = [entry for entry in titled if all(word in entry.text.casefold() for word in wanted)]
        placed = [entry for entry in self._entries if entry not in titled and all(w in _told(entry) for w in wanted)]
        return whole + placed + [entry for entry in titled if entry not in whole]

    def _do(self) -> None:
        row = self.list.currentRow()
        if 0 <= row < len(self._found):
            entry = self._found[row]
            self.close()
            entry.do()

    @guarded_as(False)
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Arrows and Enter act on the list while the text keeps the focus."""
        if watched is self.input and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 10, Qt.Key.Key_PageUp: -10}.get(
                Qt.Key(event.key()), 0
            )
            if step and self.list.count():
                self.list.setCurrentRow(min(max(self.list.currentRow() + step, 0), self.list.count() - 1))
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._do()
                return True
        return super().eventFilter(watched, event)
