"""The Trace view: opening in every way, refusing, stopping, comparing; whose trace is shown."""

import gc
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot
from tests_app_steps import click, opened
from tests_app_traces import KINDS, write_trace

from gptscope.app.gui.charts.bars_chart import BarsCanvas
from gptscope.app.gui.tracing import looks_like_trace
from gptscope.app.gui.views.trace import TraceView
from gptscope.app.gui.window import MainWindow


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
