"""Compare: after a run beside its baseline, of runs chosen in History, by mouse and by keyboard."""

import csv
from typing import Any

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from tests_app_streams import (
    FUSED,
    PLAIN,
    UNIX,
    WORKLOAD,
    Clock,
    comparison_records,
    experiment_records,
    run_records,
)

from gptscope.app.gui.charts.exporting import export_chart
from gptscope.app.gui.views.compare import CompareView
from gptscope.app.gui.window import COMPARE, HISTORY, MainWindow
from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.records import ExperimentFinished, ExperimentStarted, Record, StartExperiment

NORM = Variant(precision="fp32", fusions=("norm",), name="FP32, fused norm")


def together() -> list[Record]:
    """An experiment of three variants, measured alternately."""
    experiment = Experiment(model="smollm2-135m", workload=WORKLOAD, variants=(PLAIN, FUSED, NORM))
    clock = Clock()
    records: list[Record] = [
        ExperimentStarted(experiment_id="x", experiment=experiment, run_ids=("v0", "v1", "v2"), started_unix_ns=UNIX)
    ]
    for number, (variant, ms) in enumerate(((PLAIN, 37.0), (FUSED, 11.2), (NORM, 37.0))):
        records += run_records(f"v{number}", variant, clock, ms=ms, experiment_id="x")
    return [*records, ExperimentFinished(experiment_id="x", outcome="done")]


def run_all(window: MainWindow, session: Any, records: list[Record]) -> None:
    window.controller.run()
    session.feed(*records)


def kept(window: MainWindow, qtbot: QtBot, *run_ids: str) -> None:
    """Wait until the library, written by a thread of its own, lists these runs."""
    assert window.history is not None
    history = window.history

    def listed() -> bool:
        return all(i in history._entries and history._entries[i].headline.tokens_per_second for i in run_ids)

    qtbot.waitUntil(listed, timeout=15_000)


def view(window: MainWindow) -> CompareView:
    assert window.compare is not None
    window.show_view(COMPARE)
    return window.compare


def test_there_is_no_compare_tab_before_there_is_something_to_compare(window: MainWindow, session: Any) -> None:
    assert not window.tabs.isTabVisible(COMPARE)
    assert not window.actions_by_id["view_compare"].isEnabled()
    run_all(window, session, experiment_records(PLAIN, ms=37.0, run_id="base", experiment_id="e0"))
    assert not window.tabs.isTabVisible(COMPARE), "one run alone is nothing to compare"
    window.controller.pin_current()
    run_all(window, session, experiment_records())
    window.comparing.changed.emit()  # once more: the tab must still get its place
    QApplication.processEvents()
    assert window.tabs.isTabVisible(COMPARE)
    places = [window.tabs.tabRect(index) for index in range(window.tabs.count()) if window.tabs.isTabVisible(index)]
    assert all(place.width() > 40 for place in places)
    assert window.tabs.rect().contains(places[-1].center()), "no tab is cut off"
    assert window.actions_by_id["view_compare"].isEnabled()


def test_after_a_run_the_pinned_baseline_stands_against_it(window: MainWindow, session: Any) -> None:
    run_all(window, session, experiment_records(PLAIN, ms=37.0, run_id="base", experiment_id="e0"))
    window.controller.pin_current()
    run_all(window, session, experiment_records())
    compare = view(window)
    assert window.current_view() is compare
    assert [card.card.run_id for card in compare.cards] == ["r1"]
    assert compare.cards[0].card.reason.startswith("they were measured at different times")
    assert compare.cards[0].card.ratio == "2.11x"
    compare.together_button.click()
    started = [c for c in session.sent if isinstance(c, StartExperiment)][-1]
    assert started.experiment.variants == (PLAIN, FUSED)
    assert not compare.together_button.isEnabled(), "it is being measured"


