"""The machine during the run: small tiles with a number and its recent course."""

import itertools

from PySide6.QtCore import QLineF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QSizePolicy

from gptscope.app.gui.charts.marks import thinned
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded_as
from gptscope.app.gui.widgets.painted import Painted
from gptscope.app.viewmodels.charts.device import Tile

_TILE_MIN = 128


class DeviceTiles(Painted):
    """Paints the tiles side by side, wrapping when there are too many."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._tiles: tuple[Tile, ...] = ()
        self.setMinimumHeight(84)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Device")

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(400, 92)

    def show_tiles(self, tiles: tuple[Tile, ...]) -> None:
        """Show the newest values."""
        self._tiles = tiles
        self.setAccessibleDescription(", ".join(f"{t.title} {t.value} {t.of}".strip() for t in tiles))
        rows = self._rows()
        self.setMinimumHeight(84 * rows)
        self.update()

    def _columns(self) -> int:
        return max(1, min(len(self._tiles), (self.width() + 16) // (_TILE_MIN + 16))) if self._tiles else 1

    def _rows(self) -> int:
        columns = self._columns()
        return max(1, -(-len(self._tiles) // columns))

    def paint(self, painter: QPainter) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        columns, rows = self._columns(), self._rows()
        width = (self.width() - 16 * (columns - 1)) / columns
        height = self.height() / rows
        for index, tile in enumerate(self._tiles):
            row, column = divmod(index, columns)
            self._paint_tile(painter, tile, QRectF(column * (width + 16), row * height, width, height - 4))

    def _paint_tile(self, painter: QPainter, tile: Tile, box: QRectF) -> None:
        theme = self.theme
        painter.setFont(theme.font(12))
        painter.setPen(theme.color("t2"))
        title = theme.metrics(12).elidedText(tile.title, Qt.TextElideMode.ElideRight, box.width())
        painter.drawText(QRectF(box.left(), box.top(), box.width(), 16), int(Qt.AlignmentFlag.AlignVCenter), title)
        painter.setFont(theme.font(15, bold=True))
        painter.setPen(theme.color("t1" if not tile.value.startswith("n/a") else "t3"))
        value_box = QRectF(box.left(), box.top() + 17, box.width(), 20)
        painter.drawText(value_box, int(Qt.AlignmentFlag.AlignVCenter), tile.value)
        used = theme.metrics(15, bold=True).horizontalAdvance(tile.value)
        painter.setFont(theme.font(11))
        of = theme.metrics(11).elidedText(tile.of, Qt.TextElideMode.ElideRight, max(box.width() - used - 6, 0))
        painter.setPen(theme.color("t3"))
        painter.drawText(value_box, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), of)
        plot = QRectF(box.left(), box.top() + 42, box.width(), max(box.height() - 46, 10))
        painter.setPen(theme.pen("line2"))
        bottom = round(plot.bottom()) + 0.5
        painter.drawLine(QLineF(plot.left(), bottom, plot.right(), bottom))
        if tile.x.size < 2 or tile.top <= 0:
            return
        span = max(float(tile.x[-1]), 1.0)
        xs = plot.left() + tile.x / span * plot.width()
        ys = plot.bottom() - tile.y / tile.top * plot.height()
        xs, ys = thinned(xs, ys)
        painter.setPen(theme.pen("warn" if tile.warn else "t2", 1.2))
        dots = list(zip(xs.tolist(), ys.tolist(), strict=True))
        painter.drawLines([QLineF(*one, *two) for one, two in itertools.pairwise(dots)])  # far quicker than a polyline
