"""Run, watch, stop, fail, pin, reopen: with scripted records, in the real window."""

from typing import Any

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot
from tests_app_streams import FUSED, INSPECTED, PLAIN, UNIX, experiment_records

from gptscope.app.gui.window import HISTORY, LIVE, PROFILE, MainWindow
from gptscope.profiling.experiment import Experiment, Variant
from gptscope.profiling.records import (
    Cancel,
    ExperimentFinished,
    Failure,
    GeneratedText,
    InspectModel,
    RunFinished,
    StartExperiment,
)

RMS_KEY = "rms_norm|blocks.*.norm|[1, 576] [3072, 576]"


def run_all(window: MainWindow, session: Any, records: list[Any] | None = None) -> None:
    window.controller.run()
    session.feed(*(records if records is not None else experiment_records()))
    window._on_redraw()


def last_experiment(session: Any) -> Experiment:
    return next(c.experiment for c in reversed(session.sent) if isinstance(c, StartExperiment))


def test_ctrl_r_runs_the_setting_and_the_numbers_arrive(window: MainWindow, session: Any, qtbot: QtBot) -> None:
    window.controller.setup.variant = FUSED
    window.activateWindow()
    qtbot.keyClick(window, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
    assert last_experiment(session).variants == (FUSED,)
    assert window.controller.running
    assert not window.dock.run.isEnabled()
    assert window.current_view() is window.live
    session.feed(*experiment_records())
    assert not window.controller.running
    assert window.live is not None
    assert window.live.cards[0].value.text().startswith("57")
    assert window.dock.run.isEnabled()
    assert "Finished" in window.status_text.text()


def test_the_window_redraws_only_while_something_runs(window: MainWindow, session: Any) -> None:
    assert not window._redraw.isActive()
    window.controller.run()
    assert window._redraw.isActive()
    session.feed(*experiment_records())
    assert not window._redraw.isActive()


def test_a_second_run_is_refused_while_one_goes_on(window: MainWindow, session: Any) -> None:
    window.controller.run()
    sent = len(session.sent)
    window.controller.run_demo()
    assert len(session.sent) == sent
    assert "stop it first" in window.status_text.text()


def test_esc_stops_once_and_keeps_what_was_measured(window: MainWindow, session: Any, qtbot: QtBot) -> None:
    records = experiment_records()
    window.controller.run()
    session.feed(*records[:40])
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert sum(isinstance(c, Cancel) for c in session.sent) == 1
    assert window.dock.stop.text() == "Stopping"
    session.feed(
        RunFinished(run_id="r1", outcome="cancelled", finished_unix_ns=UNIX),
        ExperimentFinished(experiment_id="e1", outcome="cancelled"),
    )
    assert window.live is not None
    assert window.live.cards[0].value.text() != "n/a"
    assert "Stopped" in window.status_text.text()


def test_a_failed_run_is_told_inside_the_window_with_details(window: MainWindow, session: Any) -> None:
    window.controller.run()
    session.feed(*experiment_records()[:40])
    session.feed(Failure(kind="worker_died", message="The worker was killed.", detail="last words", run_id="r1"))
    assert window.live is not None
    strip = window.live.failure
    assert strip.isVisible()
    assert strip.sentence.text() == "The worker was killed."
    assert not strip._text.isVisible()
    strip._details.click()
    assert strip._text.toPlainText() == "last words"
    session.feed(
        RunFinished(run_id="r1", outcome="failed", finished_unix_ns=UNIX),
        ExperimentFinished(experiment_id="e1", outcome="failed"),
    )
    window.controller.run()
    assert strip.isHidden(), "a new run begins without the old failure"


def test_a_refused_request_is_told_but_not_kept(window: MainWindow, session: Any, qtbot: QtBot) -> None:
    window.controller.run()
    session.feed(*experiment_records()[:3], Failure(kind="usage", message="The context is too long.", run_id="r1"))
    session.feed(
        RunFinished(run_id="r1", outcome="failed", finished_unix_ns=UNIX),
        ExperimentFinished(experiment_id="e1", outcome="failed"),
    )
    assert window.live is not None
    assert window.live.failure.sentence.text() == "The context is too long."
    assert window.status_text.text().startswith("Not run, so not kept in History.")
    assert window.windowTitle().startswith("Not run: ")
    library = window.controller.library
    assert library is not None
    qtbot.waitUntil(lambda: library._recorder.flush(1.0) and library.find("r1") is None, timeout=5_000)
    qtbot.waitUntil(lambda: window.status_right.text() == "library: 0 runs", timeout=5_000)


def test_the_engines_death_ends_the_run_in_one_sentence_and_run_works_again(window: MainWindow, session: Any) -> None:
    for _ in range(10):
        window.controller.run()
        session.feed(*experiment_records()[:40])
        session.ended.emit(
            "The engine was ended from outside or crashed. What was measured is kept; Run starts it again."
        )
        assert not window.controller.running
        assert window.live is not None
        assert window.live.failure.sentence.text().startswith("The engine was ended")
        assert window.live.cards[0].value.text() != "n/a"
        assert window.controller.experiment is not None
        assert window.controller.experiment.finished is not None
    run_all(window, session)
    assert "Finished" in window.status_text.text()
    assert window.live is not None
    assert window.live.failure.isHidden()


def test_pinning_puts_the_run_beside_later_ones_also_after_a_restart(
    window: MainWindow, session: Any, qtbot: QtBot
) -> None:
    run_all(window, session, experiment_records(PLAIN, ms=37.0, run_id="base", experiment_id="e0"))
    library = window.controller.library
    assert library is not None
    qtbot.waitUntil(lambda: getattr(library.find("base"), "outcome", "") == "done", timeout=15_000)
    window.dock.pin.click()
    assert window.baseline_button.text().startswith("Baseline: FP32 plain")
    assert window.controller.setup.baseline == PLAIN
    run_all(window, session)
    assert window.live is not None
    assert window.live.cards[0].ratio.text() == "2.11x"
    assert window.settings.baseline_run == "base"
    assert window.controller.library is not None
    window.controller.baseline = None
    window.controller.use_library(window.controller.library)
    assert window.controller.baseline is not None
    window.baseline_button.click()
    assert window.controller.baseline is None
    assert window.baseline_button.isHidden()


def test_nothing_to_pin_is_said(window: MainWindow) -> None:
    window.controller.pin_current()
    assert "Nothing to pin" in window.status_text.text()


def test_the_demo_compares_two_variants(window: MainWindow, session: Any) -> None:
    window.first.demo_button.click()
    experiment = last_experiment(session)
    assert experiment.model == "bundled"
    assert [v.precision for v in experiment.variants] == ["fp32", "bf16"]


def test_without_profile_when_the_setting_says_so(window: MainWindow, session: Any) -> None:
    window.settings.profile_after_run = False
    window.controller.run()
    assert last_experiment(session).profile_steps == 0


def test_generated_text_streams_into_its_pane(window: MainWindow, session: Any) -> None:
    window.controller.setup.set_workload(kind="generate", prompt="Call me")
    window.controller.run()
    begin = [
        r
        for r in experiment_records(workload=window.controller.setup.workload)
        if not isinstance(r, ExperimentFinished)
    ]
    session.feed(*begin[:8], GeneratedText(run_id="r1", text=" Ishmael", token_ids=(1,)))
    window._on_redraw()
    assert window.live is not None
    assert window.live.text.isVisible()
    session.feed(GeneratedText(run_id="r1", text=". Some years", token_ids=(2,)))
    window._on_redraw()
    assert window.live.text_pane.toPlainText() == " Ishmael. Some years"


def test_hover_is_shared_by_the_time_charts_and_zoom_is_undone(window: MainWindow, session: Any) -> None:
    run_all(window, session)
    live = window.live
    assert live is not None
    live.speed.canvas.hovered.emit(5.0)
    assert "tok/s" in live.speed.read_out.text()
    assert "GB/s" in live.bandwidth.read_out.text()
    live.speed.canvas.hovered.emit(None)
    assert live.speed.read_out.text() == ""
    live.speed.canvas.range_chosen.emit((4.0, 6.0))
    assert live.speed.canvas.chart.x_axis.low == live.bandwidth.canvas.chart.x_axis.low == 4.0
    window.actions_by_id["reset_zoom"].trigger()
    assert live.speed.canvas.chart.x_axis.low == 0


def test_dragging_over_a_chart_zooms(window: MainWindow, session: Any, qtbot: QtBot) -> None:
    run_all(window, session)
    assert window.live is not None
    canvas = window.live.speed.canvas
    from PySide6.QtCore import QPoint

    middle = canvas.height() // 2
    qtbot.mousePress(canvas, Qt.MouseButton.LeftButton, pos=QPoint(150, middle))
    qtbot.mouseMove(canvas, QPoint(260, middle))
    qtbot.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=QPoint(260, middle))
    assert canvas.chart.x_axis.high < 15
    qtbot.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=QPoint(150, middle))
    assert canvas.chart.x_axis.high > 18


