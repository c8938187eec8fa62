"""Switches without effect, in red, each with the sentence that says what the profile misses."""

from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import label, set_text
from gptscope.app.viewmodels.evidence import Ineffective
from gptscope.app.viewmodels.help_texts import help_for


class EvidenceStrip(QFrame):
    """Hidden while every lever shows in the profile."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: Ineffective = ()
        self.setProperty("panel", "bad")
        self.setToolTip(help_for("evidence"))
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 6, 12, 6)
        self.sentences: QLabel = label("", size=12)
        self.sentences.setTextFormat(Qt.TextFormat.RichText)
        self.sentences.setWordWrap(True)
        self.sentences.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column.addWidget(self.sentences)
        theme.changed.connect(self._retell)
        self.hide()

    def show_levers(self, levers: Ineffective) -> None:
        """Show these levers, or hide."""
        if levers != self._shown:
            self._shown = levers
            self._retell()
        self.setVisible(bool(levers))

    def _retell(self) -> None:
        red = self._theme.hex("bad")
        rows = [
            f'<span style="color:{red}"><b>×&nbsp; {escape(lever)} is not in effect:</b></span> {escape(sentence)}'
            for lever, sentence in self._shown
        ]
        set_text(self.sentences, "<br>".join(rows))
        self.setAccessibleName("; ".join(f"{lever} is not in effect: {sentence}" for lever, sentence in self._shown))
