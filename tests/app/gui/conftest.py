"""A window over a scripted engine; any Qt warning, logged error or left-over window fails the test."""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QtMsgType
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from tests_app_quality_streams import RICH_CAPABILITIES
from tests_app_steps import opened
from tests_app_streams import CAPABILITIES, INSPECTED, PEAKS
from tests_app_traces import write_trace

from gptscope.app.gui.session import Session
from gptscope.app.gui.settings import Settings
from gptscope.app.gui.start import build_window, prepare_application
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.views.trace import TraceView
from gptscope.app.gui.window import MainWindow
from gptscope.profiling.records import Message, Record

# Pictures and sizes must be the same on every machine; Qt reads these when the application is made, long after this.
os.environ["FONTCONFIG_FILE"] = str(Path(__file__).with_name("fonts.conf"))
os.environ["LC_ALL"] = "C.UTF-8"
for _name in ("QT_SCALE_FACTOR", "QT_SCREEN_SCALE_FACTORS", "QT_FONT_DPI", "QT_QPA_PLATFORMTHEME", "QT_STYLE_OVERRIDE"):
    os.environ.pop(_name, None)


class ScriptedSession(Session):
    """Remembers commands instead of starting a process; tests send the records."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Message] = []

    def start(self) -> None:
        return

    def send(self, command: Message) -> None:
        self.sent.append(command)

    def close(self) -> None:
        return

    def feed(self, *records: Record, payload: bytes = b"") -> None:
        for record in records:
            self.record.emit(record, payload)


@pytest.fixture(scope="session")
def look(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Theme:
    folder = tmp_path_factory.mktemp("look")
    theme, _ = prepare_application(qapp, theme="dark", settings=Settings(folder / "window.ini"), system_font=False)
    return theme


@pytest.fixture(autouse=True)
def nothing_is_wrong(qtlog: object, caplog: pytest.LogCaptureFixture, qapp: QApplication) -> Iterator[None]:
    yield
    bad = (QtMsgType.QtWarningMsg, QtMsgType.QtCriticalMsg, QtMsgType.QtFatalMsg)
    said = [r.message for r in qtlog.records if r.type in bad]  # type: ignore[attr-defined]
    said = [text for text in said if not text.startswith("This plugin does not support")]  # offscreen has no desktop
    assert not said, f"Qt warned: {said}"
    errors = [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]
    assert not errors, f"errors were logged: {errors}"
    left = [w for w in qapp.topLevelWidgets() if w.isVisible()]
    for widget in left:
        widget.close()
    assert not left, f"windows were left open: {left}"


@pytest.fixture
def session() -> ScriptedSession:
    return ScriptedSession()


@pytest.fixture
def bare_window(
    look: Theme, session: ScriptedSession, tmp_path: Path, qtbot: QtBot
) -> Iterator[Callable[[], MainWindow]]:
    """Opens windows on a fresh library and settings, before the engine has said anything."""
    opened: list[MainWindow] = []

    def open_one() -> MainWindow:
        look.choose("dark")
        settings = Settings(tmp_path / "window.ini")
        window = build_window(look, settings, library=str(tmp_path / "library"), session=session)
        opened.append(window)
        with qtbot.waitSignal(window.ready, timeout=10_000):
            window.resize(1440, 900)  # the offscreen screen is smaller
            window.show()
        return window

    yield open_one
    for window in opened:
        window.close()
        window.deleteLater()
        qtbot.wait(1)


@pytest.fixture
def window(bare_window: Callable[[], MainWindow], session: ScriptedSession) -> MainWindow:
    """A window whose engine has answered."""
    made = bare_window()
    session.feed(CAPABILITIES, INSPECTED, PEAKS)
    return made


@pytest.fixture
def rich(bare_window: Any, session: Any) -> MainWindow:
    """A window whose engine knows recipes with settings."""
    window: MainWindow = bare_window()
    session.feed(RICH_CAPABILITIES, INSPECTED, PEAKS)
    return window


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "run.json.gz")


@pytest.fixture
def view(window: MainWindow, file: Path, qtbot: QtBot) -> TraceView:
    return opened(window, file, qtbot)
