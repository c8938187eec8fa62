"""The whole trace in one strip: stacked share of each kind of work, step numbers, and a frame around what is seen."""

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QMouseEvent, QPainter, QWheelEvent

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.timeline.state import TimelineState
from gptscope.app.gui.widgets.guarded import guarded
from gptscope.app.gui.widgets.painted import Painted
from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.timeline_axis import Axis
from gptscope.profiling.trace.categories import CATEGORIES
from gptscope.profiling.trace.table import STEP_PREFIX

GUTTER = 160
HEIGHT = 40
_TOP, _BAND = 15, 20
_LEAST_FRAME = 6


class Minimap(Painted):
    """Click or drag to move what is seen."""

    def __init__(self, state: TimelineState, theme: Theme) -> None:
        super().__init__(theme)
        self._state = state
        self._image: QImage | None = None
        self._made_for: tuple[object, ...] = ()
        self.setFixedHeight(HEIGHT)
        self.setAccessibleName("Whole trace")
        self.setToolTip("The whole trace. Click or drag to look elsewhere.")
        state.opened.connect(self.update)
        state.moved.connect(self.update)

    def _whole(self) -> Axis:
        return self._state.axis.widest()

    def _strip(self) -> QImage | None:
        timeline = self._state.timeline
        ratio = self.devicePixelRatioF()
        width = max(round((self.width() - GUTTER) * ratio), 1)
        key = (id(timeline), width, self.theme.name)
        if key != self._made_for and timeline is not None:
            self._made_for = key
            codes, shares = timeline.sums.shares(self._whole().edges(width))
            height = round(_BAND * ratio)
            filled = np.full((height, width), self.theme.color("bg1").rgb(), np.uint32)
            from_bottom = np.arange(height, 0, -1)[:, None] - 0.5
            total = np.zeros(width)
            for code, share in zip(codes, shares, strict=True):
                # A kind of work that is there at all has a pixel in some column, however short it is.
                upper = total + share * height
                upper = np.where((share > 0) & (np.floor(upper + 0.5) == np.floor(total + 0.5)), total + 1, upper)
                filled[(from_bottom > total) & (from_bottom <= upper)] = self.theme.category(CATEGORIES[code]).rgb()
                total = np.maximum(total, upper)
            self._pixels = filled
            self._image = QImage(filled.data, width, height, 4 * width, QImage.Format.Format_RGB32)
            self._image.setDevicePixelRatio(ratio)
        return self._image if timeline is not None else None

    def paint(self, painter: QPainter) -> None:
        theme, state = self.theme, self._state
        painter.fillRect(self.rect(), theme.color("bg1"))
        painter.fillRect(QRectF(0, 0, GUTTER, self.height()), theme.color("bg2"))
        painter.setPen(theme.pen("line"))
        painter.drawLine(0, self.height() - 1, self.width(), self.height() - 1)
        timeline = state.timeline
        if timeline is None:
            return
        painter.setFont(theme.font(11))
        painter.setPen(theme.color("t2"))
        text = f"Whole trace, {fmt.duration(timeline.span / 1e9)}"
        painter.drawText(QRectF(12, 0, GUTTER - 16, HEIGHT), Qt.AlignmentFlag.AlignVCenter, text)
        strip = self._strip()
        if strip is not None:
            painter.drawImage(GUTTER, _TOP, strip)
        self._draw_steps(painter)
        self._draw_frame(painter)

    def _draw_steps(self, painter: QPainter) -> None:
        timeline, whole, width = self._state.timeline, self._whole(), self.width() - GUTTER
        assert timeline is not None
        free_from = 0.0
        for step in timeline.steps:
            x = GUTTER + whole.x(step.start, width)
            if x < free_from:
                continue
            painter.setPen(self.theme.pen("ctl"))
            painter.drawLine(round(x), 3, round(x), _TOP - 1)
            name = step.name.removeprefix(STEP_PREFIX)
            painter.setPen(self.theme.color("t3"))
            painter.drawText(QRectF(x + 4, 1, 80, _TOP - 1), Qt.AlignmentFlag.AlignVCenter, name)
            free_from = x + 14 + 7 * len(name)

    def _draw_frame(self, painter: QPainter) -> None:
        axis, whole, width = self._state.axis, self._whole(), self.width() - GUTTER
        if self._state.range is not None:
            low, high = (GUTTER + whole.x(moment, width) for moment in self._state.range)
            painter.fillRect(QRectF(low, _TOP, max(high - low, 1), _BAND), self.theme.color("t1", 0.25))
        left, right = GUTTER + whole.x(axis.start, width), GUTTER + whole.x(axis.end, width)
        if right - left < _LEAST_FRAME:
            left, right = (left + right - _LEAST_FRAME) / 2, (left + right + _LEAST_FRAME) / 2
        painter.setPen(self.theme.pen("t1", 2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        frame = QRectF(left, 2, right - left, HEIGHT - 5).intersected(QRectF(GUTTER + 1, 2, width - 2, HEIGHT - 5))
        painter.drawRoundedRect(frame, 2, 2)

    def _go(self, x: float) -> None:
        centre = self._whole().time(x - GUTTER, self.width() - GUTTER)
        half = self._state.axis.length / 2
        self._state.look(self._state.axis.to(centre - half, centre + half))

    @guarded
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._go(event.position().x())

    @guarded
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._go(event.position().x())

    @guarded
    def wheelEvent(self, event: QWheelEvent) -> None:
        axis = self._state.axis
        centre = (axis.start + axis.end) / 2
        self._state.look(axis.zoomed(1.2 ** (event.angleDelta().y() / 120), centre))
        event.accept()
