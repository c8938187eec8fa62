"""The Trace view: opening in every way, choosing, selecting, searching, measuring, exporting, comparing, refusing."""

import gc
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QImage, QMouseEvent, QPainter, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QWidget
from pytestqt.qtbot import QtBot
from tests_app_traces import KINDS, LAYERS, STEPS, write_trace

from gptscope.app.gui.charts.bars_chart import BarsCanvas
from gptscope.app.gui.charts.canvas import PlotCanvas
from gptscope.app.gui.charts.columns_chart import ColumnsCanvas
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.timeline.canvas import RULER
from gptscope.app.gui.timeline.headings import draw_headings
from gptscope.app.gui.timeline.minimap import GUTTER
from gptscope.app.gui.timeline.raster import Palette, draw
from gptscope.app.gui.timeline.rows import GAP, LANE, GroupRow, LaneRow, Rows
from gptscope.app.gui.tracing import looks_like_trace
from gptscope.app.gui.views.trace import TraceView
from gptscope.app.gui.window import MainWindow
from gptscope.app.viewmodels.timeline_axis import Axis
from gptscope.app.viewmodels.timeline_pixels import LaneEvents
from gptscope.profiling.trace import open_trace
from gptscope.profiling.trace.analysis.gaps import CAUSES, idle_gaps


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "run.json.gz")


def opened(window: MainWindow, file: Path, qtbot: QtBot) -> TraceView:
    window.tracing.open(file)
    view = window.tracing.view
    assert view is not None
    with qtbot.waitSignal(view.loader.finished, timeout=30_000):
        pass
    QApplication.processEvents()
    return view


@pytest.fixture
def view(window: MainWindow, file: Path, qtbot: QtBot) -> TraceView:
    return opened(window, file, qtbot)


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


def test_a_dropped_trace_opens_and_a_dropped_model_does_not(window: MainWindow, file: Path, qtbot: QtBot) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(file))])
    at, none = QPoint(500, 300).toPointF(), Qt.KeyboardModifier.NoModifier
    window.dropEvent(QDropEvent(at, Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, none))
    view = window.tracing.view
    assert view is not None
    qtbot.waitUntil(lambda: view.trace is not None and not view.loader.busy, timeout=30_000)
    assert window.current_view() is view
    assert view.header.name.text() == "run.json.gz"
    assert "1 thing not recorded" in view.header.health.text() or "nothing mended" in view.header.health.text()
    assert "Made-up GPU" in view.header.about.text()
    assert window.settings.recent_traces == [str(file)]
    model = file.parent / "model.gguf"
    model.write_bytes(b"GGUF\x03")
    assert looks_like_trace(file)
    assert not looks_like_trace(model)
    assert not looks_like_trace(file.parent)


def test_ctrl_o_and_the_first_screen_open_a_trace(
    window: MainWindow, file: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(file), ""))
    window.actions_by_id["open_trace"].trigger()
    view = window.tracing.view
    assert view is not None
    qtbot.waitUntil(lambda: view.trace is not None and not view.loader.busy, timeout=30_000)
    window.first.trace_wanted.emit(str(file))
    assert view.loader.busy
    qtbot.waitUntil(lambda: not view.loader.busy, timeout=30_000)


def test_all_tables_are_filled_and_rows_lead_to_the_timeline(view: TraceView) -> None:
    kernels = view.tables.views["kernels"]
    assert kernels.columns.rowCount() == 5
    assert sum(kernels.columns.table.columns[2].values) == STEPS * LAYERS * 5
    assert view.tables.views["steps"].columns.rowCount() == STEPS
    modules = view.tables.views["modules"].columns.table.keys
    assert {"blocks.*", *(f"blocks.*.{name}" for name in ("norm", "attn.qkv", "attn.core", "mlp.up"))} <= set(modules)
    assert view.tables.views["gaps"].columns.rowCount() >= 1
    assert view.tables.views["devices"].columns.rowCount() == 1
    place = kernels.columns.shown_row("flash_fwd_kernel\nattention")
    assert place is not None
    kernels.selectRow(place)
    assert view.state.row is not None
    assert view.state.timeline.trace.name_of(view.state.row) == "flash_fwd_kernel"  # type: ignore[union-attr]
    view.tables.show_tab("steps")
    view.tables.views["steps"].selectRow(1)
    step = view.state.timeline.steps[1]  # type: ignore[union-attr]
    assert view.state.range == (step.start, step.end)
    assert view.state.axis.start < step.start < step.end < view.state.axis.end
    timeline, gaps = view.state.timeline, view.tables.views["gaps"]
    assert timeline is not None
    found = idle_gaps(timeline.linked)
    view.tables.show_tab("gaps")
    for number in range(gaps.columns.rowCount()):
        gaps.selectRow(number)
        lengths = [
            length
            for length, cause in zip(found.duration_ns.tolist(), found.cause, strict=True)
            if cause == gaps.chosen_key().split("\n")[1]
        ]
        assert view.state.range is not None
        low, high = view.state.range
        assert high - low == max(lengths)
        place = found.start_ns.tolist().index(round(low) + timeline.origin_ns)
        assert found.duration_ns[place] == high - low