def test_an_alternating_experiment_has_verdicts_with_intervals(window: MainWindow, session: Any) -> None:
    run_all(window, session, together())
    compare = view(window)
    assert [card.card.letter for card in compare.cards] == ["A", "B"]
    assert compare.cards[0].card.interval
    assert compare.cards[1].card.verdict == "No real difference"
    assert compare.together_button.isHidden()
    assert compare.canvas.chart is not None
    assert compare.canvas.chart.candidate.name == "A"
    assert compare.table.columns.rowCount() > 8
    assert window.dock.isHidden(), "Compare needs the width"


def test_a_click_on_a_card_shows_its_waterfall_and_the_grouping_switches(
    window: MainWindow, session: Any, qtbot: QtBot
) -> None:
    run_all(window, session, together())
    compare = view(window)
    qtbot.mouseClick(compare.cards[1], Qt.MouseButton.LeftButton)
    assert compare.canvas.chart is not None
    assert compare.canvas.chart.candidate.name == "B"
    assert compare.cards[1].property("panel") == "chosen"
    assert compare.cards[0].property("panel") == "true"
    compare.grouping.segment("category").click()
    assert "GEMM" in [row.name for row in compare.canvas.chart.rows]


def test_cards_are_reached_and_chosen_by_keyboard(window: MainWindow, session: Any, qtbot: QtBot) -> None:
    run_all(window, session, together())
    compare = view(window)
    compare.cards[0].setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(compare.cards[0], Qt.Key.Key_Right)
    assert QApplication.focusWidget() is compare.cards[1]
    assert compare.cards[1].property("panel") == "chosen"
    qtbot.keyClick(compare.cards[1], Qt.Key.Key_Right)
    assert QApplication.focusWidget() is compare.cards[0], "from the last to the first"
    qtbot.keyClick(compare.cards[0], Qt.Key.Key_Return)
    assert window.current_view() is window.profile
    assert window.controller.experiment is not None
    assert window.controller.experiment.current is window.controller.experiment.runs["v1"]
    window.show_view(COMPARE)
    assert len(compare.cards) == 2, "looking at one run does not end the comparison"


def test_another_run_becomes_the_baseline(window: MainWindow, session: Any) -> None:
    run_all(window, session, together())
    compare = view(window)
    window.comparing.make_baseline("v1")
    assert [card.card.run_id for card in compare.cards] == ["v0", "v2"]
    assert compare.cards[0].card.verdict == "Slower"


