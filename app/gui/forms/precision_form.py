"""Precision: plain formats and families as segments, the recipes of a family as a list, then their settings."""

from PySide6.QtWidgets import QVBoxLayout, QWidget

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.forms.options_form import OptionsForm
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import label, set_text
from gptscope.app.gui.widgets.choice_combo import ChoiceCombo
from gptscope.app.gui.widgets.segmented import Segment, Segmented
from gptscope.app.viewmodels.precision_families import family_of, precision_menu, recipe_for
from gptscope.app.viewmodels.setup import Choice, choices


class PrecisionForm(QWidget):
    """Writes the chosen recipe into the controller's setup."""

    def __init__(self, controller: Controller, theme: Theme) -> None:
        super().__init__()
        self._controller = controller
        self._last: dict[str, str] = {}
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        self.segments = Segmented("Precision")
        self.segments.chosen.connect(self._on_segment)
        self.recipes = ChoiceCombo("Recipe")
        self.recipes.picked.connect(self._choose)
        self.note = label("", size=12, tone="warn")
        self.note.setWordWrap(True)
        self.options = OptionsForm(controller, theme, "precision")
        for widget in (self.segments, self.recipes, self.note, self.options):
            column.addWidget(widget)

    def _choices(self) -> tuple[Choice, ...]:
        return choices(self._controller.capabilities, "precision", self._controller.setup)

    def _on_segment(self, name: str) -> None:
        self._choose(recipe_for(name, self._choices(), self._last.get(name, "")))

    def _choose(self, name: str) -> None:
        self._last[family_of(name)] = name
        self._controller.setup.set_variant(precision=name)
        self._controller.setup_changed.emit()

    def refresh(self) -> bool:
        """Show the setup; returns whether the precision differs from the baseline's."""
        found = self._choices()
        menu = precision_menu(found)
        self.segments.set_segments([Segment(one.name, one.name.upper(), one.tip, one.reason) for one in menu.segments])
        self.segments.choose(menu.chosen)
        self.recipes.setVisible(bool(menu.recipes))
        self.recipes.set_choices([Segment(one.name, one.title, one.tip, one.reason) for one in menu.recipes])
        self.recipes.choose(self._controller.setup.variant.precision)
        set_text(self.note, menu.note)
        self.note.setVisible(bool(menu.note))
        self.options.show_lever(self._controller.setup.variant.precision)
        return any(one.chosen and one.differs for one in found)