def test_the_whole_sentence_of_a_chosen_finding_is_told(window: MainWindow, view: TraceView) -> None:
    view.tables.show_tab("gaps")
    gaps = view.tables.front()
    gaps.selectRow(0)
    cause = gaps.chosen_key().split("\n")[1]
    assert window.status_text.text() == CAUSES[cause]


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


def click(canvas: QWidget, x: float, y: float) -> None:
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=QPointF(x, y).toPoint())


def test_parts_of_charts_are_rows_of_tables_and_events_or_times_of_the_timeline(view: TraceView) -> None:
    click_on_bars(view)
    click_on_columns(view)
    click_on_the_peak(view)


def click_on_bars(view: TraceView) -> None:
    bars = view.tables.chart.canvas
    assert isinstance(bars, BarsCanvas)
    assert [row.name for row in bars.chart.rows] == ["GEMM", "attention", "elementwise", "norm"]
    area = bars.area()
    height, _ = bars.shown_rows(area)
    click(bars, area.left() + 3, area.top() + 1.5 * height)
    assert view.tables.views["kernels"].chosen_key() == "flash_fwd_kernel\nattention"
    assert view.state.timeline.trace.name_of(view.state.row) == "flash_fwd_kernel"  # type: ignore[union-attr]
    assert bars.chosen_key == "flash_fwd_kernel\nattention"
    view.timeline.show_row(row_of(view, "void layer_norm_kernel<float>(int)", 2))
    assert bars.chosen_key == "void layer_norm_kernel<float>(int)\nnorm"
    view.tables.show_tab("operators")
    assert bars.chosen_key == "aten::layer_norm"


def click_on_columns(view: TraceView) -> None:
    view.tables.show_tab("steps")
    columns = view.tables.chart.canvas
    assert isinstance(columns, ColumnsCanvas)
    assert columns.chart.layers[0].name == "compute"
    left, right = columns.column(columns.area(), 1)
    click(columns, (left + right) / 2, columns.area().bottom() - 3)
    step = view.state.timeline.steps[1]  # type: ignore[union-attr]
    assert view.state.range == (step.start, step.end)
    assert view.tables.views["steps"].currentIndex().row() == 1
    view.tables.show_tab("launches")
    assert sum(columns.chart.layers[0].heights) == STEPS * LAYERS * 5
    left, right = columns.column(columns.area(), len(columns.chart.keys) - 1)
    click(columns, (left + right) / 2, columns.area().bottom() - 1)
    trace, row = view.state.timeline.trace, view.state.row  # type: ignore[union-attr]
    assert row is not None
    assert trace.category_of(row) == "kernel"
    low, high = (float(part) for part in columns.chart.keys[-1].split("\n")[1:])
    linked = view.state.timeline.linked  # type: ignore[union-attr]
    launch = int(linked.launch[np.flatnonzero(linked.work == row)[0]])
    assert low <= trace.start_ns[row] - trace.start_ns[launch] < high


def click_on_the_peak(view: TraceView) -> None:
    view.tables.show_tab("memory")
    plot, timeline = view.tables.chart.canvas, view.state.timeline
    assert isinstance(plot, PlotCanvas)
    assert timeline is not None
    (peak,) = plot.chart.points
    click(plot, plot.frame().x(peak.x), plot.frame().y(peak.y))
    memory = timeline.trace.memory
    moment = float(memory.time_ns[np.argmax(memory.allocated)] - timeline.origin_ns)
    assert view.state.range is not None
    assert view.state.range[0] <= moment <= view.state.range[1]
    plot.hovered.emit(peak.x)
    assert view.tables.chart.source.text().endswith(f"{peak.y:.2f} MB")


