"""The progress strip over the Live view: phases with their bars, and the time that is left."""

from PySide6.QtCore import QLineF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QSizePolicy

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded_as
from gptscope.app.gui.widgets.painted import Painted
from gptscope.app.viewmodels.phases import PhaseCell, Strip

_HEIGHT, _RIGHT = 44, 108
_MIN_CELL = 64.0


class PhaseStrip(Painted):
    """Paints one `Strip`."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._strip: Strip | None = None
        self.setFixedHeight(_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Progress")

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(600, _HEIGHT)

    def show_strip(self, strip: Strip | None) -> None:
        """Show a strip; equal ones cost nothing."""
        if strip == self._strip:
            return
        self._strip = strip
        if strip is not None:
            active = next((cell for cell in strip.cells if cell.state == "active"), None)
            spoken = f"{active.title} {active.note}" if active else strip.left
            self.setAccessibleDescription(f"{spoken}. {strip.left} {strip.of}".strip())
        self.update()

    def paint(self, painter: QPainter) -> None:
        theme = self.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(theme.pen("line"))
        painter.setBrush(theme.color("bg1"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        if self._strip is None:
            return
        cells = self._strip.cells
        room = self.width() - 24 - _RIGHT - 12
        widths = cell_widths(cells, room, [self._needs(cell) for cell in cells])
        x = 12.0
        for cell, width in zip(cells, widths, strict=True):
            self._paint_cell(painter, cell, QRectF(x, 6, width - 2, 32))
            x += width
        box = QRectF(self.width() - 12 - _RIGHT, 5, _RIGHT, 17)
        right = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        painter.setFont(theme.font(12, bold=True))
        painter.setPen(theme.color("t1"))
        painter.drawText(box, right, self._strip.left)
        painter.setFont(theme.font(11))
        painter.setPen(theme.color("t3"))
        painter.drawText(box.translated(0, 16), right, self._strip.of)

    def _needs(self, cell: PhaseCell) -> float:
        bold, plain = self.theme.metrics(12, bold=True), self.theme.metrics(12)
        note = plain.horizontalAdvance(cell.note) + 10 if cell.note else 0.0
        return max(_MIN_CELL, bold.horizontalAdvance(cell.title) + note + 12)

    def _paint_cell(self, painter: QPainter, cell: PhaseCell, box: QRectF) -> None:
        theme = self.theme
        title_token = {"active": "t1", "done": "t1", "todo": "t2", "off": "t4"}[cell.state]
        painter.setFont(theme.font(12, bold=cell.state == "active"))
        metrics = theme.metrics(12, bold=cell.state == "active")
        left = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        line = QRectF(box.left(), box.top(), box.width() - 8, 17)
        painter.setPen(theme.color(title_token))
        painter.drawText(line, left, metrics.elidedText(cell.title, Qt.TextElideMode.ElideRight, line.width()))
        used = metrics.horizontalAdvance(cell.title) + 9
        if cell.note and line.width() - used > 16:
            painter.setFont(theme.font(12))
            painter.setPen(theme.color("t2" if cell.state == "active" else "t3"))
            note = theme.metrics(12).elidedText(cell.note, Qt.TextElideMode.ElideRight, line.width() - used)
            painter.drawText(line.adjusted(used, 0, 0, 0), left, note)
        track = QRectF(box.left(), box.bottom() - 7, box.width(), 4)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("bg4" if cell.state != "off" else "bg3"))
        painter.drawRoundedRect(track, 2, 2)
        if cell.state == "done":
            painter.setBrush(theme.color("base"))
            painter.drawRoundedRect(track, 2, 2)
        elif cell.state == "active" and cell.fraction is not None:
            painter.setBrush(theme.color("accent"))
            painter.drawRoundedRect(QRectF(track.left(), track.top(), max(4.0, track.width() * cell.fraction), 4), 2, 2)
        elif cell.state == "active":
            painter.setPen(QPen(theme.color("accent"), 4, Qt.PenStyle.DotLine, Qt.PenCapStyle.FlatCap))
            painter.drawLine(QLineF(track.left(), track.center().y(), track.right(), track.center().y()))


def cell_widths(cells: tuple[PhaseCell, ...], room: float, needs: list[float]) -> list[float]:
    """Every cell gets what its text needs, the rest is shared by weight; with too little room all shrink alike."""
    wanted = sum(needs)
    if wanted >= room:
        return [room * need / wanted for need in needs]
    total = sum(cell.weight for cell in cells)
    return [need + (room - wanted) * cell.weight / total for cell, need in zip(cells, needs, strict=True)]