def test_profile_links_table_roofline_and_inspector(window: MainWindow, session: Any) -> None:
    run_all(window, session)
    window.show_view(PROFILE)
    profile = window.profile
    assert profile is not None
    assert profile.kernels.columns.rowCount() == 10
    profile.choose(RMS_KEY)
    assert profile.kernels.chosen_key() == RMS_KEY
    assert profile.roofline.canvas.chosen_key == RMS_KEY
    assert profile.inspector._title.text() == "rms_norm"
    assert profile.modules.chosen_key() == "blocks.*.norm"
    profile.tables.filter.setText("gemm mlp")
    assert profile.kernels.columns.rowCount() == 2
    texts = profile.findChildren(type(profile.name))
    assert any("not in effect: no fused kernel ran" in t.text() for t in texts), "a lever without effect is told"


def test_a_click_in_any_table_of_the_profile_moves_all_others(window: MainWindow, session: Any) -> None:
    run_all(window, session)
    window.show_view(PROFILE)
    profile = window.profile
    assert profile is not None
    profile.tables.tabs.setCurrentIndex(1)
    assert profile.tables.front() is profile.operators
    assert profile.operators.columns.rowCount() == 11
    profile.operators.selectRow(profile.operators.columns.shown_row("rms_norm|[1, 576] [3072, 576]") or 0)
    assert profile.kernels.chosen_key() == RMS_KEY
    assert profile.roofline.canvas.chosen_key == RMS_KEY
    assert profile.modules.chosen_key() == "blocks.*.norm"
    assert profile.inspector._title.text() == "rms_norm"
    profile.modules.selectRow(profile.modules.columns.shown_row("lm_head") or 0)
    assert profile.kernels.chosen_key().startswith("lm_head 49152x576")
    assert profile.operators.chosen_key().startswith("lm_head")
    assert profile.modules.chosen_key() == "lm_head"
    profile.tables.filter.setText("norm")
    assert profile.operators.columns.rowCount() == 1, "the filter is the front table's"
    assert profile.copy_rows() == 1