def test_operators_are_by_name_until_by_shape_is_chosen(
    window: MainWindow, view: TraceView, file: Path, qtbot: QtBot
) -> None:
    tables = view.tables
    assert tables.shape_button.isHidden()
    tables.show_tab("operators")
    assert not tables.shape_button.isHidden()
    keys = tables.front().columns.table.keys
    assert len(set(keys)) == len(keys) == len({key.split("\n")[0] for key in keys})
    tables.shape_button.setFocus()
    QTest.keyClick(tables.shape_button, Qt.Key.Key_Space)
    by_shape = tables.front().columns.table.keys
    assert all("\n" in key for key in by_shape)
    assert {part.key for row in tables.chart.shown.chart.rows for part in row.parts} <= set(by_shape)  # type: ignore[union-attr]
    tables.show_tab("kernels")
    assert tables.shape_button.isHidden()
    tables.show_tab("operators")
    assert tables.by_shape("operators"), "remembered while the trace is open"
    export = window.tracing._export
    assert export is not None
    export.export("csv", file.parent / "shapes.csv")
    qtbot.waitUntil(lambda: not export._thread.is_alive(), timeout=10_000)  # type: ignore[union-attr]
    assert "shapes" in (file.parent / "shapes.csv").read_text().splitlines()[0]
    window.actions_by_id["trace_shapes"].trigger()
    assert tables.front().columns.table.keys == keys
    export.export("csv", file.parent / "names.csv")
    qtbot.waitUntil(lambda: not export._thread.is_alive(), timeout=10_000)  # type: ignore[union-attr]
    rows = (file.parent / "names.csv").read_text().splitlines()
    assert len(rows) == 1 + len(keys)


def test_the_row_of_sums_is_about_what_a_filter_leaves(view: TraceView) -> None:
    columns = view.tables.views["kernels"].columns
    view.tables.filter.setText("flash_fwd")
    assert columns.rowCount() == 1
    assert columns.footer[0] == "1 of 5 rows"
    assert columns.footer[2:4] == tuple(columns.index(0, place).data() for place in (2, 3))
    view.tables.filter.clear()
    assert columns.footer == columns.table.footer


