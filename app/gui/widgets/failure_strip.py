"""A failure inside the window: what happened in one sentence, what was kept, details, try again. Never a modal."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import ThemedIcons, button, label, set_text
from gptscope.profiling.records import Failure


class FailureStrip(QFrame):
    """Hidden until something fails."""

    def __init__(self, theme: Theme, icons: ThemedIcons, try_again: Callable[[], object]) -> None:
        super().__init__()
        self.setProperty("panel", "bad")
        self.setAccessibleName("Failure")
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(6)
        row = QHBoxLayout()
        row.setSpacing(8)
        sign = label()
        icons.on_label(sign, "error", "bad")
        row.addWidget(sign, 0, Qt.AlignmentFlag.AlignTop)
        self.sentence = label("")
        self.sentence.setWordWrap(True)
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        row.addWidget(self.sentence, 1)
        self._details = button("Details", self._toggle, kind="tool")
        row.addWidget(self._details, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(button("Try again", try_again, kind="tool"), 0, Qt.AlignmentFlag.AlignTop)
        close = button("", self.hide, kind="flat", tip="Close", name="Close this message")
        icons.on_button(close, "cross")
        row.addWidget(close, 0, Qt.AlignmentFlag.AlignTop)
        column.addLayout(row)
        self._text = QPlainTextEdit()
        self._text.setReadOnly(True)
        self._text.setFixedHeight(140)
        self._text.setFont(theme.font(12))
        self._text.setAccessibleName("Failure details")
        self._text.hide()
        column.addWidget(self._text)
        self.hide()

    def show_failure(self, failure: Failure) -> None:
        """Show a failure; the first one of a run stays, later ones are in the events."""
        set_text(self.sentence, failure.message)
        self.setAccessibleDescription(failure.message)
        self._text.setPlainText(failure.detail)
        self._text.hide()
        self._details.setVisible(bool(failure.detail))
        self.show()

    def _toggle(self) -> None:
        self._text.setVisible(self._text.isHidden())
