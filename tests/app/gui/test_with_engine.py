"""Fine-tuning, calibrating and verifying a mix in the real window with the real engine and the bundled model."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from pytestqt.qtbot import QtBot
from tests_app_quality_streams import compared, layer_errors, quality

from gptscope.app.gui.session import Session
from gptscope.app.gui.settings import Settings
from gptscope.app.gui.start import build_window
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.tuning_dialog import TuningDialog
from gptscope.app.gui.views.quality import QualityView
from gptscope.app.gui.window import QUALITY, MainWindow
from gptscope.app.viewmodels.experiment_view import ExperimentView
from gptscope.assets.bundled import evaluation_text
from gptscope.profiling.experiment import Variant, Workload
from gptscope.profiling.records import ExperimentStarted, ModelInfo

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
PATIENCE_MS = 120_000
STATIC = Variant(precision="int8-static", options={"int8-static": {"range": "minmax"}}, threads=1)


@pytest.fixture
def real(look: Theme, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Iterator[MainWindow]:
    """A window whose engine has answered; it shows a comparison of the bundled model, as if it had just been made."""
    for name in ("DATA", "CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    settings = Settings(tmp_path / "window.ini")
    settings.profile_after_run = False
    window = build_window(look, settings, library=str(tmp_path / "library"), session=Session())
    window.show()
    qtbot.waitUntil(lambda: window.controller.capabilities is not None, timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: window.controller.model is not None, timeout=PATIENCE_MS)
    work = Workload(kind="decode", context=32, new_tokens=16, steps=5)
    records = compared(quality(), layer_errors(), candidate=STATIC, model="bundled", workload=work)
    begin = records[0]
    assert isinstance(begin, ExperimentStarted)
    own = tmp_path / "own.txt"
    own.write_text(evaluation_text().read_text("utf-8")[:6000], "utf-8")
    shown = msgspec.structs.replace(begin.experiment, text=str(own))
    records[0] = msgspec.structs.replace(begin, experiment=shown)
    window.controller.experiment = ExperimentView.replay("x", records)
    window.controller.experiment_opened.emit()
    window.show_view(QUALITY)
    yield window
    window.close()
    window.deleteLater()
    qtbot.wait(1)


def view(window: MainWindow) -> QualityView:
    assert window.quality is not None
    return window.quality


def tuning(window: MainWindow, folder: Path, *, steps: int, text: str = "") -> TuningDialog:
    """The dialog with one layer to train, one thread."""
    view(window).buttons.tune.click()
    dialog = view(window).actions_of.tuning
    assert dialog is not None
    dialog.layers.setValue(1)
    dialog.steps.setValue(steps)
    dialog.folder.line.setText(str(folder))
    dialog.text.line.setText(text)
    return dialog


def workers(window: MainWindow) -> list[psutil.Process]:
    engine = psutil.Process(window.controller.session.engine_pid)
    return [one for one in engine.children(recursive=True) if "gptscope.profiling.worker" in " ".join(one.cmdline())]


def training(dialog: TuningDialog) -> bool:
    return dialog.note.text().startswith("steps ") and not dialog.note.text().startswith("steps 0 ")


def prune(window: MainWindow) -> None:
    """Let the shown candidate be a pruned one, with the INT8 recipe that it had."""
    page = view(window)._page
    assert page is not None
    pruned = msgspec.structs.replace(
        STATIC, pruning="structured", options={**STATIC.options, "structured": {"heads": 0.0, "mlp": 0.5}}
    )
    view(window)._page = dataclasses.replace(page, variant=pruned)
    view(window).buttons.show_page(view(window)._page)


def opened(window: MainWindow, folder: Path, qtbot: QtBot) -> ModelInfo:
    """What the engine says a saved folder is."""
    window.controller.inspect(str(folder))
    qtbot.waitUntil(
        lambda: window.controller.model is not None or bool(window.controller.model_problem), timeout=PATIENCE_MS
    )
    assert window.controller.model_problem == ""
    assert window.controller.model is not None
    return window.controller.model


def test_a_pruned_model_is_saved_and_trained_and_its_folders_load(
    real: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    whole = real.controller.model
    prune(real)
    view(real).buttons.save.click()
    saving = view(real).actions_of.saving
    assert saving is not None
    saving.folder.line.setText(str(tmp_path / "pruned"))
    saving.start.click()
    assert saving.stop.isEnabled()
    qtbot.waitUntil(saving.use.isEnabled, timeout=PATIENCE_MS)
    assert "parameters are left" in saving.note.text()
    saving.close()
    dialog = tuning(real, tmp_path / "tuned", steps=2)
    notes: list[str] = []
    real.controller.work_changed.connect(lambda _record: notes.append(dialog.note.text()))
    dialog.start.click()
    assert dialog.stop.isEnabled()
    assert real.actions_by_id["stop"].isEnabled(), "Esc stops it, too"
    qtbot.waitUntil(dialog.use.isEnabled, timeout=PATIENCE_MS)
    assert any(note.startswith("steps 2 of 2, loss ") for note in notes)
    assert "windows 1 of 12, the original model" in notes
    assert dialog.note.text().endswith(f"saved in {tmp_path / 'tuned'}.")
    assert "1 layer trained" in dialog.note.text()
    assert dialog.note.text().startswith("Structured pruning with INT8 static: perplexity")
    assert not real.actions_by_id["stop"].isEnabled()
    dialog.close()
    assert whole is not None
    for made in ("pruned", "tuned"):
        model = opened(real, tmp_path / made, qtbot)
        assert model.source == "hf_folder"
        assert model.parameters < 0.9 * whole.parameters


def test_stopped_killed_and_refused_trainings_leave_one_sentence_and_a_window_that_goes_on(
    real: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    dialog = tuning(real, tmp_path / "tuned", steps=100_000)
    dialog.start.click()
    qtbot.waitUntil(lambda: training(dialog), timeout=PATIENCE_MS)
    dialog.reject()
    qtbot.waitUntil(dialog.start.isEnabled, timeout=5_000)
    assert dialog.isVisible(), "the first Esc stops, the second closes"
    assert not (tmp_path / "tuned").exists()

    dialog.start.click()
    qtbot.waitUntil(lambda: dialog.note.text().startswith("windows "), timeout=PATIENCE_MS)
    max(workers(real), key=lambda one: sum(one.cpu_times()[:2])).kill()  # a spare one may be waiting
    qtbot.waitUntil(dialog.start.isEnabled, timeout=10_000)
    assert "kill" in dialog.note.text().lower()
    assert dialog.note.text().endswith(".")

    full = tmp_path / "full"
    full.mkdir()
    (full / "config.json").write_text("{}")
    binary = tmp_path / "binary.txt"
    binary.write_bytes(bytes(range(256)) * 64)
    dialog.folder.line.setText(str(full))
    assert not dialog.start.isEnabled()
    assert str(full) in dialog.folder_problem.text()
    dialog.folder.line.setText(str(tmp_path / "new"))
    dialog.text.line.setText(str(binary))
    dialog.start.click()
    qtbot.waitUntil(dialog.start.isEnabled, timeout=PATIENCE_MS)
    assert "binary.txt" in dialog.note.text()
    assert not (tmp_path / "new").exists()
    assert (full / "config.json").read_text() == "{}"
    dialog.reject()
    assert not dialog.isVisible()
    assert real.isVisible()


def test_calibrating_fills_setup_and_verifying_a_mix_measures_it(real: MainWindow, qtbot: QtBot) -> None:
    told: list[str] = []
    real.controller.told.connect(lambda sentence, _level: told.append(sentence))
    view(real).buttons.calibrate.click()
    assert real.actions_by_id["stop"].isEnabled()

    def ranges() -> str:
        return str(real.controller.setup.variant.options.get("int8-static", {}).get("ranges", ""))

    qtbot.waitUntil(lambda: bool(ranges()), timeout=PATIENCE_MS)
    assert Path(ranges()).is_file()
    assert any(sentence.startswith("Calibrating: pieces ") for sentence in told)
    experiment = real.controller.experiment
    assert experiment is not None
    assert experiment.experiment is not None
    quality_view = view(real)
    quality_view._keep(("blocks.1.mlp.down", "blocks.0.mlp.down"))
    quality_view.mix.verify_button.click()
    assert real.controller.running, told[-1]
    qtbot.waitUntil(lambda: not real.controller.running, timeout=2 * PATIENCE_MS)
    quality_view.refresh()
    page = quality_view._page
    assert page is not None
    assert page.quality is not None
    assert page.quality.tokens > 500
    assert page.quality.text.endswith("own.txt")
    assert page.variant is not None
    assert page.variant.options["int8-static"]["keep"] == "blocks.1.mlp.down+blocks.0.mlp.down"
    assert quality_view.cards[0].value.text() != "n/a"
