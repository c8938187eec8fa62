"""The row of sums under a table, aligned with its columns."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter

from gptscope.app.gui.tables.table_view import TableView
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded_as
from gptscope.app.gui.widgets.painted import Painted

_HEIGHT, _PADDING = 26, 8


class TotalBar(Painted):
    """Paints the table's footer: of all rows, or of those that a filter leaves."""

    def __init__(self, table: TableView, theme: Theme) -> None:
        super().__init__(theme)
        self._table = table
        self.setFixedHeight(_HEIGHT)
        self.setAccessibleName("Totals")
        header = table.horizontalHeader()
        header.sectionResized.connect(self.update)
        header.sectionMoved.connect(self.update)
        table.horizontalScrollBar().valueChanged.connect(self.update)
        table.columns.modelReset.connect(self._on_reset)
        table.columns.layoutChanged.connect(self.update)

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(200, _HEIGHT)

    def _on_reset(self) -> None:
        footer = self._table.columns.footer
        self.setVisible(bool(footer))
        self.setAccessibleDescription(", ".join(text for text in footer if text))
        self.update()

    def paint(self, painter: QPainter) -> None:
        theme, table = self.theme, self._table.columns.table
        painter.fillRect(self.rect(), theme.color("bg2"))
        painter.setPen(theme.pen("line"))
        painter.drawLine(0, 0, self.width(), 0)
        header = self._table.horizontalHeader()
        for index, (column, text) in enumerate(zip(table.columns, self._table.columns.footer, strict=False)):
            if not text:
                continue
            bold = index == 0 or self._table.columns.is_strong(index)
            painter.setFont(theme.font(12, bold=bold))
            painter.setPen(theme.color("t1" if bold else "t2"))
            left, width = header.sectionViewportPosition(index), header.sectionSize(index)
            box = QRectF(left + _PADDING, 0, width - 2 * _PADDING, _HEIGHT)
            side = Qt.AlignmentFlag.AlignRight if column.look == "number" else Qt.AlignmentFlag.AlignLeft
            shown = QFontMetricsF(painter.font()).elidedText(text, Qt.TextElideMode.ElideRight, box.width())
            painter.drawText(box, int(side | Qt.AlignmentFlag.AlignVCenter), shown)