def test_another_trace_begins_on_the_first_tab_with_all_rows(
    window: MainWindow, view: TraceView, file: Path, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(view.loader.finished, timeout=30_000):
        view.compare(write_trace(file.parent / "after.json", slower=1.5))
    assert view.tables.front_key() == "difference"
    view.tables.filter.setText("nothing is called so")
    opened(window, file.parent / "after.json", qtbot)
    assert view.tables.front_key() == "kernels"
    assert view.tables.filter.text() == ""
    assert view.tables.front().columns.rowCount() == 5


def test_a_saved_table_is_called_as_its_trace_or_run_and_itself(
    window: MainWindow, view: TraceView, file: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposed: list[str] = []

    def ask(_parent: object, _title: str, start: str, _kinds: str) -> tuple[str, str]:
        proposed.append(Path(start).name)
        return "", ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", ask)
    window.actions_by_id["trace_to_csv"].trigger()
    view.tables.show_tab("operators")
    window.actions_by_id["trace_to_csv"].trigger()
    view.tables.shape_button.click()
    window.actions_by_id["trace_to_npz"].trigger()
    window.actions_by_id["trace_to_chrome"].trigger()
    assert proposed == ["run-kernels.csv", "run-operators.csv", "run-operators-by-shape.npz", "run.json.gz"]
    kept = file.rename(file.parent / "0123456789abcdef0123456789abcdef.json.gz")
    with qtbot.waitSignal(view.loader.finished, timeout=30_000):
        window.tracing.open(kept, "BF16, fused/2")
    window.actions_by_id["trace_to_csv"].trigger()
    assert proposed[-1] == "BF16-fused-2-kernels.csv"


def test_only_traces_that_were_opened_are_recent_and_what_is_gone_is_not(
    window: MainWindow, view: TraceView, file: Path, qtbot: QtBot
) -> None:
    assert window.settings.recent_traces == [str(file)]
    refused = file.parent / "refused.json"
    refused.write_text("{}")
    for path in (refused, file.parent / "missing.json"):
        with qtbot.waitSignal(view.loader.failed, timeout=30_000):
            window.tracing.open(path)
    assert window.settings.recent_traces == [str(file)]
    file.unlink()
    menu = window.tracing._recent_menu
    assert menu is not None
    (entry,) = menu.actions()
    entry.trigger()
    assert "is gone" in window.status_text.text()
    assert window.settings.recent_traces == []
    assert not menu.isEnabled()
    assert view.trace is not None, "what was shown stays"


def test_tabs_fold_behind_a_button_and_a_chart_is_closed_and_saved(view: TraceView) -> None:
    tabs = view.tables.tabs
    tabs.resize(500, tabs.height())
    folded = tabs.folded()
    assert folded
    assert folded == list(range(folded[0], len(view.tables.keys) - 1))
    last = view.tables.keys.index("health")
    view.tables.show_tab("health")
    assert last not in tabs.folded()
    assert tabs.current() == last
    assert view.tables.front_key() == "health"
    tabs.resize(4000, tabs.height())
    assert not tabs.folded()
    view.tables.show_tab("gaps")
    (chart,) = view.exportables()
    assert chart.title == "Idle gaps by cause"
    lines = chart.csv().splitlines()
    assert lines[0] == "bar,part,milliseconds"
    total = sum(float(line.rsplit(",", 1)[1]) for line in lines[1:])
    assert total == pytest.approx(sum(view.tables.views["gaps"].columns.table.columns[3].values))
    view.tables.chart_button.click()
    assert not view.exportables()
    view.tables.show_tab("advice")
    assert not view.tables.chart_button.isEnabled()


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


def move(widget: Any, at: QPointF, button: Qt.MouseButton) -> None:
    kind, none = QEvent.Type.MouseMove, Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(widget, QMouseEvent(kind, at, widget.mapToGlobal(at), button, button, none))


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


def test_a_file_that_is_no_trace_is_refused_in_a_sentence(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    bad = tmp_path / "notes.json"
    bad.write_text('{"hello": [1, 2]}')
    window.tracing.open(bad)
    view = window.tracing.view
    assert view is not None
    qtbot.waitUntil(lambda: "notes.json" in view.empty.text() and not view.loader.busy, timeout=10_000)
    qtbot.waitUntil(lambda: not view.header.progress.isVisibleTo(view), timeout=5_000)
    assert view.trace is None
    assert window.status_text.text() == view.empty.text()
    assert view.open_button.isEnabled()


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Openers that never say anything."""
    command = (sys.executable, "-c", "import time; time.sleep(600)")
    monkeypatch.setattr("gptscope.app.gui.views.trace_loading.OPENER", command)


def opener_of(view: TraceView, qtbot: QtBot) -> "subprocess.Popen[bytes]":
    loader = view.loader
    qtbot.waitUntil(lambda: loader._job is not None and loader._job.process is not None, timeout=10_000)
    process = loader._job.process  # type: ignore[union-attr]
    assert process is not None
    return process


@pytest.mark.usefixtures("view", "endless")
def test_cancel_gives_up_and_keeps_what_was_shown(view: TraceView, file: Path, qtbot: QtBot) -> None:
    shown = view.trace
    view.open(file)
    process = opener_of(view, qtbot)
    with qtbot.waitSignal(view.loader.stopped, timeout=10_000):
        view.header.cancel.click()
    assert process.returncode is not None
    assert view.trace is shown
    assert not view.header.cancel.isVisibleTo(view)


@pytest.mark.skipif(sys.platform == "win32", reason="has no signals")
def test_a_crash_while_reading_is_told_and_the_next_trace_opens(
    view: TraceView, file: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        command = (sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
        patched.setattr("gptscope.app.gui.views.trace_loading.OPENER", command)
        with qtbot.waitSignal(view.loader.failed, timeout=10_000) as failed:
            view.open(file)
    assert failed.args is not None
    assert "The process that read the trace was ended by signal 11 (SIGSEGV" in failed.args[0]
    with qtbot.waitSignal(view.loader.finished, timeout=30_000):
        view.open(file)


def test_what_was_handed_over_is_removed_with_the_timeline_and_with_the_view(
    view: TraceView, file: Path, qtbot: QtBot
) -> None:
    folder = view.loader._folder
    assert folder is not None
    assert str(os.getpid()) in folder.name  # so that the next opener removes it after a kill
    first = list(folder.iterdir())
    with qtbot.waitSignal(view.loader.finished, timeout=30_000):
        view.open(file)
    gc.collect()
    qtbot.waitUntil(lambda: len(list(folder.iterdir())) == 1, timeout=5_000)
    assert list(folder.iterdir()) != first
    view.close_loader()
    assert not folder.exists()


def test_damage_is_told_in_the_header_and_listed(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    whole = write_trace(tmp_path / "whole.json").read_bytes()
    cut = tmp_path / "cut.json"
    cut.write_bytes(whole[: len(whole) // 2])
    view = opened(window, cut, qtbot)
    assert "finding" in view.header.health.text()
    view.header.health.click()
    assert view.tables.front_key() == "health"
    messages = view.tables.front().columns.table.columns[1].values
    assert any("cut" in text or "ends" in text for text in messages)


@pytest.mark.parametrize(("form", "ending"), [("chrome", ".json.gz"), ("csv", ".csv"), ("markdown", ".md")])
def test_the_selected_range_is_exported(
    window: MainWindow,
    view: TraceView,
    tmp_path: Path,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    ending: str,
) -> None:
    target = tmp_path / f"out{ending}"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), ""))
    step = view.state.timeline.steps[0]  # type: ignore[union-attr]
    view.state.select((step.start, step.end))
    window.actions_by_id[f"trace_to_{form}"].trigger()
    qtbot.waitUntil(lambda: window.status_text.text() == f"Saved {target}.", timeout=10_000)
    assert target.stat().st_size > 0
    if form == "chrome":
        part = open_trace(target)
        kernels = part.in_categories("kernel").sum()
        assert 0 < kernels <= LAYERS * 5 + 1


@pytest.mark.parametrize(("tab", "column"), [("advice", "topic"), ("health", "kind"), ("difference", "change_ns")])
@pytest.mark.parametrize("form", ["csv", "npz"])
def test_every_table_in_front_is_exported(
    window: MainWindow,
    view: TraceView,
    file: Path,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
    tab: str,
    column: str,
    form: str,
) -> None:
    target = file.parent / f"out.{form}"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), ""))
    if tab == "difference":
        with qtbot.waitSignal(view.loader.finished, timeout=20_000):
            view.compare(write_trace(file.parent / "slower.json", slower=2.0))
        view.tables.difference.levels.choose("module")
        view.tables.difference.levels.chosen.emit("module")
    view.tables.show_tab(tab)
    window.actions_by_id[f"trace_to_{form}"].trigger()
    qtbot.waitUntil(lambda: window.status_text.text() == f"Saved {target}.", timeout=10_000)
    rows = view.tables.front().columns.rowCount()
    if form == "npz":
        assert np.load(target)[column].size == rows
    else:
        assert column in target.read_text().splitlines()[0].split(",")
        assert len(target.read_text().splitlines()) == rows + 1


def test_two_traces_are_compared(window: MainWindow, view: TraceView, tmp_path: Path, qtbot: QtBot,
                                 monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    other = write_trace(tmp_path / "slower.json", slower=2.0)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(other), ""))
    with qtbot.waitSignal(view.loader.compared, timeout=20_000):
        window.actions_by_id["trace_diff"].trigger()
    qtbot.waitUntil(lambda: view.tables.front_key() == "difference", timeout=5_000)
    table = view.tables.difference.table.columns.table
    ratios = table.columns[5].values
    assert np.allclose(np.asarray(ratios, float), 2.0, rtol=1e-3)
    bars = view.tables.chart.canvas
    assert isinstance(bars, BarsCanvas)
    assert [row.name for row in bars.chart.rows] == list(table.columns[0].values)
    assert {part.look for row in bars.chart.rows for part in row.parts} == {"bad"}
    area = bars.area()
    click(bars, area.left() + 2, area.top() + bars.shown_rows(area)[0] / 2)
    assert view.tables.difference.table.chosen_key() == table.keys[0]
    assert view.state.timeline.trace.name_of(view.state.row) == KINDS[3][2]  # type: ignore[union-attr]
    view.tables.difference.levels.choose("category")
    view.tables.difference.levels.chosen.emit("category")
    titles = view.tables.difference.table.columns.table.columns[0].values
    assert set(titles) == {"GEMM", "attention", "elementwise", "norm"}
    view.tables.difference.levels.choose("step")
    view.tables.difference.levels.chosen.emit("step")
    keys = view.tables.difference.table.columns.table.keys
    view.tables.chosen.emit("difference", next(key for key in keys if key.endswith("step 2")))
    second = view.state.timeline.steps[1]  # type: ignore[union-attr]
    assert view.state.range == (second.start, second.end)


def test_an_event_of_no_length_leaves_ink_in_the_picture(window: MainWindow) -> None:
    one = np.array([50.0])
    lane = LaneEvents.build(np.array([0], np.int32), one, one, np.array([3], np.uint8))
    rows = Rows((), (LaneRow(0, lane, 0),), (), LANE)
    picture = draw(rows, Axis(0.0, 100.0, 0.0, 100.0), Palette(window.theme), (200, LANE), 0, 1.0, ())
    column = picture.pixels[: LANE - GAP, 100]
    ground = window.theme.color("bg1").rgb()
    assert (column != ground).all()
    assert (picture.pixels[: LANE - GAP, 101:] == ground).all()


def test_ctrl_t_says_what_to_do_where_there_is_no_trace(window: MainWindow) -> None:
    assert not window.actions_by_id["trace_to_chrome"].isEnabled()
    window.actions_by_id["show_timeline"].trigger()
    assert "open a file with Ctrl+O" in window.status_text.text()


def test_ctrl_t_leads_to_the_opened_trace_and_else_to_the_newest_kept_one(
    window: MainWindow, file: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = window.controller.library
    assert library is not None
    times = {"old": (1, file), "new": (3, file), "newest, not profiled": (4, None)}
    kept = {
        name: SimpleNamespace(run_id=name, trace=trace, name=f"run {name}", created_unix_ns=time, position=0)
        for name, (time, trace) in times.items()
    }
    monkeypatch.setattr(library, "find", kept.get)
    monkeypatch.setattr(library, "entries", lambda: tuple(kept.values()))
    window.actions_by_id["show_timeline"].trigger()
    view = window.tracing.view
    assert view is not None
    qtbot.waitUntil(lambda: view.trace is not None and not view.loader.busy, timeout=30_000)
    qtbot.waitUntil(lambda: view.header.name.text() == "run new", timeout=5_000)
    window.show_view(0)
    window.actions_by_id["show_timeline"].trigger()
    assert window.current_view() is view
    assert not view.loader.busy


def test_the_timeline_of_a_kept_run_has_the_run_s_name(
    window: MainWindow, file: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = window.controller.library
    assert library is not None
    kept = {
        "with": SimpleNamespace(trace=file, name="BF16, fused"),
        "without": SimpleNamespace(trace=None, name="FP32"),
    }
    monkeypatch.setattr(library, "find", kept.get)
    window.commands.show_timeline("without")
    assert "no trace" in window.status_text.text()
    window.commands.show_timeline("with")
    view = window.tracing.view
    assert view is not None
    qtbot.waitUntil(lambda: view.trace is not None and not view.loader.busy, timeout=30_000)
    qtbot.waitUntil(lambda: view.header.name.text() == "BF16, fused", timeout=5_000)
    assert window.settings.recent_traces == []


def test_a_trace_of_another_run_than_the_shown_one_says_so(
    window: MainWindow, file: Path, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller, library = window.controller, window.controller.library
    assert library is not None
    other = tmp_path / "other.json"
    kept = {name: SimpleNamespace(trace=trace, name=f"run {name}") for name, trace in (("a", file), ("b", other))}
    monkeypatch.setattr(library, "find", kept.get)
    window.commands.show_timeline("a")
    view = window.tracing.view
    assert view is not None
    qtbot.waitUntil(lambda: view.trace is not None and not view.loader.busy, timeout=30_000)
    for run, words in (("b", "not of the shown run: Ctrl+T opens its own, "), ("a", ""), ("b", "not of")):
        with monkeypatch.context() as now:
            now.setattr(controller, "experiment", SimpleNamespace(current=SimpleNamespace(run_id=run)))
            window.tracing._on_experiment_opened()
        assert view.header.about.text().startswith(words or "1.")
    view.open(file)  # a person's own file is of no run
    qtbot.waitUntil(lambda: not view.loader.busy and "not of" not in view.header.about.text(), timeout=30_000)


def test_a_refusal_is_forgotten_when_a_run_is_opened(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    window.tracing.open(tmp_path / "nowhere.json")
    view = window.tracing.view
    assert view is not None
    qtbot.waitUntil(lambda: "nowhere.json" in view.empty.text() and not view.loader.busy, timeout=30_000)
    window.controller.experiment_opened.emit()
    assert view.empty.text().startswith("No trace is open.")
