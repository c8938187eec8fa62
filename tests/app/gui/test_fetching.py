"""A catalogue model that is not on this machine: offered, fetched, stopped, failed, or fetched by Run itself."""

from typing import Any

import msgspec
import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot
from tests_app_streams import INSPECTED, experiment_records

from gptscope.app.gui.window import MainWindow
from gptscope.profiling.records import (
    Cancel,
    Failure,
    FetchModel,
    InspectModel,
    ModelFetched,
    ModelInspected,
    Progress,
    StartExperiment,
)

NAME = "smollm2-135m"
HERE = ModelInspected(model=msgspec.structs.replace(INSPECTED.model, name=NAME), estimated_bytes={})
ABSENT = ModelInspected(
    model=msgspec.structs.replace(HERE.model, fetch_bytes=269_060_552, notes=("Not on this machine yet.",)),
    estimated_bytes={},
)
ARRIVED = ModelFetched(model=NAME, path="/cache/x", bytes=98_000_000)


@pytest.fixture
def absent(window: MainWindow, session: Any, qtbot: QtBot) -> MainWindow:
    """A window in whose picker the catalogue entry was chosen."""
    picker = window.dock.model_form.picker
    picker.setCurrentIndex(picker.findData(NAME))
    picker.activated.emit(picker.currentIndex())
    assert session.sent[-1] == InspectModel(model=NAME)
    session.feed(ABSENT)
    return window


def test_a_model_on_this_machine_offers_no_download(window: MainWindow) -> None:
    assert window.dock.model_form.fetch.isHidden()


def test_an_absent_model_is_fetched_by_a_button_with_progress(absent: MainWindow, session: Any, qtbot: QtBot) -> None:
    form = absent.dock.model_form
    assert form.fetch.isVisible()
    assert form.fetch.text() == "Fetch 269 MB"
    qtbot.mouseClick(form.fetch, Qt.MouseButton.LeftButton)
    assert session.sent[-1] == FetchModel(model=NAME)
    assert form.fetch.isHidden()
    assert form._fetch_text.text() == "Fetching: asking for the download"
    assert form.stop_fetch.isVisible()
    session.feed(Progress(phase="fetch", done=49e6, total=98e6, unit="bytes"))
    assert form._fetch_text.text() == "Fetching: 49.0 MB of 98.0 MB"
    assert form._fetch_bar.value() == 500
    session.feed(ARRIVED)
    assert form._fetch_row.isHidden()
    assert session.sent[-1] == InspectModel(model=NAME)
    session.feed(HERE)
    assert form.fetch.isHidden()
    assert not absent.actions_by_id["stop"].isEnabled()


@pytest.mark.parametrize("how", ["button", "Esc"])
def test_a_download_is_stopped_and_offered_again(absent: MainWindow, session: Any, qtbot: QtBot, how: str) -> None:
    form = absent.dock.model_form
    form.fetch.click()
    if how == "button":
        qtbot.mouseClick(form.stop_fetch, Qt.MouseButton.LeftButton)
    else:
        qtbot.keyClick(absent, Qt.Key.Key_Escape)
    assert session.sent[-1] == Cancel()
    session.feed(Failure(kind="cancelled", message="Cancelled while fetching smollm2-135m."))
    assert form._fetch_row.isHidden()
    assert form.fetch.isVisible()
    assert form._note.text() == "Not on this machine yet.", "stopping is no error"


def test_a_failed_download_says_why_beside_the_button(absent: MainWindow, session: Any) -> None:
    form = absent.dock.model_form
    form.fetch.click()
    session.feed(Failure(kind="model", message="The hub cannot be reached. Connect to the network."))
    assert form._note.text() == "The hub cannot be reached. Connect to the network."
    assert form.fetch.isVisible()
    form.fetch.click()
    assert session.sent[-1] == FetchModel(model=NAME)
    assert form._note.text() == "Not on this machine yet."


def test_run_says_that_it_fetches_first_and_the_offer_goes_away_after_it(absent: MainWindow, session: Any) -> None:
    absent.controller.run()
    assert session.sent[-1].experiment.model == NAME
    assert absent.status_text.text() == (
        "Starting: smollm2-135m is not on this machine yet, so 269 MB are fetched first."
    )
    begin, *rest = experiment_records()
    session.feed(begin, Progress(phase="fetch", done=1e6, total=98e6, unit="bytes"))
    assert absent.status_text.text() == "Fetching the model."
    session.feed(*rest)
    assert session.sent[-1] == InspectModel(model=NAME)
    session.feed(HERE)
    assert absent.dock.model_form.fetch.isHidden()


def test_run_during_a_download_waits_for_the_person(absent: MainWindow, session: Any) -> None:
    absent.dock.model_form.fetch.click()
    absent.controller.run()
    assert not any(isinstance(command, StartExperiment) for command in session.sent)
    assert "stop the download first" in absent.status_text.text()
    session.feed(ARRIVED, HERE)
    absent.controller.run()
    assert isinstance(session.sent[-1], StartExperiment)


def test_a_download_that_waits_for_a_run_can_be_taken_back(absent: MainWindow, session: Any) -> None:
    absent.controller.run()
    form = absent.dock.model_form
    form.fetch.click()
    assert not isinstance(session.sent[-1], FetchModel)
    assert form._fetch_text.text() == "Fetching: waits for the end of the run"
    form.stop_fetch.click()
    assert form.fetch.isVisible()
    assert absent.controller.running, "only the download was taken back"
    session.feed(*experiment_records())
    assert not any(isinstance(command, FetchModel) for command in session.sent)
