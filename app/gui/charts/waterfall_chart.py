"""The waterfall: one row per group, bars from the baseline's step down to the candidate's, category totals below."""

import csv
import io
import itertools
from collections.abc import Sequence

from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QFontMetricsF, QPainter

from gptscope.app.gui.charts.pointed import Pointed
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded_as
from gptscope.app.viewmodels.charts.waterfall import NOT_PROFILED, WaterfallBar, WaterfallChart, chart_rows

_ROW, _ROW_MOST, _TOP = 20, 28, 22
_BAR_SHARE = 0.6
_NAME_MAX, _TIMES, _CHANGE = 176, 116, 76
_FOOT = 30


class WaterfallCanvas(Pointed[int]):
    """Paints a `WaterfallChart`; a row that is pointed at tells its numbers."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._chart: WaterfallChart | None = None
        self._area, self._row = QRectF(), float(_ROW)
        self._needed = 160
        self.setAccessibleName("Where the time went")
        self.setMinimumHeight(self._needed)

    @property
    def chart(self) -> WaterfallChart | None:
        """What is shown."""
        return self._chart

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(560, self._needed)

    @guarded_as(QSize())
    def minimumSizeHint(self) -> QSize:
        return QSize(420, self._needed)

    def keep_room(self, charts: Sequence[WaterfallChart | None]) -> None:
        """Be as high as the highest of these, so that nothing moves when another of them is shown."""
        rows = max((len(chart.rows) + 3 if chart is not None else 6 for chart in charts), default=6)
        self._needed = _TOP + rows * _ROW + _FOOT
        self.setMinimumHeight(self._needed)
        self.updateGeometry()

    def show_chart(self, chart: WaterfallChart | None) -> None:
        """Show a waterfall, or why there is none."""
        self._chart = chart
        self._drawn_anew()

    def paint(self, painter: QPainter) -> None:
        chart, theme = self._chart, self.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(12))
        if chart is None:
            painter.setPen(theme.color("t3"))
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(QRectF(self.rect()).adjusted(12, 4, -12, -4), int(flags), NOT_PROFILED)
            return
        rows = self._rows()
        self._row = self._row_height(len(rows))
        names = QFontMetricsF(theme.font(12, bold=True))
        name_width = min(max(names.horizontalAdvance(row.name) for row, _ in rows) + 4, _NAME_MAX)
        self._area = QRectF(
            name_width + _TIMES + 16,
            _TOP,
            max(self.width() - name_width - _TIMES - _CHANGE - 28, 60),
            self._row * len(rows),
        )
        self._paint_axis(painter, chart, name_width)
        if self._hit is not None:
            painter.fillRect(QRectF(0, _TOP + self._hit * self._row, self.width(), self._row), theme.color("bg3"))
        for index, (row, kind) in enumerate(rows):
            self._paint_row(
                painter, row, kind, QRectF(0, _TOP + index * self._row, self.width(), self._row), name_width
            )
        self._paint_links(painter, [row for row, kind in rows if kind != "overhead"], rows)
        self._paint_totals(painter, chart)

    def _row_height(self, rows: int) -> float:
        """Higher where there is room."""
        return min(max((self.height() - _TOP - _FOOT) / rows, _ROW), _ROW_MOST)

    def _rows(self) -> list[tuple[WaterfallBar, str]]:
        """Every line with what it is: `step`, `group`, `overhead`."""
        chart = self._chart
        assert chart is not None
        was, now = chart.overhead
        left_out = WaterfallBar("profiler overhead", was, now, "left out", "", 0.0, 0.0, "", 0)
        groups = [(row, "group") for row in chart.rows]
        return [(chart.baseline, "base"), *groups, (left_out, "overhead"), (chart.candidate, "step")]

    def _x(self, value: float) -> float:
        assert self._chart is not None
        return self._area.left() + self._chart.axis.position(value) * self._area.width()

    def _paint_axis(self, painter: QPainter, chart: WaterfallChart, name_width: float) -> None:
        theme = self.theme
        painter.setFont(theme.font(11))
        metrics = QFontMetricsF(painter.font())
        painter.setPen(theme.color("t3"))
        right = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        painter.drawText(QRectF(name_width, 0, _TIMES, _TOP - 4), right, "was → now")
        painter.drawText(QRectF(self.width() - _CHANGE, 0, _CHANGE, _TOP - 4), right, "change")
        for value, text in chart.axis.ticks:
            x = round(self._x(value)) + 0.5
            painter.setPen(theme.pen("grid"))
            painter.drawLine(QLineF(x, _TOP, x, self._area.bottom()))
            painter.setPen(theme.color("t3"))
            painter.drawText(QPointF(x - metrics.horizontalAdvance(text) / 2, 13), text)

    def _paint_row(self, painter: QPainter, row: WaterfallBar, kind: str, box: QRectF, name_width: float) -> None:
        theme = self.theme
        bold, quiet = kind in ("base", "step"), kind == "overhead"
        left = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        right = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        painter.setFont(theme.font(12, bold=bold))
        painter.setPen(theme.color("t3" if quiet else "t1"))
        name = QFontMetricsF(painter.font()).elidedText(row.name, Qt.TextElideMode.ElideRight, name_width)
        painter.drawText(QRectF(0, box.top(), name_width, box.height()), left, name)
        times = row.was if bold else f"{row.was} → {row.now}"
        painter.setPen(theme.color("t1" if bold else "t3" if quiet else "t2"))
        painter.drawText(QRectF(name_width, box.top(), _TIMES, box.height()), right, times)
        painter.setFont(theme.font(12, bold=bool(row.tone) and not quiet))
        painter.setPen(theme.color(row.tone or "t3"))
        painter.drawText(QRectF(self.width() - _CHANGE, box.top(), _CHANGE, box.height()), right, row.change)
        if quiet:
            return
        begin, end = sorted((self._x(row.start), self._x(row.end)))
        thick = round(box.height() * _BAR_SHARE)
        bar = QRectF(begin, box.center().y() - thick / 2, max(end - begin, 1.0), thick)
        self._paint_bar(painter, bar, row.category, kind)
        if kind == "step" and self._chart is not None:
            painter.setFont(theme.font(12, bold=True))
            painter.setPen(theme.color("t1"))
            text, width = self._chart.note, QFontMetricsF(painter.font()).horizontalAdvance(self._chart.note)
            inside = bar.right() + 8 + width > self._area.right()
            painter.setPen(theme.color("onAccent" if inside else "t1"))
            at = bar.right() - width - 6 if inside else bar.right() + 8
            painter.drawText(QRectF(at, box.top(), width + 2, box.height()), left, text)

    def _paint_bar(self, painter: QPainter, bar: QRectF, category: str, kind: str) -> None:
        theme = self.theme
        painter.setPen(Qt.PenStyle.NoPen)
        if kind == "base":
            painter.setBrush(theme.color("base"))
        elif kind == "step":
            painter.setBrush(theme.color("accent"))
        elif category == "gaps":
            painter.setPen(theme.pen("t3"))
            painter.setBrush(theme.hatch("t3"))
        elif category == "rest":
            painter.setPen(theme.pen("t3"))
            painter.setBrush(QBrush(Qt.BrushStyle.NoBrush))
        else:
            painter.setBrush(theme.category(category))
        painter.drawRect(bar.adjusted(0.5, 0.5, -0.5, -0.5) if category in ("gaps", "rest") else bar)

    def _paint_links(self, painter: QPainter, bars: list[WaterfallBar], rows: list[tuple[WaterfallBar, str]]) -> None:
        """A thin line from the end of each bar to the next one."""
        half = self._row * _BAR_SHARE / 2
        place = {id(row): _TOP + (index + 0.5) * self._row for index, (row, _) in enumerate(rows)}
        painter.setPen(self.theme.pen("ctl"))
        for upper, lower in itertools.pairwise(bars):
            x = self._x(upper.end)
            painter.drawLine(QLineF(x, place[id(upper)] + half, x, place[id(lower)] - half))

    def _paint_totals(self, painter: QPainter, chart: WaterfallChart) -> None:
        theme = self.theme
        top = self._area.bottom() + 6
        painter.setPen(theme.pen("line"))
        painter.drawLine(QLineF(0, top, self.width(), top))
        plain, strong = QFontMetricsF(theme.font(12)), QFontMetricsF(theme.font(12, bold=True))
        x, y = 0.0, top + 16
        for category, change, tone, title in chart.totals:
            width = 14 + plain.horizontalAdvance(title) + 5 + strong.horizontalAdvance(change) + 14
            if x + width > self.width():
                break
            self._paint_bar(painter, QRectF(x, y - 8, 8, 8), category, "group")
            painter.setFont(theme.font(12))
            painter.setPen(theme.color("t2"))
            painter.drawText(QPointF(x + 14, y), title)
            painter.setFont(theme.font(12, bold=True))
            painter.setPen(theme.color(tone or "t2"))
            painter.drawText(QPointF(x + 14 + plain.horizontalAdvance(title) + 5, y), change)
            x += width

    # ---------------------------------------------------------------------------------------------- pointing

    def _whole(self) -> str:
        chart = self._chart
        if chart is None:
            return NOT_PROFILED
        return ", ".join(f"{row.name} {row.change} {chart.unit}" for row in chart.rows)

    def _has_parts(self) -> bool:
        return self._chart is not None

    def _at(self, position: QPointF) -> int | None:
        if self._chart is None or position.y() < _TOP:
            return None
        rows = len(self._rows())
        number = int((position.y() - _TOP) // self._row_height(rows))
        return number if number < rows else None

    def _beside(self, hit: int | None, right: int, down: int) -> int | None:
        if self._chart is None:
            return None
        return 0 if hit is None else min(max(hit + right + down, 0), len(self._rows()) - 1)

    def _about(self, hit: int) -> str:
        assert self._chart is not None
        row, kind = self._rows()[hit]
        change = f", {row.change}" if kind == "group" else ""
        return f"{row.name}: was {row.was}, now {row.now} {self._chart.unit}{change}"

    def _key(self, _hit: int) -> str:
        return ""


def waterfall_csv(chart: WaterfallChart | None) -> str:
    """The rows as CSV, as shown, in the unit of the picture."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    unit = "us" if chart is not None and chart.unit == "µs" else "ms"
    writer.writerow(["group", f"was_{unit}", f"now_{unit}", f"change_{unit}"])
    for row in chart_rows(chart) if chart is not None else ():
        writer.writerow([text.replace("\u2212", "-").replace("\u202f", "") for text in row])
    return out.getvalue()
