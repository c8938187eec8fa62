"""One big number with its baseline, ratio and source."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import ElidedLabel, label, set_text, style_label
from gptscope.app.viewmodels.cards import Card
from gptscope.app.viewmodels.help_texts import help_for

HEIGHT = 92


class MetricCard(QFrame):
    """Shows one `Card`; the main one is larger and carries its ratio beside the number."""

    def __init__(self, theme: Theme, *, main: bool = False) -> None:
        super().__init__()
        self._theme, self._main = theme, main
        self._card: Card | None = None
        self.setProperty("panel", "true")
        self.setFixedHeight(HEIGHT)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(0)
        self.title, self.source = label("", level=2, size=12), ElidedLabel("", level=3, size=12)
        self.source.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.value = label("", size=34 if main else 28, bold=True)
        self.unit = label("", level=2)
        self.aside = ElidedLabel("", level=2, size=12)
        self.aside.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.arrow, self.ratio = QLabel(), label("", size=22 if main else 12, bold=main)
        self.note, self.baseline = ElidedLabel("", level=3, size=12), label("", level=2, size=12)
        self.baseline.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        top = QHBoxLayout()
        top.setSpacing(8)
        top.addWidget(self.title)
        top.addWidget(self.source, 1)
        column.addLayout(top)
        middle = QHBoxLayout()
        middle.setSpacing(6)
        middle.addWidget(self.value, 0, Qt.AlignmentFlag.AlignVCenter)
        middle.addWidget(self.unit, 0, Qt.AlignmentFlag.AlignVCenter)
        bottom = QHBoxLayout()
        bottom.setSpacing(4)
        if main:
            middle.addStretch(1)
            middle.addWidget(self.arrow)
            middle.addWidget(self.ratio)
        else:
            middle.addWidget(self.aside, 1)
            bottom.addWidget(self.arrow)
            bottom.addWidget(self.ratio)
        column.addLayout(middle, 1)
        bottom.addWidget(self.note, 1)
        bottom.addWidget(self.baseline)
        column.addLayout(bottom)
        theme.changed.connect(self._show_arrow)

    def show_card(self, card: Card) -> None:
        """Show a card; equal cards cost nothing."""
        if card == self._card:
            return
        self._card = card
        set_text(self.title, card.title)
        set_text(self.source, card.source)
        set_text(self.value, card.value)
        set_text(self.unit, card.unit if not card.value.startswith("n/a") else "")
        style_label(
            self.value, level=1 if not card.value.startswith("n/a") else 3, size=34 if self._main else 28, bold=True
        )
        set_text(self.aside, card.aside)
        set_text(self.ratio, card.ratio)
        style_label(self.ratio, level=1, size=22 if self._main else 12, bold=self._main, tone=card.ratio_tone)
        set_text(self.note, card.note)
        set_text(self.baseline, card.baseline)
        self.setToolTip(help_for(card.help))
        self._show_arrow()
        spoken = [
            f"{card.title}: {card.value} {card.unit}",
            card.aside,
            card.ratio and f"ratio {card.ratio}",
            card.baseline,
        ]
        self.setAccessibleName(", ".join(part for part in spoken if part))

    def _show_arrow(self) -> None:
        card = self._card
        if card is None or not card.ratio_arrow:
            self.arrow.clear()
            return
        token = card.ratio_tone or "t2"
        self.arrow.setPixmap(self._theme.pixmap(f"arrow-{card.ratio_arrow}", token, 18 if self._main else 12))
