"""Charts into files: PNG at twice the size, SVG and PDF as vectors, CSV from the chart's data."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QMarginsF, QPoint, QRect, QSize, QSizeF
from PySide6.QtGui import QPageSize, QPainter, QPdfWriter, QPixmap, QRegion
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

PNG_SCALE = 2.0


@dataclass(frozen=True)
class Exportable:
    """A drawn thing with its data."""

    title: str
    widget: QWidget
    csv: Callable[[], str]


def export_chart(chart: Exportable, file: Path) -> None:
    """Write a chart; the file's ending says how.

    Raises:
        OSError: the file cannot be written.
        ValueError: the ending is none of png, svg, pdf, csv.
    """
    kind = file.suffix.lower().removeprefix(".")
    if kind == "csv":
        file.write_text(chart.csv(), "utf-8", newline="")
        return
    file.write_bytes(b"")  # Qt's writers fail silently: find out now whether this place can be written
    if kind == "png":
        _png(chart.widget, file)
    elif kind == "svg":
        _svg(chart.widget, file, chart.title)
    elif kind == "pdf":
        _pdf(chart.widget, file, chart.title)
    else:
        raise ValueError(
            f"A chart can be saved as .png, .svg, .pdf or .csv, not as {file.suffix or 'a file without ending'}."
        )


def _png(widget: QWidget, file: Path) -> None:
    pixmap = QPixmap(widget.size() * PNG_SCALE)
    pixmap.setDevicePixelRatio(PNG_SCALE)
    pixmap.fill(widget.palette().window().color())
    widget.render(pixmap)
    if not pixmap.save(str(file), "PNG"):
        raise OSError(f"{file} could not be written.")


def _svg(widget: QWidget, file: Path, title: str) -> None:
    generator = QSvgGenerator()
    generator.setFileName(str(file))
    generator.setSize(widget.size())
    generator.setViewBox(QRect(QPoint(0, 0), widget.size()))
    generator.setResolution(widget.logicalDpiX())
    generator.setTitle(title)
    _render(widget, QPainter(generator), widget.size())


def _pdf(widget: QWidget, file: Path, title: str) -> None:
    writer = QPdfWriter(str(file))
    writer.setTitle(title)
    points = QSizeF(widget.width() * 72 / widget.logicalDpiX(), widget.height() * 72 / widget.logicalDpiY())
    writer.setPageSize(QPageSize(points, QPageSize.Unit.Point, "chart", QPageSize.SizeMatchPolicy.ExactMatch))
    writer.setPageMargins(QMarginsF(0, 0, 0, 0))
    writer.setResolution(widget.logicalDpiX())
    _render(widget, QPainter(writer), widget.size())


def _render(widget: QWidget, painter: QPainter, size: QSize) -> None:
    painter.fillRect(QRect(QPoint(0, 0), size), widget.palette().window())
    widget.render(painter, QPoint(0, 0), QRegion(), QWidget.RenderFlag.DrawChildren)
    painter.end()
