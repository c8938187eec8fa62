"""The settings of one chosen lever, below it; hidden while the lever has none."""

from functools import partial

from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.forms.option_editors import make_editor, show_value
from gptscope.app.gui.forms.problem_label import problem_label, show_problem
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import ElidedLabel, button, label, set_text, style_label
from gptscope.app.gui.widgets.switch import Switch
from gptscope.app.viewmodels.lever_options import (
    OptionField,
    fields,
    lever_called,
    shown_first,
    with_option,
    without_options,
)
from gptscope.profiling.experiment import OptionValue, Variant
from gptscope.profiling.records import LeverInfo

_LABEL_WIDTH = 124


class OptionsForm(QWidget):
    """Rows of title and editor; the rest folds out."""

    def __init__(self, controller: Controller, theme: Theme, group: str) -> None:
        super().__init__()
        self._controller, self._theme, self._group = controller, theme, group
        self._every = False
        self._lever_name = ""
        self._rows: tuple[tuple[str, str], ...] = ()
        self.editors: dict[str, QWidget] = {}
        self._labels: dict[str, ElidedLabel] = {}
        self.problems: dict[str, QLabel] = {}
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 0, 0, 2)
        column.setSpacing(2)
        self._grid = QGridLayout()
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnMinimumWidth(0, _LABEL_WIDTH)
        self._grid.setColumnStretch(1, 1)
        column.addLayout(self._grid)
        foot = QHBoxLayout()
        foot.setContentsMargins(0, 0, 0, 0)
        self._count = label("", level=3, size=12)
        self.more = button("", self._fold, kind="link", name=f"More settings of {group}")
        self.reset = button("Reset", self._reset, kind="link", tip="Set every setting of this lever back", name="Reset")
        foot.addWidget(self._count)
        foot.addStretch(1)
        foot.addWidget(self.more)
        foot.addSpacing(8)
        foot.addWidget(self.reset)
        column.addLayout(foot)
        self.hide()

    def _fold(self) -> None:
        self._every = not self._every
        self._controller.setup_changed.emit()

    def _reset(self) -> None:
        lever = self._lever_name
        self._take(without_options(self._controller.setup.variant, lever))

    def _take(self, variant: Variant) -> None:
        self._controller.setup.variant = variant
        self._controller.setup_changed.emit()

    def show_lever(self, name: str) -> None:
        """Show the settings of this lever of the group, wrong ones with what is wrong; no such name hides the form."""
        lever = lever_called(self._controller.capabilities, self._group, name)
        found = fields(lever, self._controller.setup.variant)
        self.setVisible(bool(found))
        if lever is None or not found:
            self._rebuild((), "")
            return
        self._lever_name = lever.name
        shown = shown_first(found, every=self._every)
        rows = tuple((field.lever, field.name) for field in shown)
        if rows != self._rows:
            self._rebuild(shown, lever.title)
            self._rows = rows
        wrong = self._controller.problems()
        for field in shown:
            show_value(self.editors[field.name], field.value)
            self._mark(field)
            show_problem(self.problems[field.name], wrong.get(f"{field.lever}.{field.name}", ""))
        self._show_foot(lever, found, len(found) - len(shown))

    def _mark(self, field: OptionField) -> None:
        editor = self.editors[field.name]
        if isinstance(editor, Switch):
            editor.set_differs(field.changed)
        else:
            style_label(self._labels[field.name], level=1 if field.changed else 2, size=12)

    def _show_foot(self, lever: LeverInfo, found: tuple[OptionField, ...], hidden: int) -> None:
        changed = sum(field.changed for field in found)
        set_text(self._count, f"{changed} changed" if changed else "all at their defaults")
        self.reset.setVisible(changed > 0)
        self.reset.setAccessibleName(f"Reset {lever.title}")
        self.more.setText(f"{hidden} more" if hidden else "fewer")
        self.more.setAccessibleName(f"More settings of {lever.title}" if hidden else f"Fewer settings of {lever.title}")
        self.more.setVisible(hidden > 0 or (self._every and len(found) > len(shown_first(found, every=False))))

    def _rebuild(self, shown: tuple[OptionField, ...], title: str) -> None:
        for old in (*self.editors.values(), *self._labels.values(), *self.problems.values()):
            self._grid.removeWidget(old)
            old.hide()
            old.deleteLater()
        self.editors, self._labels, self.problems, self._rows = {}, {}, {}, ()
        for row, field in enumerate(shown):
            spoken = f"{title}: {field.title}"
            editor = make_editor(field, spoken, self._theme, partial(self._change, field))
            if field.kind == "switch":  # has its title beside it
                self._grid.addWidget(editor, 2 * row, 0, 1, 2)
            else:
                name = ElidedLabel(field.title, level=2, size=12)
                name.setToolTip(field.tip)
                self._labels[field.name] = name
                self._grid.addWidget(name, 2 * row, 0)
                self._grid.addWidget(editor, 2 * row, 1)
            problem = problem_label()
            self._grid.addWidget(problem, 2 * row + 1, 0, 1, 2)
            self.editors[field.name], self.problems[field.name] = editor, problem

    def _change(self, field: OptionField, value: OptionValue) -> None:
        self._take(with_option(self._controller.setup.variant, field, value))
