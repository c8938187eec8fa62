"""Actions, palette, dialogs, exports."""

import csv
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage, QKeySequence
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot
from tests_app_streams import experiment_records

from gptscope.app.gui.actions import ACTIONS
from gptscope.app.gui.charts.exporting import export_chart
from gptscope.app.gui.dialogs import AboutDialog, GlossaryDialog, SettingsDialog
from gptscope.app.gui.palette import CommandPalette
from gptscope.app.gui.settings import Settings
from gptscope.app.gui.window import PROFILE, MainWindow
from gptscope.app.viewmodels.formatting import DIGITS, show_digits
from gptscope.profiling.records import TraceChunk


def finished(window: MainWindow, session: Any, qtbot: QtBot) -> None:
    """A run in the window and in the library, with a trace."""
    trace = gzip.compress(b'{"traceEvents": []}')
    window.controller.run()
    records = experiment_records()
    session.feed(*records[:-2])
    session.feed(TraceChunk(run_id="r1", offset=0, last=True), payload=trace)
    session.feed(*records[-2:])
    library = window.controller.library
    assert library is not None
    qtbot.waitUntil(lambda: getattr(library.find("r1"), "outcome", "") == "done", timeout=15_000)


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file that every save dialog answers with is `tmp_path / <proposed name>`."""

    def ask(_parent: object, _title: str, proposed: str, _kinds: str) -> tuple[str, str]:
        return str(tmp_path / Path(proposed).name), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", ask)
    return tmp_path


def test_no_two_actions_share_a_shortcut_or_a_title_in_one_menu() -> None:
    shortcuts = [QKeySequence(spec.shortcut).toString() for spec in ACTIONS if spec.shortcut]
    assert len(shortcuts) == len(set(shortcuts))
    places = [(spec.menu, spec.submenu, spec.title) for spec in ACTIONS]
    assert len(places) == len(set(places))


def test_every_action_is_in_a_menu(window: MainWindow) -> None:
    def texts(menu: Any) -> set[str]:
        found = set()
        for action in menu.actions():
            found |= texts(action.menu()) if action.menu() is not None else {action.objectName()}
        return found

    assert {spec.id for spec in ACTIONS} <= texts(window.menuBar())


@pytest.mark.parametrize("kind", ["png", "svg", "pdf", "csv"])
def test_every_chart_is_saved_as(kind: str, window: MainWindow, session: Any, qtbot: QtBot, tmp_path: Path) -> None:
    finished(window, session, qtbot)
    assert window.live is not None
    assert window.profile is not None
    window.show_view(PROFILE)
    charts = [*window.live.exportables(), *window.profile.exportables()]
    assert len(charts) == 6
    for index, chart in enumerate(charts):
        file = tmp_path / f"{index}.{kind}"
        export_chart(chart, file)
        data = file.read_bytes()
        if kind == "png":
            image = QImage(str(file))
            assert image.width() == chart.widget.width() * 2
            colours = {image.pixel(x, y) for x in range(0, image.width(), 7) for y in range(0, image.height(), 7)}
            assert len(colours) > 3, f"{chart.title} is blank"
        elif kind == "svg":
            assert data.count(b"<path") + data.count(b"<polyline") + data.count(b"<rect") > 5, chart.title
        elif kind == "pdf":
            assert data.startswith(b"%PDF")
            assert len(data) > 2000
        else:
            assert len(list(csv.reader(data.decode().splitlines()))) > 3, chart.title


def test_the_menu_saves_the_run(window: MainWindow, session: Any, qtbot: QtBot, answer: Path) -> None:
    finished(window, session, qtbot)
    for action in ("export_trace", "export_json", "export_kernels_csv", "export_steps_csv", "export_chart_svg"):
        assert window.actions_by_id[action].isEnabled()
        window.actions_by_id[action].trigger()
        assert window.status_text.text().startswith("Saved "), window.status_text.text()
    assert json.loads(gzip.decompress((answer / "r1.json.gz").read_bytes())) == {"traceEvents": []}
    document = json.loads((answer / "r1.json").read_text("utf-8"))
    assert "tokens_per_s" in str(document)
    kernels = list(csv.DictReader((answer / "r1-kernels.csv").read_text("utf-8").splitlines()))
    assert len(kernels) == 10
    assert kernels[0]["name"] == "gate_up 3072x576"
    steps = list(csv.DictReader((answer / "r1-steps.csv").read_text("utf-8").splitlines()))
    assert {row["phase"] for row in steps} == {"warmup", "measure", "profile"}
    assert len([row for row in steps if row["phase"] == "measure" and row["kind"] == "decode"]) == 7 * 96


def test_an_export_that_cannot_be_written_is_told(
    window: MainWindow, session: Any, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished(window, session, qtbot)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("/proc/nowhere/x.csv", ""))
    window.actions_by_id["export_steps_csv"].trigger()
    assert "could not be saved" in window.status_text.text()


def test_exports_are_off_without_a_run(window: MainWindow) -> None:
    assert not window.actions_by_id["export_json"].isEnabled()
    assert not window.export_button.isEnabled()


def test_the_palette_finds_and_does(window: MainWindow, session: Any, qtbot: QtBot) -> None:
    qtbot.keyClick(window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    palette = window.findChild(CommandPalette)
    assert palette is not None
    qtbot.keyClicks(palette.input, "model tiny")
    assert palette.list.item(0).text().startswith("Model: preset:tiny")
    qtbot.keyClick(palette.input, Qt.Key.Key_Return)
    assert window.controller.setup.model == "preset:tiny"


def test_the_palette_moves_with_the_arrows_and_leaves_with_esc(window: MainWindow, qtbot: QtBot) -> None:
    window.commands.open_palette()
    palette = window.findChild(CommandPalette)
    assert palette is not None
    qtbot.keyClick(palette.input, Qt.Key.Key_Down)
    assert palette.list.currentRow() == 1
    qtbot.keyClick(palette.input, Qt.Key.Key_Up)
    assert palette.list.currentRow() == 0
    qtbot.keyClick(palette, Qt.Key.Key_Escape)
    assert not palette.isVisible()


def test_settings_are_kept_when_accepted_only(window: MainWindow, tmp_path: Path) -> None:
    dialog = SettingsDialog(window)
    dialog.folder.setText(str(tmp_path / "elsewhere"))
    dialog.profile.setChecked(False)
    dialog.reject()
    assert window.settings.library_folder is None
    dialog.theme.setCurrentIndex(dialog.theme.findData("light"))
    dialog.accept()
    assert window.settings.library_folder == tmp_path / "elsewhere"
    assert window.settings.profile_after_run is False
    assert window.theme.name == "light"
    dialog.deleteLater()


@pytest.fixture
def usual_digits() -> Iterator[None]:
    yield
    show_digits(DIGITS[0])


def test_more_decimals_are_written_everywhere_at_once_and_kept(
    window: MainWindow, session: Any, qtbot: QtBot, usual_digits: None
) -> None:
    finished(window, session, qtbot)
    live, profile, history = window.live, window.profile, window.history
    assert live is not None
    assert profile is not None
    assert history is not None
    assert live.cards[0].value.text() == "57.0"
    profile.refresh()
    chosen = profile.kernels.chosen_key()
    dialog = SettingsDialog(window)
    dialog.digits.setCurrentIndex(dialog.digits.findData(5))
    dialog.accept()
    dialog.deleteLater()
    assert re.fullmatch(r"5\d\.\d{3}", live.cards[0].value.text())
    assert live.speed.canvas.chart.lines[-1].end_label.split()[0].count(".") == 1
    assert profile.kernels.columns.index(0, 4).data() == "5.3100"
    assert profile.kernels.chosen_key() == chosen
    columns = history.table.columns
    qtbot.waitUntil(lambda: re.fullmatch(r"5\d\.\d{3}", str(columns.index(0, 1).data())) is not None, timeout=15_000)
    assert Settings(window.settings.file).digits == 5
    window.settings._store.setValue("digits", "many")
    assert window.settings.digits == DIGITS[0], "a damaged setting is the usual number"


def test_the_glossary_filters_and_about_names_versions(window: MainWindow) -> None:
    glossary = GlossaryDialog(window)
    glossary.show()
    glossary._filter("first token")
    shown = [text for text, block in glossary._terms if block.isVisible()]
    assert len(shown) >= 1
    assert any("ttft" in text for text in shown)
    glossary.close()
    about = AboutDialog(window)
    about.show()
    about.close()
    about.deleteLater()


def test_reset_layout_brings_setup_back(window: MainWindow) -> None:
    window.actions_by_id["toggle_setup"].trigger()
    assert window.dock.isHidden()
    window.actions_by_id["reset_layout"].trigger()
    assert window.dock.isVisible()