def test_runs_chosen_in_history_are_compared_by_keyboard(window: MainWindow, session: Any, qtbot: QtBot) -> None:
    run_all(window, session, experiment_records(PLAIN, ms=37.0, run_id="base", experiment_id="e0"))
    run_all(window, session, experiment_records())
    kept(window, qtbot, "base", "r1")
    window.show_view(HISTORY)
    history = window.history
    assert history is not None
    window.activateWindow()
    history.table.setFocus()
    assert not history.compare_button.isEnabled()
    qtbot.keyClick(history.table, Qt.Key.Key_Down)
    qtbot.keyClick(history.table, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    assert history.compare_button.isEnabled()
    qtbot.keyClick(history.table, Qt.Key.Key_M, Qt.KeyboardModifier.ControlModifier)
    assert window.current_view() is window.compare
    assert window.compare is not None
    assert [card.card.run_id for card in window.compare.cards] == ["r1"], "the older one is the baseline"
    window.compare.cards[0].opened.emit()
    assert window.current_view() is window.profile
    assert window.tabs.isTabVisible(COMPARE), "opening a compared run keeps the comparison"
    assert window.comparing.run_ids == ("base", "r1")


def test_runs_of_another_workload_are_shown_with_the_reason(window: MainWindow, session: Any, qtbot: QtBot) -> None:
    other = Workload(kind="decode", context=64, new_tokens=96, steps=6)
    run_all(window, session, experiment_records(PLAIN, ms=37.0, run_id="base", experiment_id="e0"))
    run_all(window, session, experiment_records(workload=other))
    kept(window, qtbot, "base", "r1")
    window.commands.compare_runs(["base", "r1"])
    assert window.compare is not None
    assert window.compare.cards[0].card.reason == "the workloads differ"
    assert window.compare.together_button.isHidden()


def test_the_pinned_run_is_the_baseline_of_chosen_runs(window: MainWindow, session: Any, qtbot: QtBot) -> None:
    run_all(window, session, experiment_records(PLAIN, ms=37.0, run_id="base", experiment_id="e0"))
    run_all(window, session, experiment_records())
    kept(window, qtbot, "base", "r1")
    window.controller.pin_stored("r1")
    window.commands.compare_runs(["base", "r1"])
    assert window.compare is not None
    assert [card.card.run_id for card in window.compare.cards] == ["base"]


@pytest.mark.parametrize(("ids", "why"), [([], "two or more"), (["r1"], "two or more"), (["r1"] * 17, "At most 16")])
def test_too_few_or_too_many_runs_are_refused_in_a_sentence(
    ids: list[str], why: str, window: MainWindow, session: Any, qtbot: QtBot
) -> None:
    run_all(window, session, experiment_records())
    kept(window, qtbot, "r1")
    window.commands.compare_runs(ids)
    assert why in window.status_text.text()
    assert not window.tabs.isTabVisible(COMPARE)


def test_compare_selected_without_a_choice_says_what_to_do(window: MainWindow, session: Any) -> None:
    window.actions_by_id["compare_runs"].trigger()
    assert "Choose two or more runs" in window.status_text.text()


def test_the_waterfall_is_exported(window: MainWindow, session: Any, tmp_path: Any) -> None:
    run_all(window, session, together())
    chart = view(window).exportables()[0]
    for kind in ("png", "svg", "pdf", "csv"):
        file = tmp_path / f"w.{kind}"
        export_chart(chart, file)
        assert file.stat().st_size > 200
    rows = list(csv.reader((tmp_path / "w.csv").read_text("utf-8").splitlines()))
    assert rows[0] == ["group", "was_ms", "now_ms", "change_ms"]
    assert float(rows[1][1]) == pytest.approx(37.0, rel=0.01)
    assert float(rows[-1][3]) < -20


def test_an_own_selection_ends_with_the_next_run(window: MainWindow, session: Any, qtbot: QtBot) -> None:
    run_all(window, session, experiment_records(PLAIN, ms=37.0, run_id="base", experiment_id="e0"))
    run_all(window, session, experiment_records())
    kept(window, qtbot, "base", "r1")
    window.commands.compare_runs(["base", "r1"])
    run_all(window, session, together())
    assert window.comparing.run_ids == ("v0", "v1", "v2")
    assert not window.comparing.from_history


def test_a_symbol_of_speed_against_output_chooses_its_card(window: MainWindow, session: Any, qtbot: QtBot) -> None:
    run_all(window, session, comparison_records())
    compare = view(window)
    QApplication.processEvents()
    canvas = compare.trade.canvas
    last = compare.cards[-1].card
    spot = next(spot for spot in canvas.chart.spots if spot.label == last.letter)
    frame = canvas.frame()
    place = QPointF(frame.x(spot.x), frame.y(spot.y)).toPoint()
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=place)
    assert compare.cards[-1].property("panel") == "chosen"
    assert canvas.chosen_key == last.run_id
    names = [one.title for one in compare.exportables()]
    assert names == ["Where the time went", "Speed against output"]


def test_three_cards_fit_into_1280_pixels_and_every_figure_is_named_in_full(window: MainWindow, session: Any) -> None:
    run_all(window, session, comparison_records())
    window.resize(1280, 800)
    compare = view(window)
    for _ in range(5):
        QApplication.processEvents()
    assert len(compare.cards) == 3
    bar = compare._cards_area.horizontalScrollBar()
    assert bar.maximum() == 0, f"the cards are {bar.maximum()} pixels too wide"
    table = compare.table
    model = table.model()
    for row in range(model.rowCount()):
        text = model.index(row, 0).data()
        assert table.fontMetrics().horizontalAdvance(text) + 12 <= table.columnWidth(0), text
