"""A 28 x 16 switch with its label and the dot that says `differs from the baseline`."""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded, guarded_as

_TRACK_W, _TRACK_H, _HEIGHT, _GAP = 27.0, 15.0, 24, 36


class Switch(QAbstractButton):
    """Checkable; space toggles it, the label belongs to the hit area."""

    def __init__(self, text: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._differs = False
        self.setText(text)
        self.setCheckable(True)
        self.setFont(theme.font(12))
        self.setAccessibleName(text)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def set_differs(self, differs: bool) -> None:
        """Show or hide the accent dot."""
        if differs != self._differs:
            self._differs = differs
            self.update()

    @property
    def differs(self) -> bool:
        """True while the accent dot is shown."""
        return self._differs

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(_GAP + self.fontMetrics().horizontalAdvance(self.text()) + 18, _HEIGHT)

    @guarded_as(QSize())
    def minimumSizeHint(self) -> QSize:
        return QSize(_GAP + 40, _HEIGHT)

    @guarded
    def paintEvent(self, _event: QPaintEvent) -> None:
        theme, on, enabled = self._theme, self.isChecked(), self.isEnabled()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        top = (self.height() - _TRACK_H) / 2
        live = on and enabled
        painter.setPen(theme.color("accent" if live else "ctl" if enabled else "line2"))
        painter.setBrush(theme.color("accent" if live else "bg2"))
        painter.drawRoundedRect(QRectF(0.5, top, _TRACK_W, _TRACK_H), _TRACK_H / 2, _TRACK_H / 2)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("onAccent" if live else "ctl" if enabled else "line2"))
        painter.drawEllipse(QPointF(20.5 if on else 7.5, top + _TRACK_H / 2), 5, 5)
        room = self.width() - _GAP - (16 if self._differs else 2)
        text = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, max(room, 10))
        painter.setPen(theme.color("t1" if enabled else "t4"))
        painter.drawText(QRectF(_GAP, 0, room, self.height()), Qt.AlignmentFlag.AlignVCenter, text)
        if self._differs:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent"))
            x = _GAP + self.fontMetrics().horizontalAdvance(text) + 11
            painter.drawEllipse(QPointF(x, self.height() / 2), 3, 3)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(theme.pen("accent"))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
