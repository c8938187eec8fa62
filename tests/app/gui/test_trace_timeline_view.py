"""The Trace view's timeline: choosing, selecting, zooming, searching, measuring, folding."""

from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QPainter, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from tests_app_steps import move, point_of, row_of
from tests_app_traces import LAYERS, STEPS

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.timeline.canvas import RULER
from gptscope.app.gui.timeline.headings import draw_headings
from gptscope.app.gui.timeline.minimap import GUTTER
from gptscope.app.gui.timeline.raster import Palette, draw
from gptscope.app.gui.timeline.rows import GAP, LANE, GroupRow, LaneRow, Rows
from gptscope.app.gui.views.trace import TraceView
from gptscope.app.gui.window import MainWindow
from gptscope.app.viewmodels.timeline_axis import Axis
from gptscope.app.viewmodels.timeline_pixels import LaneEvents


def test_the_name_of_a_group_stays_in_sight_while_its_lanes_are(look: Theme) -> None:
    group = GroupRow("a", 0, 400, "thread 1", "python", "thread", folded=False, hidden_lanes=0)

    def written(scroll: int) -> list[int]:
        """Heights at which the column holds more than its background and lines."""
        image = QImage(GUTTER, RULER + 200, QImage.Format.Format_RGB32)
        painter = QPainter(image)
        draw_headings(painter, look, Rows((group,), height=400), scroll, 200, "ms")
        painter.end()
        background = look.color("bg2").name()
        inside = range(RULER + 1, RULER + 190)
        return [y - RULER for y in inside if any(image.pixelColor(x, y).name() != background for x in range(28, 150))]

    assert written(0) == written(100) == written(200)
    assert max(written(200)) < 40
    assert max(written(380)) < 20, "the end of the group pushes it out"


def test_a_click_chooses_an_event_with_details_links_and_arguments(view: TraceView, qtbot: QtBot) -> None:
    row = row_of(view, "flash_fwd_kernel", 5)
    view.timeline.show_row(row)
    view.state.choose(None)
    QTest.mouseClick(view.timeline.canvas, Qt.MouseButton.LeftButton, pos=point_of(view, row))
    assert view.state.row == row
    assert view.inspector.title.text() == "flash_fwd_kernel"
    assert view.inspector.length.text().endswith("µs")
    texts = texts_of(view)
    assert "blocks.1.attn.core" in texts
    assert "attention" in texts
    qtbot.waitUntil(lambda: "correlation" in texts_of(view), timeout=10_000)
    link = next(b for b in buttons_of(view) if b.accessibleName() == "Launched by cudaLaunchKernel")
    link.click()
    assert view.state.timeline.trace.name_of(view.state.row) == "cudaLaunchKernel"  # type: ignore[union-attr]
    assert view.tables.views["kernels"].chosen_key() == "flash_fwd_kernel\nattention"


def texts_of(view: TraceView) -> list[str]:
    from PySide6.QtWidgets import QLabel

    QApplication.processEvents()  # new labels are shown in the next turn
    found = view.inspector.findChildren(QLabel)
    return [one.text().replace("\u200b", "") for one in found if one.isVisibleTo(view.inspector)]


def buttons_of(view: TraceView) -> list[Any]:
    from PySide6.QtWidgets import QPushButton

    return list(view.inspector.findChildren(QPushButton))


def test_dragging_selects_a_range_and_shows_its_sums(view: TraceView, qtbot: QtBot) -> None:
    canvas = view.timeline.canvas
    y = RULER + canvas.lanes_height - 12
    begin, end = QPoint(GUTTER + 100, y), QPoint(GUTTER + 400, y)
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=begin)
    for x in (GUTTER + 140, GUTTER + 300, GUTTER + 400):
        move(canvas, QPointF(x, y), Qt.MouseButton.LeftButton)
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=end)
    assert view.state.range is not None
    low, high = view.state.range
    width = canvas.lanes_width
    assert low == pytest.approx(view.state.axis.time(100, width), abs=view.state.axis.length * 5 / width)
    assert high == pytest.approx(view.state.axis.time(400, width), abs=view.state.axis.length * 5 / width)
    assert view.inspector.range_title.text() == "Selected range"
    assert "GEMM" in texts_of(view)
    view.tables.range_button.click()
    qtbot.waitUntil(lambda: not view.loader.busy, timeout=20_000)
    QApplication.processEvents()
    calls = sum(view.tables.views["kernels"].columns.table.columns[2].values)
    assert 0 < calls < STEPS * LAYERS * 5
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    assert view.state.range is None


