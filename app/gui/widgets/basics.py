"""Labels, buttons and panels with the sizes and weights of the design."""

from collections.abc import Callable
from typing import Literal

from PySide6.QtCore import QObject, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded, guarded_as
from gptscope.app.viewmodels import formatting as fmt

Tone = Literal["", "good", "bad", "warn", "link"]


def label(text: str = "", *, level: int = 1, size: int = 13, bold: bool = False, tone: Tone = "") -> QLabel:
    """A text in one of the sizes and strengths of the design (level 1 values, 2 labels, 3 notes)."""
    widget = QLabel(text)
    widget.setTextFormat(Qt.TextFormat.PlainText)
    style_label(widget, level=level, size=size, bold=bold, tone=tone)
    return widget


def wrapped(text: str = "", *, level: int = 1, size: int = 13, bold: bool = False, tone: Tone = "") -> QLabel:
    """A label on as many lines as it needs; none of them ends between a number and its unit."""
    widget = label(fmt.unbroken(text), level=level, size=size, bold=bold, tone=tone)
    widget.setWordWrap(True)
    return widget


def style_label(widget: QLabel, *, level: int = 1, size: int = 13, bold: bool = False, tone: Tone = "") -> None:
    """Change a label's style properties and have the style sheet look at them again."""
    values = {"lv": str(level), "s": str(size), "b": "1" if bold else "0", "c": tone}
    if all(widget.property(key) == value for key, value in values.items()):
        return
    for key, value in values.items():
        widget.setProperty(key, value)
    repolish(widget)


def repolish(widget: QWidget) -> None:
    """Apply style sheet rules again after a property changed."""
    widget.style().unpolish(widget)
    widget.style().polish(widget)


def set_text(widget: QLabel, text: str) -> None:
    """Set a label's text only when it differs: no layout work 30 times a second."""
    shown = fmt.unbroken(text) if widget.wordWrap() else text
    if widget.text() != shown:
        widget.setText(shown)


class ElidedLabel(QLabel):
    """A label that shortens with an ellipsis instead of asking for room; cut off, its whole text is in its tool tip."""

    def __init__(self, text: str = "", *, level: int = 1, size: int = 13, bold: bool = False) -> None:
        self._tip = ""
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)
        style_label(self, level=level, size=size, bold=bold)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.setMinimumWidth(24)
        self.elide = Qt.TextElideMode.ElideRight

    @guarded_as(QSize())
    def minimumSizeHint(self) -> QSize:
        return QSize(24, super().minimumSizeHint().height())

    @guarded
    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        metrics = QFontMetrics(self.font())
        text = metrics.elidedText(self.text(), self.elide, self.width())
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.rect(), int(self.alignment()), text)

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_tip()

    @guarded
    def setText(self, text: str) -> None:
        """Show another text, and tell all of it where it is cut off."""
        super().setText(text)
        self._show_tip()

    @guarded
    def setToolTip(self, tip: str) -> None:
        """What stands below the whole text in the tool tip, or alone where nothing is cut off."""
        self._tip = tip
        self._show_tip()

    def _show_tip(self) -> None:
        cut = QFontMetrics(self.font()).horizontalAdvance(self.text()) > self.width()
        super().setToolTip("\n\n".join(part for part in (self.text() if cut else "", self._tip) if part))


def button(
    text: str,
    on_click: Callable[[], object],
    *,
    kind: Literal["", "primary", "link", "icon", "flat", "tool", "search"] = "",
    tip: str = "",
    name: str = "",
) -> QPushButton:
    """A push button; `name` is its accessible name where the text alone does not say it."""
    widget = QPushButton(text)
    if kind:
        widget.setProperty("kind", kind)
    if kind == "link":
        widget.setCursor(Qt.CursorShape.PointingHandCursor)
        widget.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
    if tip:
        widget.setToolTip(tip)
    widget.setAccessibleName(name or text or tip)
    widget.clicked.connect(lambda: on_click())
    return widget


class ThemedIcons(QObject):
    """Re-tints icons of buttons and labels whenever the theme changes."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        """Lives as long as `parent`, the window whose icons it tints."""
        super().__init__(parent)
        self._theme = theme
        self._refreshers: list[Callable[[], None]] = []
        theme.changed.connect(self.refresh)

    def on_button(self, widget: QPushButton, icon: str, token: str = "t2", size: int = 16) -> None:
        """Give a button an icon."""
        gap = 4 if widget.text() else 0
        widget.setIconSize(QSize(size + gap, size))
        self._add(lambda: widget.setIcon(self._theme.icon(icon, token, size, gap)))

    def on_label(self, widget: QLabel, icon: str, token: str = "t2", size: int = 16) -> None:
        """Make a label show an icon."""
        self._add(lambda: widget.setPixmap(self._theme.pixmap(icon, token, size)))

    def _add(self, refresher: Callable[[], None]) -> None:
        self._refreshers.append(refresher)
        refresher()

    def refresh(self) -> None:
        """Tint everything again."""
        for refresher in self._refreshers:
            refresher()


class Panel(QFrame):
    """A flat box with a header: title, source, read-out on the right, optional tools."""

    def __init__(self, title: str, source: str = "") -> None:
        super().__init__()
        self.setProperty("panel", "true")
        self.setAccessibleName(title)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(12, 4, 12, 8)
        outer.setSpacing(0)
        header = QHBoxLayout()
        header.setContentsMargins(0, 0, 0, 0)
        header.setSpacing(8)
        self.title = label(title, bold=True)
        self.source = ElidedLabel(source, level=3, size=12)
        self.read_out = label("", level=2, size=12)
        self.read_out.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.chip = label("", size=12)
        self.chip.setProperty("chip", "plain")
        self.chip.setFixedHeight(20)
        self.chip.hide()
        header.addWidget(self.title)
        header.addWidget(self.source, 1)
        header.addWidget(self.read_out)
        header.addWidget(self.chip)
        self.header = header
        holder = QWidget()
        holder.setFixedHeight(28)
        holder.setLayout(header)
        outer.addWidget(holder)
        self.body = QVBoxLayout()
        self.body.setContentsMargins(0, 0, 0, 0)
        self.body.setSpacing(8)
        outer.addLayout(self.body, 1)

    def set_chip(self, text: str, kind: Literal["plain", "good", "warn", "bad"] = "plain") -> None:
        """Show a trust chip such as `modelled`; empty hides it."""
        set_text(self.chip, text)
        if self.chip.property("chip") != kind:
            self.chip.setProperty("chip", kind)
            repolish(self.chip)
        self.chip.setVisible(bool(text))


def rule() -> QFrame:
    """A one pixel divider."""
    line = QFrame()
    line.setProperty("rule", "true")
    line.setFixedHeight(1)
    return line
