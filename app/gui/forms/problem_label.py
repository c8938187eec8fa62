"""What is wrong with a field, below it."""

from PySide6.QtWidgets import QLabel

from gptscope.app.gui.widgets.basics import set_text, wrapped


def problem_label() -> QLabel:
    """Hidden while nothing is wrong."""
    made = wrapped("", size=12, tone="bad")
    made.hide()
    return made


def show_problem(told: QLabel, sentence: str) -> None:
    """Say it; nothing hides it."""
    set_text(told, sentence)
    told.setVisible(bool(sentence))