def test_setup_hides_in_profile_and_comes_back(window: MainWindow, session: Any) -> None:
    run_all(window, session)
    window.show_view(PROFILE)
    assert window.dock.isHidden()
    assert window.setup_button.isVisible()
    window.show_view(LIVE)
    assert window.dock.isVisible()
    window.show_view(PROFILE)
    window.setup_button.click()
    assert window.dock.isVisible()


def test_history_lists_searches_tags_reopens_deletes_and_undoes(window: MainWindow, session: Any, qtbot: QtBot) -> None:
    history = window.history
    assert history is not None
    columns = history.table.columns

    def speeds() -> list[str]:
        return sorted(str(columns.index(row, 1).data()) for row in range(columns.rowCount()))

    run_all(window, session, experiment_records(PLAIN, ms=37.0, run_id="base", experiment_id="e0"))
    qtbot.waitUntil(lambda: speeds() == ["27.0"], timeout=15_000)
    run_all(window, session)
    qtbot.waitUntil(lambda: speeds() == ["27.0", "57.0"], timeout=15_000)
    window.show_view(HISTORY)
    history.search.setText("fp32")
    qtbot.waitUntil(lambda: list(history._entries) == ["base"], timeout=10_000)
    history.table.selectRow(0)
    history.tags.setText("slow, first")
    history.tags.textEdited.emit("slow, first")
    history.notes.setPlainText("the plain one")
    history._save_edits()
    assert window.controller.library is not None
    entry = window.controller.library.find("base")
    assert entry is not None
    assert (entry.tags, entry.notes) == (("slow", "first"), "the plain one")
    history.reopen_button.click()
    assert window.current_view() is window.live
    assert window.live is not None
    assert window.live.cards[0].value.text().startswith("27")
    window.show_view(HISTORY)
    history.delete_button.click()
    assert "base" not in history._entries
    assert not history.undo_button.isHidden()
    window.actions_by_id["undo_delete"].trigger()
    assert "base" in history._entries
    assert history.undo_button.isHidden()


def test_run_again_repeats_a_stored_run(window: MainWindow, session: Any, qtbot: QtBot) -> None:
    run_all(window, session)
    history = window.history
    assert history is not None
    qtbot.waitUntil(lambda: len(history._entries) == 1, timeout=15_000)
    history.table.selectRow(0)
    history.run_again()
    assert last_experiment(session).variants == (FUSED,)
    assert last_experiment(session).model == "smollm2-135m"
    assert window.controller.setup.variant == FUSED


def test_choosing_a_model_asks_and_a_bad_one_is_told_where_one_chose_it(window: MainWindow, session: Any) -> None:
    form = window.dock.model_form
    form.choose("/nowhere/model")
    assert session.sent[-1] == InspectModel(model="/nowhere/model")
    session.feed(Failure(kind="model", message="/nowhere/model does not exist."))
    assert form._note.text() == "/nowhere/model does not exist."
    form.choose("bundled")
    session.feed(INSPECTED)
    assert form._facts[1].text() == "135 M parameters"


def test_questions_wait_while_a_run_goes_on(window: MainWindow, session: Any) -> None:
    window.controller.run()
    window.controller.inspect("preset:tiny")
    assert not isinstance(session.sent[-1], InspectModel)
    session.feed(*experiment_records())
    assert session.sent[-1] == InspectModel(model="preset:tiny")


@pytest.mark.parametrize("disturb", [Variant(precision="bf16", fusions=("all",))])
def test_a_variant_with_all_shows_every_switch_on(window: MainWindow, disturb: Variant) -> None:
    window.controller.setup.variant = disturb
    window.controller.setup_changed.emit()
    switches = window.dock.levers_form.switches
    assert switches["attention"].isChecked()
    assert switches["attention"].differs
    assert not switches["optimizer"].isChecked(), "it does not work for decode"
