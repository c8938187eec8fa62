"""The layer map: a cell per module, its colour the error that it adds alone; kept modules are framed and numbered."""

import math
from collections.abc import Iterator

from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import QSizePolicy

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded, guarded_as
from gptscope.app.gui.widgets.painted import Painted
from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.charts.layer_map import Cell, LayerMap, decade_text, read_out, short_kl

_NAMES, _SAVED, _LEGEND, _SUMS, _AXIS = 56.0, 116.0, 34.0, 44.0, 18.0
_BAR_MAX = 62.0
_LABEL_WIDTH = 36.0
_LABELLED = 3
"""Layers whose sums are written out: the largest."""


class LayerMapChart(Painted):
    """Click or Space keeps a module, or gives it back; arrow keys move between the cells."""

    hovered = Signal(str)  # the cell in words, empty when the pointer left
    toggled = Signal(str)  # path of the module

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._map: LayerMap | None = None
        self._at: tuple[int, int] | None = None
        self._keyboard = False
        self.setMouseTracking(True)
        self.setMinimumSize(420, 240)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Layer map")

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(900, 300)

    @property
    def shown(self) -> LayerMap | None:
        """What is shown."""
        return self._map

    def show_map(self, layer_map: LayerMap | None) -> None:
        """Show a map."""
        self._map = layer_map
        self.setAccessibleDescription(layer_map.summary if layer_map is not None else "")
        self.update()

    # ---------------------------------------------------------------------------------------------- geometry

    def _grid(self) -> QRectF:
        width = max(self.width() - _NAMES - _SAVED - 16, 40.0)
        height = max(self.height() - _LEGEND - _SUMS - _AXIS - 8, 40.0)
        return QRectF(_NAMES, 2.0, width, height)

    def cell_box(self, row: int, layer: int) -> QRectF:
        """Where a cell lies."""
        assert self._map is not None
        grid = self._grid()
        width, height = grid.width() / max(self._map.layers, 1), grid.height() / max(len(self._map.rows), 1)
        return QRectF(grid.left() + layer * width, grid.top() + row * height, width, height)

    def outside_box(self, index: int) -> QRectF:
        """Where a module that belongs to no layer lies."""
        return QRectF(self.width() - _SAVED + 4, self._grid().bottom() + _AXIS + 6 + index * 20, 16, 14)

    def _cell_at(self, position: QPointF) -> Cell | None:
        if self._map is None:
            return None
        for (row, layer), cell in self._map.cells.items():
            if self.cell_box(row, layer).contains(position):
                return cell
        for index, cell in enumerate(self._map.outside):
            if self.outside_box(index).adjusted(-2, -3, _SAVED - 20, 3).contains(position):
                return cell
        return None

    # ---------------------------------------------------------------------------------------------- interaction

    @guarded
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        cell = self._cell_at(event.position())
        self.setCursor(Qt.CursorShape.PointingHandCursor if cell is not None else Qt.CursorShape.ArrowCursor)
        self.hovered.emit(read_out(cell))

    @guarded
    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.hovered.emit("")

    @guarded
    def mousePressEvent(self, event: QMouseEvent) -> None:
        cell = self._cell_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and cell is not None:
            self._keyboard = False
            self.toggled.emit(cell.module)

    @guarded
    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {
            Qt.Key.Key_Left: (0, -1),
            Qt.Key.Key_Right: (0, 1),
            Qt.Key.Key_Up: (-1, 0),
            Qt.Key.Key_Down: (1, 0),
        }
        key = Qt.Key(event.key())
        if self._map is None or not self._map.cells:
            super().keyPressEvent(event)
        elif key in moves:
            row, layer = self._at or (0, 0)
            down, right = moves[key] if self._at is not None else (0, 0)
            self._at = (row + down) % len(self._map.rows), (layer + right) % self._map.layers
            self._keyboard = True
            self.hovered.emit(read_out(self._map.cells.get(self._at)))
            self.update()
        elif key in (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._at in self._map.cells:
            self.toggled.emit(self._map.cells[self._at].module)
        else:
            super().keyPressEvent(event)

    # ---------------------------------------------------------------------------------------------- painting

    def paint(self, painter: QPainter) -> None:
        if self._map is None:
            return
        self._paint_cells(painter, self._map)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_saved(painter, self._map)
        self._paint_sums(painter, self._map)
        self._paint_outside(painter, self._map)
        self._paint_legend(painter, self._map)

    def _paint_cells(self, painter: QPainter, shown: LayerMap) -> None:
        theme, grid = self.theme, self._grid()
        painter.setFont(theme.font(12))
        for row, name in enumerate(shown.rows):
            box = self.cell_box(row, 0)
            painter.setPen(theme.color("t2"))
            painter.drawText(
                QRectF(0, box.top(), _NAMES - 8, box.height()),
                int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter),
                name,
            )
        for (row, layer), cell in shown.cells.items():
            painter.fillRect(self.cell_box(row, layer).adjusted(0.5, 0.5, -0.5, -0.5), theme.heat(cell.level))
        for (row, layer), cell in shown.cells.items():
            if cell.rank:
                self._paint_kept(painter, cell, self.cell_box(row, layer))
        if self._keyboard and self.hasFocus() and self._at is not None and self._at in shown.cells:
            painter.setPen(theme.pen("accent", 2.0))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(self.cell_box(*self._at).adjusted(1, 1, -1, -1))
        painter.setFont(theme.font(11))
        painter.setPen(theme.color("t3"))
        top = grid.bottom() + 2
        painter.drawText(QRectF(0, top, _NAMES - 8, 14), int(Qt.AlignmentFlag.AlignRight), "layer")
        for layer in _layer_ticks(shown.layers):
            box = self.cell_box(0, layer)
            painter.drawText(QRectF(box.center().x() - 20, top, 40, 14), int(Qt.AlignmentFlag.AlignHCenter), str(layer))

    def _paint_kept(self, painter: QPainter, cell: Cell, box: QRectF) -> None:
        painter.setPen(self.theme.pen("t1", 2.0))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(box.adjusted(1, 1, -1, -1))
        text = str(cell.rank)
        painter.setFont(self.theme.font(11, bold=True))
        if QFontMetricsF(painter.font()).horizontalAdvance(text) <= box.width() - 4:
            painter.setPen(readable(self.theme.heat(cell.level)))
            painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), text)

    def _paint_saved(self, painter: QPainter, shown: LayerMap) -> None:
        theme, left = self.theme, self._grid().right() + 16
        longest = max((abs(value) for value in shown.row_saved_us), default=0.0) or 1.0
        painter.setFont(theme.font(11))
        factor = 1e-3 if shown.unit == "ms" else 1.0
        for row, saved in enumerate(shown.row_saved_us):
            box = self.cell_box(row, 0)
            width = max(_BAR_MAX * max(saved, 0.0) / longest, 1.0)
            painter.fillRect(
                QRectF(left, box.center().y() - 5, width, 10), theme.color("base" if saved >= 0 else "bad")
            )
            painter.setPen(theme.color("t2" if saved >= 0 else "bad"))
            painter.drawText(QPointF(left + width + 6, box.center().y() + 4), fmt.number(saved * factor))
        painter.setPen(theme.color("t3"))
        painter.drawText(QPointF(left, self._grid().bottom() + 13), f"{shown.unit} saved per {shown.per}")

    def _paint_sums(self, painter: QPainter, shown: LayerMap) -> None:
        theme, grid = self.theme, self._grid()
        bottom, room = grid.bottom() + _AXIS + _SUMS, _SUMS - 16
        painter.setFont(theme.font(11))
        painter.setPen(theme.color("t2"))
        right = int(Qt.AlignmentFlag.AlignRight)
        painter.drawText(QRectF(0, bottom - 28, _NAMES - 8, 14), right, "sum")
        painter.setPen(theme.color("t3"))
        painter.drawText(QRectF(0, bottom - 14, _NAMES - 8, 14), right, "nats")
        highest = max(shown.sums, default=0.0)
        labelled = self._labelled(shown)
        for layer, total in enumerate(shown.sums):
            box = self.cell_box(0, layer)
            height = max(room * total / highest, 1.0) if highest > 0 else 1.0
            painter.fillRect(QRectF(box.left() + 0.5, bottom - height, box.width() - 1, height), theme.color("base"))
            if layer in labelled and highest > 0:
                painter.setPen(theme.color("t2"))
                text = QRectF(box.center().x() - 24, bottom - height - 14, 48, 13)
                painter.drawText(text, int(Qt.AlignmentFlag.AlignHCenter), short_kl(total))
        painter.setPen(theme.pen("line2"))
        painter.drawLine(QLineF(grid.left(), bottom + 0.5, grid.right(), bottom + 0.5))

    def _labelled(self, shown: LayerMap) -> list[int]:
        """The layers with the largest sums, as far as their figures do not run into each other."""
        chosen: list[int] = []
        for layer in sorted(range(len(shown.sums)), key=lambda layer: -shown.sums[layer])[:_LABELLED]:
            x = self.cell_box(0, layer).center().x()
            if all(abs(self.cell_box(0, other).center().x() - x) >= _LABEL_WIDTH for other in chosen):
                chosen.append(layer)
        return chosen

    def _paint_outside(self, painter: QPainter, shown: LayerMap) -> None:
        for index, cell in enumerate(shown.outside):
            box = self.outside_box(index)
            painter.fillRect(box, self.theme.heat(cell.level))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(self.theme.pen("t1", 2.0) if cell.rank else self.theme.pen("ctl"))
            painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))
            painter.setFont(self.theme.font(11))
            painter.setPen(self.theme.color("t2"))
            painter.drawText(QPointF(box.right() + 6, box.bottom() - 3), f"{cell.title} {short_kl(cell.kl)}")

    def _paint_legend(self, painter: QPainter, shown: LayerMap) -> None:
        theme, top = self.theme, self.height() - _LEGEND + 8
        width, steps = 220.0, 44
        for step in range(steps):
            box = QRectF(step * width / steps, top, width / steps + 0.5, 10)
            painter.fillRect(box, theme.heat((step + 0.5) / steps))
        painter.setFont(theme.font(11))
        painter.setPen(theme.color("t3"))
        for value in _decades(shown.low, shown.high):
            x = width * (math.log10(value) - math.log10(shown.low)) / (math.log10(shown.high) - math.log10(shown.low))
            text = decade_text(value)
            wide = QFontMetricsF(painter.font()).horizontalAdvance(text)
            left = min(max(x - wide / 2, 0), width + 8 - wide)
            painter.drawText(QPointF(left, top + 22), text)
        painter.setPen(theme.pen("t1", 2.0))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(QRectF(width + 17, top, 14, 11))
        painter.setPen(theme.color("t2"))
        painter.setFont(theme.font(12))
        kept = "kept, worst first     Effects do not add up exactly: verify a mix before trusting it."
        painter.drawText(
            QPointF(width + 38, top + 10),
            QFontMetricsF(painter.font()).elidedText(kept, Qt.TextElideMode.ElideRight, self.width() - width - 42),
        )


def _layer_ticks(layers: int) -> Iterator[int]:
    step = 1 if layers <= 12 else 5 if layers <= 60 else 10
    for layer in range(0, layers, step):
        if layer == 0 or layers - 1 - layer >= step / 2 or layer == layers - 1:
            yield layer
    if layers > 1 and (layers - 1) % step:
        yield layers - 1


def _decades(low: float, high: float) -> list[float]:
    first, last = round(math.log10(low)), round(math.log10(high))
    return [10.0**power for power in range(first, last + 1)]


def readable(background: QColor) -> QColor:
    """Black or white, whichever contrasts more."""

    def linear(value: float) -> float:
        return float(value / 12.92) if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)

    red, green, blue = (linear(part) for part in (background.redF(), background.greenF(), background.blueF()))
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return QColor("black" if (luminance + 0.05) ** 2 > 0.05 * 1.05 else "white")
