"""A path to type or to choose."""

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from gptscope.app.gui.widgets.basics import button


class PathField(QWidget):
    """`changed` tells the path when a person has typed or chosen one; `pick` asks for one, starting at the present."""

    changed = Signal(str)

    def __init__(self, name: str, pick: Callable[[QWidget, str], str], *, placeholder: str = "", tip: str = "") -> None:
        super().__init__()
        self._pick, self._tip = pick, tip
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        self.line = QLineEdit()
        self.line.setPlaceholderText(placeholder)
        self.line.setAccessibleName(name)
        self.line.setAccessibleDescription(tip)
        self.line.setMinimumWidth(40)
        self.line.editingFinished.connect(lambda: self._take(self.line.text().strip()))
        self.choose = button("…", self._ask, kind="icon", tip="Choose…", name=f"Choose: {name}")
        self.choose.setAutoDefault(False)
        row.addWidget(self.line, 1)
        row.addWidget(self.choose)
        self.setFocusProxy(self.line)
        self.set_path("")

    def path(self) -> str:
        """What stands there."""
        return self.line.text().strip()

    def set_path(self, path: str) -> None:
        """Show a path without telling it back."""
        if self.line.text() != path:
            self.line.setText(path)
        whole = f"{path}\n\n{self._tip}" if path and self._tip else path or self._tip
        self.line.setToolTip(whole)  # a long path is cut off

    def _ask(self) -> None:
        path = self._pick(self, self.path())
        if path:
            self._take(path)

    def _take(self, path: str) -> None:
        self.set_path(path)
        self.changed.emit(path)
