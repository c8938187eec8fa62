"""TensorBoard is started once with an exported trace, or why it cannot be is said."""

import sys
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices
from pytestqt.qtbot import QtBot

from gptscope.app.gui import tensorboard
from gptscope.app.gui.tensorboard import TensorBoard

SERVER = "print('noise'); print('TensorBoard 2.20 at http://localhost:4242/ (Press CTRL+C)', flush=True); input()"


class Told(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.sentences: list[tuple[str, str]] = []

    def __call__(self, sentence: str, level: str) -> None:
        self.sentences.append((sentence, level))


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def board(told: Told, monkeypatch: pytest.MonkeyPatch) -> Iterator[TensorBoard]:
    monkeypatch.setattr(tensorboard, "missing_packages", list)
    board = TensorBoard(told, told)
    yield board
    board.close()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    addresses: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: addresses.append(QUrl(url).toString()))
    return addresses


def test_the_browser_opens_at_the_address_that_the_server_says(
    board: TensorBoard, told: Told, opened: list[str], qtbot: QtBot
) -> None:
    folder = board.folder()
    assert folder is not None
    assert folder.is_dir()
    board.show([sys.executable, "-c", SERVER])
    qtbot.waitUntil(lambda: bool(opened), timeout=20_000)
    assert opened == ["http://localhost:4242/#pytorch_profiler"]
    board.show()
    assert len(opened) == 2, "a second trace needs no second server"
    assert "until this window closes" in told.sentences[-1][0]
    board.close()
    assert not folder.exists()


def test_a_server_that_ends_is_told_with_its_last_line(board: TensorBoard, told: Told, qtbot: QtBot) -> None:
    board.folder()
    board.show([sys.executable, "-c", "print('no port is free')"])
    qtbot.waitUntil(lambda: any(level == "error" for _, level in told.sentences), timeout=20_000)
    assert told.sentences[-1] == ("TensorBoard ended: no port is free", "error")


def test_a_missing_program_is_told(board: TensorBoard, told: Told, qtbot: QtBot) -> None:
    board.folder()
    board.show(["/nowhere/tensorboard"])
    qtbot.waitUntil(lambda: any(level == "error" for _, level in told.sentences), timeout=20_000)
    assert "could not be started" in told.sentences[-1][0]


def test_what_is_not_installed_is_named(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorboard, "find_spec", lambda name: None)
    board = TensorBoard(told, told)
    assert board.folder() is None
    assert "tensorboard and torch-tb-profiler not installed. Install with `" in told.sentences[-1][0]
    assert " -m pip install tensorboard torch-tb-profiler`" in told.sentences[-1][0]
    monkeypatch.setattr(sys, "prefix", "/home/me/.local/share/pipx/venvs/gptscope")
    assert board.folder() is None
    assert "`pipx inject gptscope tensorboard torch-tb-profiler`" in told.sentences[-1][0]
