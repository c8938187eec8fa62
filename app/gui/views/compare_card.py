"""One candidate's card: verdict, speedup with interval, figures, output, proof of the levers, what it costs."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import (
    ElidedLabel,
    ThemedIcons,
    button,
    label,
    repolish,
    rule,
    style_label,
    wrapped,
)
from gptscope.app.gui.widgets.guarded import guarded
from gptscope.app.gui.widgets.interval_axis import IntervalAxis
from gptscope.app.viewmodels.compare_cards import CandidateCard, Figure

LEAST_WIDTH = 380
_MOST_PROOFS = 3
_PROOF_ICONS: dict[bool | None, tuple[str, str, str]] = {
    True: ("check", "good", "in effect"),
    False: ("cross", "bad", "not in effect"),
    None: ("info", "t3", "cannot tell"),
}


@dataclass(frozen=True)
class _Density:
    """How wide the figures stand."""

    margin: int
    gap: int
    number_px: int


_WIDE, _TIGHT = _Density(margin=12, gap=10, number_px=13), _Density(margin=10, gap=6, number_px=12)
_TOKENS = {"good": "good", "warn": "warn", "bad": "bad", "": "t2"}


class CompareCard(QFrame):
    """Chosen by click, Tab or arrow keys; the waterfall below shows the chosen one."""

    chosen = Signal()
    moved = Signal(int)  # arrow keys: -1 or 1
    opened = Signal()  # double-click or Enter

    def __init__(
        self,
        card: CandidateCard,
        theme: Theme,
        icons: ThemedIcons,
        make_baseline: Callable[[], object],
        open_profile: Callable[[], object],
        open_live: Callable[[], object],
    ) -> None:
        super().__init__()
        self._theme, self._is_chosen = theme, False
        self.card = card
        self._values: list[tuple[QWidget, QLabel, Figure]] = []
        self._grids: list[QGridLayout] = []
        self.setProperty("panel", "true")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(f"{card.letter} {card.name}: {card.sentence}")
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 6)
        column.setSpacing(6)
        column.addLayout(self._make_head(card, icons, make_baseline))
        column.addWidget(self._make_strip(card))
        column.addLayout(self._make_ratio(card))
        column.addWidget(rule())
        column.addLayout(self._make_figures(card.figures))
        if card.quality:
            column.addWidget(rule())
            column.addLayout(self._make_figures(card.quality))
        column.addWidget(rule())
        column.addLayout(self._make_proofs(card))
        column.addStretch(1)
        column.addWidget(rule())
        column.addLayout(self._make_foot(card, open_profile, open_live))

    def _make_head(self, card: CandidateCard, icons: ThemedIcons, make_baseline: Callable[[], object]) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        self._badge = QLabel(card.letter)
        self._badge.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._badge.setFixedSize(20, 20)
        self._badge.setProperty("badge", "plain")
        name = ElidedLabel(card.name, bold=True)
        name.setFixedHeight(24)
        row.addWidget(self._badge)
        row.addWidget(name, 1)
        row.addWidget(label(card.levers, level=3, size=12))
        pin = button(
            "", make_baseline, kind="flat", tip="Hold the others against this run",
            name=f"{card.letter}: make it the baseline",
        )  # fmt: skip
        icons.on_button(pin, "pin", "t2", 14)
        row.addWidget(pin)
        return row

    def _make_strip(self, card: CandidateCard) -> QFrame:
        strip = QFrame()
        strip.setProperty("verdict", card.tone or "plain")
        row = QHBoxLayout(strip)
        row.setContentsMargins(8, 3, 8, 3)
        row.setSpacing(8)
        sign = QLabel()
        sign.setPixmap(self._theme.pixmap(card.icon, _TOKENS[card.tone], 14))
        row.addWidget(sign, 0, Qt.AlignmentFlag.AlignTop)
        title = label(card.verdict, size=13, bold=True, tone=card.tone)
        row.addWidget(title, 0, Qt.AlignmentFlag.AlignTop)
        reason = wrapped(card.reason, size=12)
        reason.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(reason, 1)
        strip.setToolTip(card.sentence)
        return strip

    def _make_ratio(self, card: CandidateCard) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(12)
        known = card.speedup is not None
        row.addWidget(label(card.ratio, size=34 if known else 22, bold=True, level=1 if known else 3))
        words = QVBoxLayout()
        words.setSpacing(0)
        if card.interval:
            words.addWidget(label(card.interval, level=2))
        words.addWidget(label(card.how, level=3, size=11))
        words.setAlignment(Qt.AlignmentFlag.AlignVCenter)
        row.addLayout(words)
        axis = IntervalAxis(self._theme)
        axis.show_interval(card.speedup, card.extent, _TOKENS[card.tone])
        row.addWidget(axis, 100)
        row.addStretch(1)
        return row

    def _make_figures(self, figures: tuple[Figure, ...]) -> QGridLayout:
        grid = QGridLayout()
        self._grids.append(grid)
        grid.setVerticalSpacing(1)
        for column, figure in enumerate(figures):
            value = QWidget()
            row = QHBoxLayout(value)
            row.setContentsMargins(0, 0, 0, 0)
            row.setSpacing(3)
            number = label(figure.value, bold=True, tone=figure.tone)
            row.addWidget(number)
            row.addWidget(label(figure.unit, level=2, size=12), 1)
            value.setToolTip(figure.tip)
            self._values.append((value, number, figure))
            grid.addWidget(label(figure.title, level=2, size=11), 0, column)
            grid.addWidget(value, 1, column)
            grid.addWidget(ElidedLabel(figure.note, level=3, size=11), 2, column)
            grid.setColumnStretch(column, 1)
        return grid

    def _make_proofs(self, card: CandidateCard) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(3)
        shown = sorted(card.evidence, key=lambda item: item[1] is not False)[:_MOST_PROOFS]  # what failed comes first
        for lever, in_effect, sentence in shown:
            icon, token, spoken = _PROOF_ICONS[in_effect]
            row = QHBoxLayout()
            row.setSpacing(8)
            sign = QLabel()
            sign.setPixmap(self._theme.pixmap(icon, token, 12))
            sign.setAccessibleName(spoken)
            row.addWidget(sign)
            text = f"not in effect: {sentence}" if in_effect is False else sentence
            row.addWidget(label(lever, size=12, bold=in_effect is False, tone="bad" if in_effect is False else ""))
            words = ElidedLabel(text, level=2, size=12)
            if in_effect is False:
                words.setProperty("c", "bad")
                repolish(words)
            row.addWidget(words, 1)
            column.addLayout(row)
        more = len(card.evidence) - len(shown)
        if more > 0:
            rest = label(f"and {more} more, see Profile", level=3, size=12)
            rest.setToolTip("\n".join(f"{lever}: {sentence}" for lever, _, sentence in card.evidence))
            column.addWidget(rest)
        if card.no_evidence:
            column.addWidget(label(card.no_evidence, level=3, size=12))
        return column

    def _make_foot(
        self, card: CandidateCard, open_profile: Callable[[], object], open_live: Callable[[], object]
    ) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(ElidedLabel(card.costs, level=2, size=12), 1)
        row.addWidget(button("Live", open_live, kind="link", name=f"{card.letter}: show in Live"))
        row.addWidget(button("Profile", open_profile, kind="link", name=f"{card.letter}: show in Profile"))
        return row

    # ---------------------------------------------------------------------------------------------- choosing

    def fit(self, room: int) -> None:
        """Take the width that the figures need; where there is less room, write them smaller."""
        self._take(_WIDE)
        if self.minimumWidth() > room:
            self._take(_TIGHT)

    def _take(self, density: _Density) -> None:
        """Set the least width, once the style sheet has given the figures their sizes."""
        self._column.setContentsMargins(density.margin, 8, density.margin, 6)
        for grid in self._grids:
            grid.setHorizontalSpacing(density.gap)
        for _, number, figure in self._values:
            style_label(number, size=density.number_px, bold=True, tone=figure.tone)
        self.ensurePolished()
        for part in self.findChildren(QWidget):
            part.ensurePolished()
            part.updateGeometry()  # sizes taken before are those of the plain font
        for value, _, _ in self._values:
            value.setMinimumWidth(value.sizeHint().width())
        self._column.invalidate()
        self.setMinimumWidth(max(LEAST_WIDTH, self._column.minimumSize().width()))

    def set_chosen(self, chosen: bool) -> None:
        """Draw the accent frame."""
        if chosen != self._is_chosen:
            self._is_chosen = chosen
            self.setProperty("panel", "chosen" if chosen else "true")
            self._badge.setProperty("badge", "chosen" if chosen else "plain")
            repolish(self)
            repolish(self._badge)

    @guarded
    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.setFocus(Qt.FocusReason.MouseFocusReason)
        self.chosen.emit()
        event.accept()

    @guarded
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        event.accept()
        self.opened.emit()

    @guarded
    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.chosen.emit()
        self.update()

    @guarded
    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    @guarded
    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()), 0)
        if step:
            self.moved.emit(step)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.opened.emit()
        else:
            super().keyPressEvent(event)

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.hasFocus():  # a second line: the chosen card has one already
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(self._theme.pen("accent", 1.0))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(2.5, 2.5, -2.5, -2.5), 4, 4)
            painter.end()
