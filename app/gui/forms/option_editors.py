"""One editor per kind of setting: list, whole number, number, switch, text. Each tells its new value."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QDoubleSpinBox, QLineEdit, QSpinBox, QWidget

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.choice_combo import ChoiceCombo
from gptscope.app.gui.widgets.guarded import guarded
from gptscope.app.gui.widgets.segmented import Segment
from gptscope.app.gui.widgets.switch import Switch
from gptscope.app.viewmodels.lever_options import OptionField
from gptscope.profiling.experiment import OptionValue

_LARGEST_WHOLE = 2**31 - 1
_STEPS = 20
"""A number's arrows divide its range into so many steps."""


class _WholeBox(QSpinBox):
    """Scrolling the dock must not change what the pointer happens to pass."""

    @guarded
    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class _NumberBox(QDoubleSpinBox):
    """As above."""

    @guarded
    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


def make_editor(field: OptionField, name: str, theme: Theme, changed: Callable[[OptionValue], object]) -> QWidget:
    """An editor that shows nothing yet; `name` is its accessible name."""
    editor: QWidget
    if field.kind == "choice":
        editor = ChoiceCombo(name)
        editor.set_choices([Segment(choice, choice, field.tip) for choice in field.choices])
        editor.picked.connect(changed)
    elif field.kind == "switch":
        editor = Switch("", theme)
        editor.clicked.connect(lambda on: changed(bool(on)))
    elif field.kind == "whole":
        editor = _WholeBox()
        editor.setRange(round(max(field.least, -_LARGEST_WHOLE)), round(min(field.most, _LARGEST_WHOLE)))
        editor.setKeyboardTracking(False)
        editor.valueChanged.connect(lambda value: changed(int(value)))
    elif field.kind == "number":
        editor = _NumberBox()
        editor.setRange(field.least, field.most)
        editor.setDecimals(3)
        editor.setSingleStep(min((field.most - field.least) / _STEPS, 1.0))
        editor.setKeyboardTracking(False)
        editor.valueChanged.connect(lambda value: changed(float(value)))
    else:
        editor = line = QLineEdit()
        line.setPlaceholderText("none")
        line.editingFinished.connect(lambda: changed(line.text().strip()))
    editor.setAccessibleName(name)
    editor.setAccessibleDescription(field.tip)
    editor.setToolTip(field.tip)
    editor.setMinimumWidth(48)  # a spin box would ask for the width of its largest number
    editor.setFixedHeight(24 if field.kind == "switch" else 28)
    editor.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return editor


def show_value(editor: QWidget, value: OptionValue) -> None:
    """Show a value without telling it back."""
    editor.blockSignals(True)
    if isinstance(editor, ChoiceCombo):
        editor.choose(str(value))
    elif isinstance(editor, Switch):
        editor.setChecked(bool(value))
    elif isinstance(editor, QSpinBox):
        editor.setValue(int(value))
    elif isinstance(editor, QDoubleSpinBox):
        editor.setValue(float(value))
    elif isinstance(editor, QLineEdit) and editor.text() != str(value):
        editor.setText(str(value))
    editor.blockSignals(False)
