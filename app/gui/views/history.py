"""The History view: every run kept, searchable, with tags and notes; reopen, compare, repeat, pin, delete with undo."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QMenu, QPlainTextEdit, QVBoxLayout, QWidget

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.tables.table_view import TableView
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import ThemedIcons, button, label, set_text
from gptscope.app.viewmodels.history_table import history_table
from gptscope.app.viewmodels.variant_names import run_title
from gptscope.profiling.experiment import Experiment
from gptscope.profiling.store.entries import RunEntry

if TYPE_CHECKING:
    from gptscope.app.gui.commands import Commands

_SAVE_AFTER_MS = 600


class HistoryView(QWidget):
    """A table of runs over an editor for the chosen run's tags and notes."""

    def __init__(self, controller: Controller, theme: Theme, icons: ThemedIcons, commands: "Commands") -> None:
        super().__init__()
        self._controller, self._commands = controller, commands
        self._entries: dict[str, RunEntry] = {}
        self._deleted: list[str] = []
        self._editing = ""
        self.setObjectName("canvas")
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(8)
        column.addLayout(self._make_tools(icons))
        frame = QFrame()
        frame.setProperty("panel", "true")
        inner = QVBoxLayout(frame)
        inner.setContentsMargins(1, 1, 1, 1)
        self.table = TableView(theme, "Runs", row_height=24)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.customContextMenuRequested.connect(self._open_menu)
        self.table.chosen.connect(self._on_chosen)
        self.table.selectionModel().selectionChanged.connect(self._show_buttons)
        self.table.opened.connect(self.reopen)
        inner.addWidget(self.table)
        column.addWidget(frame, 1)
        column.addWidget(self._make_editor())
        self._search_timer = QTimer(self)
        self._search_timer.setSingleShot(True)
        self._search_timer.setInterval(150)
        self._search_timer.timeout.connect(self.reload)
        self.search.textChanged.connect(lambda _text: self._search_timer.start())
        self._save_timer = QTimer(self)
        self._save_timer.setSingleShot(True)
        self._save_timer.setInterval(_SAVE_AFTER_MS)
        self._save_timer.timeout.connect(self._save_edits)
        self.tags.textEdited.connect(lambda _text: self._save_timer.start())
        self.notes.textChanged.connect(self._on_notes)
        controller.running_changed.connect(self._show_buttons)
        self._on_chosen("")

    def _make_tools(self, icons: ThemedIcons) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        self.search = QLineEdit()
        self.search.setPlaceholderText("Search name, model, levers, verdict, tags, notes")
        self.search.setAccessibleName("Search runs")
        self.search.setClearButtonEnabled(True)
        self.search.setMaximumWidth(420)
        row.addWidget(self.search, 1)
        row.addStretch(1)
        self.reopen_button = button(
            "Reopen", lambda: self.reopen(self.table.chosen_key()), tip="Show this run again as it was (Enter)"
        )
        self.compare_button = button(
            "Compare",
            lambda: self._commands.compare_runs(self.chosen_runs()),
            tip="Hold the chosen runs against each other: choose two or more (Ctrl+M)",
        )
        self.again_button = button("Run again", self.run_again, tip="The same model, workload and levers")
        self.pin_button = button("Pin as baseline", lambda: self._controller.pin_stored(self.table.chosen_key()))
        self.delete_button = button("Delete", self.delete, tip="Can be undone (Del, Ctrl+Z)")
        self.undo_button = button("Undo delete", self.undo_delete, tip="Ctrl+Z")
        for widget, icon in (
            (self.reopen_button, "reopen"),
            (self.compare_button, "bars"),
            (self.again_button, "play"),
            (self.pin_button, "pin"),
            (self.delete_button, "trash"),
        ):
            icons.on_button(widget, icon, "t1", 14)
            row.addWidget(widget)
        self.undo_button.hide()
        row.addWidget(self.undo_button)
        return row

    def _make_editor(self) -> QWidget:
        frame = QFrame()
        frame.setProperty("panel", "true")
        frame.setFixedHeight(112)
        row = QHBoxLayout(frame)
        row.setContentsMargins(12, 8, 12, 8)
        row.setSpacing(12)
        left = QVBoxLayout()
        left.setSpacing(4)
        self.command = label("", level=3, size=12)
        self.command.setWordWrap(True)
        self.command.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.tags = QLineEdit()
        self.tags.setPlaceholderText("Tags, separated by commas")
        self.tags.setAccessibleName("Tags")
        left.addWidget(label("Tags", level=2, size=12))
        left.addWidget(self.tags)
        left.addWidget(self.command, 1)
        right = QVBoxLayout()
        right.setSpacing(4)
        self.notes = QPlainTextEdit()
        self.notes.setPlaceholderText("Notes on this run")
        self.notes.setAccessibleName("Notes")
        self.notes.setTabChangesFocus(True)
        right.addWidget(label("Notes", level=2, size=12))
        right.addWidget(self.notes, 1)
        row.addLayout(left, 1)
        row.addLayout(right, 1)
        return frame

    # ---------------------------------------------------------------------------------------------- showing

    def reload(self) -> None:
        """Read the list again, keeping the chosen run."""
        library = self._controller.library
        words = self.search.text().strip()
        entries = library.entries(words) if library is not None else ()
        self._entries = {entry.run_id: entry for entry in entries}
        self.table.show_table(history_table(entries, searching=bool(words)))
        if self._editing not in self._entries:
            self._on_chosen("")
        self._show_buttons()

    def _on_chosen(self, run_id: str) -> None:
        self._save_edits()
        entry = self._entries.get(run_id)
        self._editing = run_id if entry is not None else ""
        for widget in (self.tags, self.notes):
            widget.setEnabled(entry is not None)
            widget.blockSignals(True)
        self.tags.setText(", ".join(entry.tags) if entry is not None else "")
        self.notes.setPlainText(entry.notes if entry is not None else "")
        for widget in (self.tags, self.notes):
            widget.blockSignals(False)
        set_text(
            self.command, entry.command if entry is not None else "Choose a run to see its command, tags and notes."
        )
        self._show_buttons()

    def _show_buttons(self, *_selection: object) -> None:
        chosen, running = bool(self._editing), self._controller.running
        self.reopen_button.setEnabled(chosen and not running)
        self.compare_button.setEnabled(len(self.table.selected_keys()) > 1)
        self.again_button.setEnabled(chosen and not running)
        self.pin_button.setEnabled(chosen)
        self.delete_button.setEnabled(chosen)
        self.undo_button.setVisible(bool(self._deleted))

    # ---------------------------------------------------------------------------------------------- doing

    def _on_notes(self) -> None:
        if self._editing:
            self._save_timer.start()

    def _save_edits(self) -> None:
        self._save_timer.stop()
        entry, library = self._entries.get(self._editing), self._controller.library
        if entry is None or library is None:
            return
        tags = [tag.strip() for tag in self.tags.text().split(",") if tag.strip()]
        notes = self.notes.toPlainText()
        if list(entry.tags) != tags:
            library.set_tags(entry.run_id, tags)
        if entry.notes != notes:
            library.set_notes(entry.run_id, notes)
        fresh = library.find(entry.run_id)
        if fresh is not None:
            self._entries[entry.run_id] = fresh

    def reopen(self, run_id: str) -> None:
        """Show a run as it was recorded."""
        if run_id:
            self._controller.reopen(run_id)

    def chosen_runs(self) -> list[str]:
        """Ids of all selected runs."""
        return self.table.selected_keys()

    def run_again(self) -> None:
        """Start the same model, workload and levers anew, and put them into Setup."""
        entry = self._entries.get(self._editing)
        if entry is None:
            return
        setup = self._controller.setup
        setup.workload, setup.variant = entry.workload, entry.variant
        if entry.model != setup.model:
            self._controller.inspect(entry.model)
        self._controller.setup_changed.emit()
        self._controller.start(Experiment(model=entry.model, workload=entry.workload, variants=(entry.variant,)))

    def delete(self) -> None:
        """Delete the chosen run; it can be brought back."""
        entry, library = self._entries.get(self._editing), self._controller.library
        if entry is None or library is None:
            return
        self._save_edits()
        if library.delete(entry.run_id):
            self._deleted.append(entry.run_id)
            self._show_buttons()
            self._controller.told.emit(
                f"Deleted {run_title(entry.name, entry.variant)}. Ctrl+Z brings it back.", "info"
            )

    def undo_delete(self) -> None:
        """Bring the last deleted run back."""
        library = self._controller.library
        if not self._deleted or library is None:
            self._controller.told.emit("There is no deleted run to bring back.", "info")
            return
        run_id = self._deleted.pop()
        if library.undelete(run_id):
            self.table.choose(run_id)
            self._on_chosen(run_id)
            self._controller.told.emit("The run is back.", "info")

    def copy_rows(self) -> int:
        """Copy rows as text; returns how many."""
        return self.table.copy_rows()

    def _open_menu(self, position: QPoint) -> None:
        if not self._editing:
            return
        menu = QMenu(self)
        for text, handler in (
            ("Reopen", lambda: self.reopen(self._editing)),
            ("Compare", self._commands.compare_selected),
            ("Show timeline", lambda: self._commands.show_timeline(self._editing)),
            ("Run again", self.run_again),
            ("Pin as baseline", lambda: self._controller.pin_stored(self._editing)),
            ("Copy rows", self.copy_rows),
            ("Delete", self.delete),
        ):
            menu.addAction(text, handler)
        menu.exec(self.table.viewport().mapToGlobal(position))
