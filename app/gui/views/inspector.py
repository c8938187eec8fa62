"""The inspector: what is known about the chosen kernel, and what proves each lever."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import label, rule, set_text, wrapped
from gptscope.app.gui.widgets.named_lines import NamedLines
from gptscope.app.viewmodels.inspect_kernel import Lines

WIDTH = 296
_PADDING, _SCROLL_BAR = 12, 12
_ICONS: dict[bool | None, tuple[str, str, str]] = {
    True: ("check", "good", "in effect"),
    False: ("cross", "bad", "not in effect"),
    None: ("info", "t3", "cannot tell"),
}


class Inspector(QFrame):
    """Fixed width; scrolls when there is more."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._evidence: tuple[tuple[str, bool | None, str], ...] = ()
        self.setProperty("panel", "true")
        self.setFixedWidth(WIDTH)
        self.setAccessibleName("Inspector")
        outer = QVBoxLayout(self)
        outer.setContentsMargins(1, 1, 1, 1)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inner = QWidget()
        inner.setProperty("fill", "bg1")
        column = QVBoxLayout(inner)
        column.setContentsMargins(_PADDING, 6, _PADDING, 8)
        column.setSpacing(2)
        head = QHBoxLayout()
        head.setSpacing(8)
        self._swatch, self._title = QLabel(), label("Chosen kernel", bold=True)
        head.addWidget(self._swatch)
        head.addWidget(self._title, 1)
        column.addLayout(head)
        self.lines = NamedLines(WIDTH - _SCROLL_BAR - 2 * _PADDING)
        self.lines.setContentsMargins(0, 2, 0, 4)
        column.addWidget(self.lines)
        self._proof = QWidget()
        self._proof_list = QVBoxLayout(self._proof)
        self._proof_list.setContentsMargins(0, 4, 0, 0)
        self._proof_list.setSpacing(4)
        column.addWidget(self._proof)
        column.addStretch(1)
        area.setWidget(inner)
        outer.addWidget(area)
        self._category = ""
        theme.changed.connect(self._repaint)
        self.show_nothing()

    def show_nothing(self) -> None:
        """Say what will be here."""
        self._category = ""
        self._swatch.hide()
        set_text(self._title, "Chosen kernel")
        self.lines.show_lines((("", "Choose a row or a dot to see all about it."),))

    def show_kernel(self, category: str, lines: Lines) -> None:
        """Show one kernel."""
        self._category = category
        self._paint_swatch()
        set_text(self._title, lines[0][1])
        self._title.setToolTip(lines[0][1])
        self._title.setMaximumWidth(WIDTH - 48)
        self.lines.show_lines(lines[1:])

    def _paint_swatch(self) -> None:
        self._swatch.setVisible(bool(self._category))
        if self._category:
            pixmap = QPixmap(8, 8)
            pixmap.fill(self._theme.category(self._category))
            self._swatch.setPixmap(pixmap)
            self._swatch.setFixedWidth(8)

    def show_evidence(self, items: tuple[tuple[str, bool | None, str], ...]) -> None:
        """Show what the profile proves about each lever."""
        self._evidence = items
        while (old := self._proof_list.takeAt(0)) is not None:
            widget = old.widget()
            if widget is not None:
                widget.hide()  # it is deleted only in the next turn of the event loop
                widget.deleteLater()
        self._proof.setVisible(bool(items))
        if not items:
            return
        self._proof_list.addWidget(rule())
        self._proof_list.addWidget(label("What proves the levers", bold=True))
        for lever, in_effect, sentence in items:
            icon, token, spoken = _ICONS[in_effect]
            line = QWidget()
            row = QHBoxLayout(line)
            row.setContentsMargins(0, 0, 0, 0)
            row.setSpacing(6)
            sign = QLabel()
            sign.setPixmap(self._theme.pixmap(icon, token, 14))
            sign.setAccessibleName(spoken)
            row.addWidget(sign, 0, Qt.AlignmentFlag.AlignTop)
            prefix = "" if in_effect is not False else "not in effect: "
            text = wrapped(f"{lever}: {prefix}{sentence}", level=2, size=12, tone="bad" if in_effect is False else "")
            row.addWidget(text, 1)
            self._proof_list.addWidget(line)

    def _repaint(self) -> None:
        self._paint_swatch()
        self.show_evidence(self._evidence)