def test_wheel_and_keys_zoom_and_move(view: TraceView) -> None:
    canvas, state = view.timeline.canvas, view.state
    whole = state.axis
    at = QPointF(GUTTER + 600, RULER + 40)
    under = state.axis.time(600, canvas.lanes_width)
    wheel = QWheelEvent(
        at, canvas.mapToGlobal(at), QPoint(), QPoint(0, 360), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(canvas, wheel)
    assert state.axis.length < whole.length
    assert state.axis.time(600, canvas.lanes_width) == pytest.approx(under)
    zoomed = state.axis
    QTest.keyClick(canvas, Qt.Key.Key_D)
    assert state.axis.start > zoomed.start
    QTest.keyClick(canvas, Qt.Key.Key_A)
    assert state.axis.start == pytest.approx(zoomed.start)
    QTest.keyClick(canvas, Qt.Key.Key_S)
    assert state.axis.length > zoomed.length
    QTest.keyClick(canvas, Qt.Key.Key_W)
    QTest.keyClick(canvas, Qt.Key.Key_F)
    assert state.axis == whole


def test_search_counts_and_steps(view: TraceView, qtbot: QtBot) -> None:
    view.focus_search()
    QTest.keyClicks(view.header.search, "gelu")
    qtbot.waitUntil(lambda: view.header.found.text() == f"{2 * STEPS * LAYERS} found", timeout=5_000)
    QTest.keyClick(view.header.search, Qt.Key.Key_Return)
    assert view.header.found.text() == f"1 of {2 * STEPS * LAYERS}" or "of" in view.header.found.text()
    first = view.state.row
    QTest.keyClick(view.timeline.canvas, Qt.Key.Key_N)
    assert view.state.row != first
    QTest.keyClick(view.timeline.canvas, Qt.Key.Key_N, Qt.KeyboardModifier.ShiftModifier)
    assert view.state.row == first


def test_measuring_between_two_clicks_snaps_to_edges(view: TraceView) -> None:
    row = row_of(view, "flash_fwd_kernel", 2)
    view.timeline.show_row(row)
    start, end = view.state.timeline.times(row)  # type: ignore[union-attr]
    view.header.measure.click()
    canvas = view.timeline.canvas
    middle = point_of(view, row)
    for moment, beside in ((start, 1), (end, -1)):
        x = GUTTER + view.state.axis.x(moment, canvas.lanes_width) + beside
        QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=QPoint(round(x), middle.y()))
    assert view.state.marks == (start, end)
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    assert view.state.marks == ()
    assert not view.header.measure.isChecked()


def test_a_click_on_a_heading_folds_the_group(view: TraceView) -> None:
    canvas = view.timeline.canvas
    before = canvas.rows.height
    group = next(one for one in canvas.rows.groups if one.kind == "modules")
    at = QPoint(20, RULER + group.top - canvas.offset + 8)
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=at)
    assert canvas.rows.height < before
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=at)
    assert canvas.rows.height == before


def test_an_event_of_no_length_leaves_ink_in_the_picture(window: MainWindow) -> None:
    one = np.array([50.0])
    lane = LaneEvents.build(np.array([0], np.int32), one, one, np.array([3], np.uint8))
    rows = Rows((), (LaneRow(0, lane, 0),), (), LANE)
    picture = draw(rows, Axis(0.0, 100.0, 0.0, 100.0), Palette(window.theme), (200, LANE), 0, 1.0, ())
    column = picture.pixels[: LANE - GAP, 100]
    ground = window.theme.color("bg1").rgb()
    assert (column != ground).all()
    assert (picture.pixels[: LANE - GAP, 101:] == ground).all()
