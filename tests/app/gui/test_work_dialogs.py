"""Calibrating, fine-tuning and saving from the window, with scripted answers."""

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from tests_app_quality_streams import fine_tuned, quality
from tests_app_steps import shown
from tests_app_streams import INSPECTED

from gptscope.app.gui.saving_dialog import SavingDialog
from gptscope.app.gui.window import MainWindow
from gptscope.profiling.experiment import Variant
from gptscope.profiling.records import (
    Calibrate,
    Calibrated,
    Cancel,
    Failure,
    FineTune,
    ModelSaved,
    Progress,
    SaveModel,
    StartExperiment,
)


def test_fine_tuning_is_started_followed_and_its_result_compared(
    rich: MainWindow, session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    view = shown(rich, session, quality())
    session.feed(INSPECTED)  # what the window asked after the run
    view.buttons.tune.click()
    dialog = view.actions_of.tuning
    assert dialog is not None
    dialog.folder.line.setText("")
    assert "new folder" in dialog.folder_problem.text()
    assert not dialog.start.isEnabled()
    dialog.text.line.setText("/nowhere/text.txt")
    assert dialog.text_problem.text() == "There is no file /nowhere/text.txt."
    dialog.text.line.setText("")
    dialog.folder.line.setText(str(tmp_path / "tuned"))
    dialog.start.click()
    asked = session.sent[-1]
    assert isinstance(asked, FineTune)
    assert (asked.recipe, asked.mode, asked.options) == ("int8-dynamic", "targeted", {"granularity": "tensor"})
    assert not dialog.start.isEnabled()
    rich.controller.run()
    assert "being fine-tuned" in rich.status_text.text()
    session.feed(Progress(phase="train", done=50, total=200, unit="steps"))
    assert dialog.progress.value() == 250
    session.feed(fine_tuned())
    assert "better than before" in dialog.note.text()
    dialog.use.click()
    started = session.sent[-1]
    assert isinstance(started, StartExperiment)
    assert started.experiment.variants[1].model == "/tuned"


def test_a_failed_fine_tuning_says_why(rich: MainWindow, session: Any, tmp_path: Path) -> None:
    view = shown(rich, session, quality())
    session.feed(INSPECTED)
    view.buttons.tune.click()
    dialog = view.actions_of.tuning
    assert dialog is not None
    dialog.folder.line.setText(str(tmp_path / "tuned"))
    dialog.start.click()
    session.feed(Failure(kind="disk", message="There is no room for the trained model."))
    assert dialog.note.text() == "There is no room for the trained model."
    assert dialog.start.isEnabled()
    dialog.close()


PRUNED = Variant(precision="bf16", pruning="structured", options={"structured": {"mlp": 0.5}})


def test_a_pruned_model_is_saved_and_compared(rich: MainWindow, session: Any, tmp_path: Path) -> None:
    view = shown(rich, session, quality(), candidate=PRUNED)
    session.feed(INSPECTED)
    assert view.buttons.calibrate.isHidden()
    assert not view.buttons.tune.isHidden()
    view.buttons.save.click()
    dialog = view.actions_of.saving
    assert dialog is not None
    dialog.folder.line.setText(str(tmp_path / "pruned"))
    dialog.start.click()
    assert session.sent[-1] == SaveModel(
        model="smollm2-135m", folder=str(tmp_path / "pruned"), pruning="structured", options={"mlp": 0.5}
    )
    assert not view.buttons.save.isEnabled(), "one work at a time"
    assert rich.actions_by_id["stop"].isEnabled()
    session.feed(Progress(phase="load", done=0, total=0, note="saving /saved"))
    assert dialog.note.text() == "saving /saved"
    folder = "/saved"
    session.feed(ModelSaved(model="m", folder=folder, bytes=2_000_000, parameters_before=9, parameters=7, zeros=0.0))
    assert dialog.note.text().replace("\u00a0", " ") == "Saved 2.00 MB in FP32 in /saved. 7 of 9 parameters are left."
    assert dialog.folder_problem.isHidden()
    session.feed(Failure(kind="cancelled", message="Nobody waits for this."))
    assert "Saved" in dialog.note.text()
    dialog.tell("A very long sentence about what is left of the model. " * 12)
    QApplication.processEvents()
    assert dialog.note.height() >= dialog.note.heightForWidth(dialog.note.width()), "every line is there"
    dialog.use.click()
    started = session.sent[-1]
    assert isinstance(started, StartExperiment)
    assert (started.experiment.variants[1].model, started.experiment.variants[1].pruning) == (folder, "none")


def test_setups_model_is_saved_from_the_menu_and_then_chosen(rich: MainWindow, session: Any, tmp_path: Path) -> None:
    rich.controller.setup.variant = PRUNED
    rich.actions_by_id["save_model"].trigger()
    (dialog,) = rich.findChildren(SavingDialog)
    dialog.folder.line.setText(str(tmp_path / "pruned"))
    dialog.start.click()
    assert session.sent[-1].pruning == "structured"
    session.feed(ModelSaved(model="m", folder="/saved", bytes=1, parameters_before=9, parameters=9, zeros=0.5))
    dialog.use.click()
    assert rich.controller.setup.model == "/saved"


def test_a_dialog_follows_its_own_work_only(rich: MainWindow, session: Any, tmp_path: Path, qtbot: QtBot) -> None:
    static = Variant(precision="int8-static")
    view = shown(rich, session, quality(), candidate=static)
    session.feed(INSPECTED)
    view.buttons.tune.click()
    dialog = view.actions_of.tuning
    assert dialog is not None
    view.buttons.calibrate.click()
    session.feed(Progress(phase="load", done=3, total=9, unit="pieces"))
    assert dialog.note.text() == ""
    assert view.buttons.calibrate.text() == "Stop calibrating"
    assert not view.buttons.tune.isEnabled()
    view.buttons.calibrate.click()
    assert isinstance(session.sent[-1], Cancel)
    session.feed(Failure(kind="cancelled", message="Cancelled while calibrating smollm2-135m."))
    assert view.buttons.calibrate.text() == "Calibrate"
    assert dialog.note.text() == ""
    dialog.folder.line.setText(str(tmp_path / "tuned"))
    qtbot.keyClick(dialog.folder.line, Qt.Key.Key_Return)
    assert isinstance(session.sent[-1], FineTune), "Enter starts"
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    assert isinstance(session.sent[-1], FineTune), "and does not stop what it started"
    session.feed(fine_tuned())
    assert not dialog.stop.isEnabled()
    dialog.close()


def test_calibrated_ranges_go_into_setup(rich: MainWindow, session: Any) -> None:
    static = Variant(precision="int8-static")
    view = shown(rich, session, quality(), candidate=static)
    session.feed(INSPECTED)
    assert not view.buttons.calibrate.isHidden()
    view.buttons.calibrate.click()
    assert session.sent[-1] == Calibrate(model="smollm2-135m", recipe="int8-static")
    session.feed(
        Calibrated(model="smollm2-135m", recipe="int8-static", source="text", tokens=512, inputs=9, path="/ranges.json")
    )
    assert rich.controller.setup.variant.options == {"int8-static": {"ranges": "/ranges.json"}}
