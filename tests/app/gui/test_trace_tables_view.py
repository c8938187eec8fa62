"""The Trace view's tables and charts: filled, linked with the timeline, by shape, filtered, saved."""

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot
from tests_app_steps import click, row_of
from tests_app_traces import LAYERS, STEPS, write_trace

from gptscope.app.gui.charts.bars_chart import BarsCanvas
from gptscope.app.gui.charts.canvas import PlotCanvas
from gptscope.app.gui.charts.columns_chart import ColumnsCanvas
from gptscope.app.gui.views.trace import TraceView
from gptscope.app.gui.window import MainWindow
from gptscope.profiling.trace import open_trace
from gptscope.profiling.trace.analysis.gaps import CAUSES, idle_gaps


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


def test_a_part_of_a_bar_is_a_row_of_the_table_and_an_event_of_the_timeline(view: TraceView) -> None:
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


def test_a_column_is_a_step_or_an_event_of_the_timeline(view: TraceView) -> None:
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


def test_the_peak_of_memory_is_a_time_of_the_timeline(view: TraceView) -> None:
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
