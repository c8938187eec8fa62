"""The bar under the bandwidth chart: what the bytes of one step consist of."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import QSizePolicy

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded_as
from gptscope.app.gui.widgets.painted import Painted
from gptscope.app.viewmodels import formatting as fmt

_TOKENS = ("base", "t1", "ctl", "line2", "t3")


class BytesBar(Painted):
    """Shares of weights, KV, activations (and gradients, optimizer) with their sizes below."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._parts: tuple[tuple[str, float], ...] = ()
        self._unit = "token"
        self.setFixedHeight(30)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Bytes per step by kind")

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(200, 30)

    def show_parts(self, parts: tuple[tuple[str, float], ...], unit: str) -> None:
        """Show what one token, prompt or step moves."""
        if (parts, unit) != (self._parts, self._unit):
            self._parts, self._unit = parts, unit
            self.setAccessibleDescription(self._text())
            self.setToolTip(self._text())
            self.update()

    def _text(self) -> str:
        return f"Bytes per {self._unit}: " + ", ".join(
            f"{name} {fmt.quantity(size, 'bytes')}" for name, size in self._parts
        )

    def paint(self, painter: QPainter) -> None:
        total = sum(size for _, size in self._parts)
        if total <= 0:
            return
        painter.setPen(Qt.PenStyle.NoPen)
        x = 0.0
        for (_, size), token in zip(self._parts, _TOKENS, strict=False):
            width = self.width() * size / total
            painter.fillRect(QRectF(x, 0, max(width - 1, 0.5), 8), self.theme.color(token))
            x += width
        painter.setFont(self.theme.font(11))
        painter.setPen(self.theme.color("t2"))
        text = QFontMetricsF(painter.font()).elidedText(self._text(), Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(QRectF(0, 12, self.width(), 16), int(Qt.AlignmentFlag.AlignVCenter), text)
