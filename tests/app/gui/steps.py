"""What several tests of the window do first, or again and again."""

from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from tests_app_quality_streams import compared

from gptscope.app.gui.timeline.canvas import RULER
from gptscope.app.gui.timeline.minimap import GUTTER
from gptscope.app.gui.timeline.rows import LANE
from gptscope.app.gui.views.quality import QualityView
from gptscope.app.gui.views.trace import TraceView
from gptscope.app.gui.window import QUALITY, MainWindow
from gptscope.profiling.records import Record


def opened(window: MainWindow, file: Path, qtbot: QtBot) -> TraceView:
    window.tracing.open(file)
    view = window.tracing.view
    assert view is not None
    with qtbot.waitSignal(view.loader.finished, timeout=30_000):
        pass
    QApplication.processEvents()
    return view


def point_of(view: TraceView, row: int) -> QPoint:
    """Where the middle of an event is on the canvas."""
    canvas, timeline = view.timeline.canvas, view.state.timeline
    assert timeline is not None
    place = timeline.place_of(row)
    assert place is not None
    lane = timeline.groups[place[0]].lanes[place[1]]
    top = next(one.top for one in canvas.rows.lanes if one.lane is lane)
    start, end = timeline.times(row)
    x = GUTTER + view.state.axis.x((start + end) / 2, canvas.lanes_width)
    return QPoint(round(x), RULER + top - canvas.offset + LANE // 2)


def row_of(view: TraceView, name: str, number: int = 0) -> int:
    trace = view.state.timeline.trace  # type: ignore[union-attr]
    return int(np.flatnonzero(trace.named_so(name.__eq__))[number])


def click(canvas: QWidget, x: float, y: float) -> None:
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=QPointF(x, y).toPoint())


def move(widget: Any, at: QPointF, button: Qt.MouseButton) -> None:
    kind, none = QEvent.Type.MouseMove, Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(widget, QMouseEvent(kind, at, widget.mapToGlobal(at), button, button, none))


def shown(window: MainWindow, session: Any, *extra: Record, **more: Any) -> QualityView:
    """Run a comparison and open the Quality view."""
    window.controller.run()
    session.feed(*compared(*extra, **more))
    window.show_view(QUALITY)
    assert window.quality is not None
    return window.quality
