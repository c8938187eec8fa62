"""What goes wrong around the window: it tells it in a sentence, stays usable, and leaves nothing behind."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QDialog
from pytestqt.qtbot import QtBot
from tests_app_streams import PLAIN, UNIX, experiment_records

from gptscope.app.gui.window import MainWindow
from gptscope.app.viewmodels.run_view import RunView
from gptscope.profiling.records import Cancel, ExperimentFinished, RunFinished, SliceDone, StartExperiment
from gptscope.profiling.store.library import Library
from gptscope.profiling.store.stream import RecordStream


def kept_outcome(folder: Path, run_id: str) -> str:
    """How a run stands in a library; empty when it is not there."""
    with Library(folder) as library:
        return next((entry.outcome for entry in library.list_runs() if entry.run_id == run_id), "")


def run_all(window: MainWindow, session: Any, **names: str) -> None:
    window.controller.run()
    session.feed(*experiment_records(PLAIN, **names))


def test_a_library_deleted_during_a_run_is_told_and_the_next_run_begins_a_new_one(
    window: MainWindow, session: Any, qtbot: QtBot, tmp_path: Path
) -> None:
    records = experiment_records(PLAIN, run_id="lost", experiment_id="e0")
    window.controller.run()
    session.feed(*records[:40])
    shutil.rmtree(tmp_path / "library")
    session.feed(*records[40:])
    access = window.controller.library
    assert access is not None
    assert "deleted or moved" in access.unkept_reason
    told = window.status_text.text()  # SQLite may have noticed, too, and said so in its way
    assert "not kept" in told or "wait in memory" in told
    assert window.live is not None
    assert window.live.cards[0].value.text() != "n/a", "what was measured is on the screen"
    run_all(window, session, run_id="next", experiment_id="e1")
    assert access.unkept_reason == ""
    qtbot.waitUntil(lambda: kept_outcome(tmp_path / "library", "next") == "done", timeout=15_000)
    qtbot.waitUntil(lambda: "next" in [entry.run_id for entry in access.entries()], timeout=15_000)


def test_a_full_disk_is_told_as_long_as_it_is_full(
    window: MainWindow, session: Any, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = RecordStream.write

    def full(_stream: RecordStream) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorname = "SQLITE_FULL"
        raise error

    monkeypatch.setattr(RecordStream, "write", full)
    access = window.controller.library
    assert access is not None
    window.controller.run()
    records = experiment_records(PLAIN, run_id="held", experiment_id="e0")
    session.feed(*records[:40])
    qtbot.waitUntil(lambda: access.unkept_reason != "", timeout=15_000)
    qtbot.waitUntil(lambda: "no space left" in window.status_text.text(), timeout=15_000)
    session.feed(*records[40:])
    assert "Finished, but not kept" in window.status_text.text()
    monkeypatch.setattr(RecordStream, "write", write)
    qtbot.waitUntil(lambda: kept_outcome(tmp_path / "library", "held") == "done", timeout=15_000)
    qtbot.waitUntil(lambda: access.unkept_reason == "", timeout=5_000)


def test_two_windows_share_one_library(
    bare_window: Callable[[], MainWindow], session: Any, qtbot: QtBot, tmp_path: Path
) -> None:
    first = bare_window()
    run_all(first, session, run_id="one", experiment_id="e1")
    second = bare_window()
    second.controller.run()
    session.feed(*experiment_records(PLAIN, run_id="two", experiment_id="e2"))
    for run_id in ("one", "two"):
        qtbot.waitUntil(lambda run_id=run_id: kept_outcome(tmp_path / "library", run_id) == "done", timeout=15_000)


def test_a_prompt_that_no_frame_can_hold_is_refused_and_the_window_stays_free(window: MainWindow, session: Any) -> None:
    setup = window.controller.setup
    setup.workload = msgspec.structs.replace(setup.workload, kind="generate", prompt="word " * 2_000_000)
    sent = len(session.sent)
    window.controller.run()
    assert not window.controller.running
    assert len(session.sent) == sent
    assert "too long" in window.status_text.text()


def test_run_and_stop_pressed_in_quick_turns_start_one_run_and_cancel_it_once(window: MainWindow, session: Any) -> None:
    for _ in range(30):
        window.actions_by_id["run"].trigger()
        window.actions_by_id["stop"].trigger()
    kinds = [type(command) for command in session.sent]
    assert kinds.count(StartExperiment) == 1
    assert kinds.count(Cancel) == 1
    view = window.controller.experiment
    assert view is not None
    session.feed(ExperimentFinished(experiment_id=view.experiment_id, outcome="cancelled"))
    assert not window.controller.running
    window.actions_by_id["run"].trigger()
    assert window.controller.running


def test_a_fault_of_ours_in_a_record_leaves_the_run_and_the_window_alive(
    window: MainWindow, session: Any, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    apply = RunView.apply

    def faulty(view: RunView, record: Any) -> None:
        if isinstance(record, SliceDone):
            raise ZeroDivisionError
        apply(view, record)

    monkeypatch.setattr(RunView, "apply", faulty)
    run_all(window, session, run_id="r1", experiment_id="e1")
    assert not window.controller.running
    assert "SliceDone could not be shown" in caplog.text
    caplog.clear()
    qtbot.waitUntil(lambda: kept_outcome(tmp_path / "library", "r1") == "done", timeout=15_000)


def test_dialogs_leave_nothing_behind(window: MainWindow, qtbot: QtBot) -> None:
    def close() -> None:
        dialog = QApplication.activeModalWidget()
        assert dialog is not None
        dialog.close()

    def dialogs() -> int:
        return len(window.findChildren(QDialog))

    before = dialogs()
    for _ in range(3):
        for name in ("settings", "about"):
            QTimer.singleShot(20, close)
            window.commands.handlers()[name]()
        for name in ("glossary", "palette"):
            window.commands.handlers()[name]()
            for dialog in window.findChildren(QDialog):
                dialog.close()
    qtbot.waitUntil(lambda: dialogs() == before, timeout=5_000)


@pytest.mark.parametrize("size", [(100, 80), (3840, 2160)])
def test_any_size_of_the_window_can_be_drawn(size: tuple[int, int], window: MainWindow, session: Any) -> None:
    run_all(window, session, run_id="r1", experiment_id="e1")
    window.resize(*size)
    for index in range(window.tabs.count()):
        if window.tabs.isTabVisible(index):
            window.show_view(index)
            QApplication.processEvents()
            assert not window.grab().isNull()
    window.resize(1440, 900)


def test_a_run_of_thousands_of_slices_stays_quick_to_show(window: MainWindow, session: Any) -> None:
    records = experiment_records(PLAIN, run_id="r1", experiment_id="e1")
    steps = [record for record in records if getattr(record, "phase", "") == "measure" and hasattr(record, "slice")]
    done = next(record for record in records if isinstance(record, SliceDone))
    before = records.index(done)
    window.controller.run()
    session.feed(*records[:before])
    for number in range(3000):
        session.feed(msgspec.structs.replace(steps[0], slice=number + 100))
        session.feed(msgspec.structs.replace(done, slice=number + 100, pair=number + 100, disturbed="busy"))
    view = window.controller.experiment
    assert view is not None
    assert view.current is not None
    assert len(view.current.stretches) < 100, "neighbouring disturbed slices are one stretch"
    assert len(view.events) <= 500
    session.feed(
        RunFinished(run_id="r1", outcome="done", finished_unix_ns=UNIX),
        ExperimentFinished(experiment_id="e1", outcome="done"),
    )
    assert not window.controller.running


def test_themes_switched_again_and_again_leave_no_widgets_behind(
    window: MainWindow, session: Any, qtbot: QtBot
) -> None:
    run_all(window, session, run_id="r1", experiment_id="e1")
    window.commands.toggle_theme()
    qtbot.wait(1)
    before = len(QApplication.allWidgets())
    for _ in range(2):  # each has every widget polished again
        window.commands.toggle_theme()
    qtbot.waitUntil(lambda: len(QApplication.allWidgets()) <= before, timeout=5_000)
