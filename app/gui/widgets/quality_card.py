"""One figure about the output: value, error, what it was before, and whether it passes its gate."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout

from gptscope.app.gui.widgets.basics import ElidedLabel, label, set_text, style_label
from gptscope.app.viewmodels.help_texts import help_for
from gptscope.app.viewmodels.quality_cards import QualityCard

HEIGHT = 88


class QualityCardView(QFrame):
    """Shows one `QualityCard`."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("panel", "true")
        self.setFixedHeight(HEIGHT)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(0)
        self.title, self.source = label("", level=2, size=12), ElidedLabel("", level=3, size=12)
        self.source.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.value, self.unit = label("", size=28, bold=True), label("", level=2)
        self.aside, self.note = ElidedLabel("", level=2), ElidedLabel("", level=2, size=12)
        top = QHBoxLayout()
        top.setSpacing(8)
        top.addWidget(self.title)
        top.addWidget(self.source, 1)
        column.addLayout(top)
        middle = QHBoxLayout()
        middle.setSpacing(6)
        middle.addWidget(self.value)
        middle.addWidget(self.unit)
        middle.addWidget(self.aside, 1)
        column.addLayout(middle, 1)
        column.addWidget(self.note)

    def show_card(self, card: QualityCard) -> None:
        """Show a card."""
        for widget, text in (
            (self.title, card.title),
            (self.source, card.source),
            (self.value, card.value),
            (self.unit, card.unit),
            (self.aside, card.aside),
            (self.note, card.note),
        ):
            set_text(widget, text)
        known = not card.value.startswith("n/a")
        style_label(self.value, level=1 if known else 3, size=28, bold=True, tone=card.tone)
        style_label(self.source, level=3, size=12, tone=card.source_tone)
        self.unit.setVisible(bool(card.unit))
        self.setToolTip(help_for(card.help))
        parts = (f"{card.title}: {card.value} {card.unit}".strip(), card.aside, card.note, card.source)
        self.setAccessibleName(", ".join(part for part in parts if part))
