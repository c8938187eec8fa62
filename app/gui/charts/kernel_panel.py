"""Kernel time per token: stacked bars of now and baseline, then the longest kernels with a baseline tick."""

from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter

from gptscope.app.gui.charts.pointed import Pointed
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.guarded import guarded_as
from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.charts.kernel_times import WAITING, KernelTimes, Row, Slice

_ROW, _BAR, _NAME_MAX, _NUMBER = 20, 12, 190, 52
_TOP_ROW = 20


class KernelChart(Pointed[Row]):
    """Paints `KernelTimes`; a row that is pointed at tells its numbers."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._times: KernelTimes | None = None
        self._empty = WAITING
        self.setMinimumHeight(180)
        self.setAccessibleName("Kernel time")

    @guarded_as(QSize())
    def sizeHint(self) -> QSize:
        return QSize(420, 240)

    @property
    def rows_that_fit(self) -> int:
        """How many kernels the height has room for."""
        return max(3, (self.height() - 2 * _TOP_ROW - 14) // _ROW)

    @property
    def times(self) -> KernelTimes | None:
        """What is shown."""
        return self._times

    def show_times(self, times: KernelTimes | None, empty: str = WAITING) -> None:
        """Show a profile, or the sentence why there is none."""
        self._times, self._empty = times, empty
        self._drawn_anew()

    def paint(self, painter: QPainter) -> None:
        theme = self.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(12))
        if self._times is None:
            painter.setPen(theme.color("t3"))
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(QRectF(self.rect()).adjusted(12, 4, -12, -4), int(flags), self._empty)
            return
        times, metrics = self._times, QFontMetricsF(painter.font())
        names = [metrics.horizontalAdvance(row.name) for row in times.rows]
        name_width = min(max([*names, 60.0]) + 4, _NAME_MAX, self.width() * 0.36)
        with_base = times.base_total_ms is not None
        right = self.width() - (_NUMBER * (2 if with_base else 1))
        bar_left, bar_width = name_width + 8, max(right - name_width - 20, 20.0)
        self._paint_totals(painter, times, bar_left, bar_width, right)
        top = self._first_top()
        painter.setPen(theme.pen("line"))
        painter.drawLine(QLineF(0, top - 3.5, self.width(), top - 3.5))
        longest = max((max(r.ms, r.base_ms or 0.0) for r in times.rows), default=1.0) or 1.0
        for index, row in enumerate(times.rows):
            y = top + index * _ROW
            if y + _ROW > self.height():
                break
            self._paint_name(painter, row.name, QRectF(0, y, name_width, _ROW))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.category(row.category))
            width = max(bar_width * row.ms / longest, 1.0)
            middle = y + _ROW / 2
            if row == self._hit:
                painter.setPen(theme.pen("t1"))
            painter.drawRoundedRect(QRectF(bar_left, middle - _BAR / 2, width, _BAR), 1, 1)
            if row.base_ms is not None:
                tick = bar_left + bar_width * row.base_ms / longest
                painter.setPen(theme.pen("base", 1.0))
                painter.drawLine(QLineF(min(bar_left + width, tick), middle, max(bar_left + width, tick), middle))
                painter.setPen(theme.pen("base", 1.5))
                painter.drawLine(QLineF(tick, middle - 6, tick, middle + 6))
            self._paint_number(painter, fmt.number(row.ms), QRectF(right, y, _NUMBER, _ROW), bold=True)
            if with_base:
                text = fmt.number(row.base_ms) if row.base_ms is not None else "n/a"
                self._paint_number(painter, text, QRectF(right + _NUMBER, y, _NUMBER, _ROW), bold=False)

    def _paint_totals(self, painter: QPainter, times: KernelTimes, left: float, width: float, right: float) -> None:
        longest = max(times.total_ms, times.base_total_ms or 0.0) or 1.0
        scale = (width - 60) / longest
        head = QRectF(right, 0, _NUMBER, _TOP_ROW)
        self._paint_number(painter, "now ms", head, bold=False)
        bars = [("this run", times.slices, times.total_ms, False)]
        if times.base_total_ms is not None:
            bars.append(("baseline", times.base_slices, times.base_total_ms, True))
            self._paint_number(painter, "base", head.translated(_NUMBER, 0), bold=False)
        for index, (name, slices, total, is_base) in enumerate(bars):
            y = index * _TOP_ROW
            painter.setFont(self.theme.font(12, bold=not is_base))
            painter.setPen(self.theme.color("t2" if is_base else "t1"))
            box = QRectF(0, y, left - 8, _TOP_ROW)
            painter.drawText(box, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), name)
            x = self._paint_stack(painter, slices, left, y + 2, scale, is_base=is_base)
            painter.setFont(self.theme.font(12, bold=not is_base))
            painter.setPen(self.theme.color("t2" if is_base else "t1"))
            painter.drawText(QPointF(x + 6, y + 14), f"{fmt.number(total)} ms")
        painter.setFont(self.theme.font(12))

    def _paint_stack(
        self, painter: QPainter, slices: tuple[Slice, ...], left: float, top: float, scale: float, *, is_base: bool
    ) -> float:
        x = left
        painter.setFont(self.theme.font(11))
        metrics = QFontMetricsF(painter.font())
        for part in slices:
            width = part.ms * scale
            box = QRectF(x, top, max(width - 1, 0.5), 15)
            colour = self.theme.category(part.category)
            fill = QColor(colour)
            if is_base:
                fill.setAlphaF(0.4)
            painter.setPen(colour if is_base else Qt.PenStyle.NoPen)
            painter.setBrush(fill)
            painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5) if is_base else box)
            text = f"{part.title} {fmt.number(part.ms)}"
            if metrics.horizontalAdvance(text) + 10 <= width:
                painter.setPen(self.theme.color("t1") if is_base else self.theme.category_label(part.category))
                painter.drawText(box.adjusted(5, 0, 0, 0), int(Qt.AlignmentFlag.AlignVCenter), text)
            x += width
        return x

    def _paint_name(self, painter: QPainter, name: str, box: QRectF) -> None:
        painter.setFont(self.theme.font(12))
        painter.setPen(self.theme.color("t1"))
        text = QFontMetricsF(painter.font()).elidedText(name, Qt.TextElideMode.ElideMiddle, box.width())
        painter.drawText(box, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), text)

    def _paint_number(self, painter: QPainter, text: str, box: QRectF, *, bold: bool) -> None:
        painter.setFont(self.theme.font(12, bold=bold))
        painter.setPen(self.theme.color("t1" if bold else "t2"))
        painter.drawText(box, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), text)

    # ---------------------------------------------------------------------------------------------- pointing

    def _whole(self) -> str:
        return self._times.summary if self._times is not None else self._empty

    def _has_parts(self) -> bool:
        return self._times is not None and bool(self._times.rows)

    def _first_top(self) -> int:
        """Where the first kernel's row begins."""
        return _TOP_ROW * (2 if self._times is not None and self._times.base_total_ms is not None else 1) + 8

    def _shown(self) -> tuple[Row, ...]:
        room = max((self.height() - self._first_top()) // _ROW, 0)
        return self._times.rows[:room] if self._times is not None else ()

    def _at(self, position: QPointF) -> Row | None:
        rows, number = self._shown(), int((position.y() - self._first_top()) // _ROW)
        return rows[number] if 0 <= number < len(rows) else None

    def _beside(self, hit: Row | None, right: int, down: int) -> Row | None:
        rows = self._shown()
        if not rows:
            return None
        return rows[min(max(rows.index(hit) + right + down, 0), len(rows) - 1)] if hit in rows else rows[0]

    def _about(self, hit: Row) -> str:
        base = f", baseline {fmt.number(hit.base_ms)} ms" if hit.base_ms is not None else ""
        return f"{hit.name} ({hit.category}): {fmt.number(hit.ms)} ms{base}"

    def _key(self, _hit: Row) -> str:
        return ""


def kernel_csv(times: KernelTimes | None) -> str:
    """The panel's rows as CSV."""
    lines = ["kernel,category,ms,baseline_ms"]
    for row in times.rows if times is not None else ():
        name = row.name.replace('"', '""')
        lines.append(f'"{name}",{row.category},{row.ms!r},{"" if row.base_ms is None else repr(row.base_ms)}')
    return "\n".join(lines) + "\n"
