"""One editor per kind of setting: list, whole number, number, switch, text, file. Each tells its new value."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDoubleSpinBox, QFileDialog, QLineEdit, QSpinBox, QWidget

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.choice_combo import ChoiceCombo
from gptscope.app.gui.widgets.number_boxes import NumberBox, WholeBox
from gptscope.app.gui.widgets.path_field import PathField
from gptscope.app.gui.widgets.segmented import Segment
from gptscope.app.gui.widgets.switch import Switch
from gptscope.app.viewmodels.lever_options import OptionField
from gptscope.profiling.experiment import OptionValue

_LARGEST_WHOLE = 2**31 - 1
_STEPS = 20
"""A number's arrows divide its range into so many steps."""


def make_editor(field: OptionField, name: str, theme: Theme, changed: Callable[[OptionValue], object]) -> QWidget:
    """An editor that shows nothing yet; `name` is its accessible name."""
    editor: QWidget
    if field.kind == "choice":
        editor = ChoiceCombo(name)
        editor.set_choices([Segment(choice, choice, field.tip) for choice in field.choices])
        editor.picked.connect(changed)
    elif field.kind == "switch":
        editor = Switch(field.title, theme)
        editor.clicked.connect(lambda on: changed(bool(on)))
    elif field.kind == "whole":
        editor = WholeBox()
        editor.setRange(round(max(field.least, -_LARGEST_WHOLE)), round(min(field.most, _LARGEST_WHOLE)))
        editor.setKeyboardTracking(False)
        editor.valueChanged.connect(lambda value: changed(int(value)))
    elif field.kind == "number":
        editor = NumberBox()
        editor.setRange(field.least, field.most)
        editor.setDecimals(3)
        editor.setSingleStep(min((field.most - field.least) / _STEPS, 1.0))
        editor.setKeyboardTracking(False)
        editor.valueChanged.connect(lambda value: changed(float(value)))
    elif field.kind == "file":
        editor = PathField(name, _pick_file, placeholder="none", tip=field.tip)
        editor.changed.connect(changed)
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


def _pick_file(parent: QWidget, before: str) -> str:
    return QFileDialog.getOpenFileName(parent, "Choose a file", before)[0]


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
    elif isinstance(editor, PathField):
        editor.set_path(str(value))
    elif isinstance(editor, QLineEdit) and editor.text() != str(value):
        editor.setText(str(value))
    editor.blockSignals(False)
