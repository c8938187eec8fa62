import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from gptscope.app.gui import guard
from gptscope.app.gui.window import MainWindow

PROBE = """
import os, sys
os.environ["QT_QPA_PLATFORM"] = "offscreen"
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
app = QApplication([])
from gptscope.app.gui.session import Session
from gptscope.app.gui.start import build_window, prepare_application
class Silent(Session):
    def start(self): pass
    def send(self, command): pass
theme, settings = prepare_application(app, theme="dark", system_font=False)
window = build_window(theme, settings, session=Silent())
early = []
begin = window._after_first_paint
def watched():
    early.extend(["painted" if window._painted else "not painted"])
    early.extend(m for m in sys.modules if m == "numpy")
    begin()
window._after_first_paint = watched
window.ready.connect(lambda: QTimer.singleShot(0, app.quit))
window.show()
app.exec()
for index in range(3):
    window.show_view(index)
    app.processEvents()
window.close()
heavy = {"torch", "transformers", "tokenizers", "safetensors", "huggingface_hub", "gguf"}
ours = ("gptscope.models", "gptscope.profiling.worker")
found = sorted(m for m in sys.modules if m.split(".")[0] in heavy or m.startswith(ours))
print("EARLY", early)
print("HEAVY", found)
"""


def test_the_window_never_loads_torch_and_paints_before_numpy() -> None:
    run = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    assert "HEAVY []" in run.stdout, run.stdout
    assert "EARLY ['painted']" in run.stdout, run.stdout


@pytest.mark.parametrize(
    ("pyside", "python", "bad"),
    [
        ("6.11.3", (3, 11), False),
        ("6.12.0", (3, 11), True),
        ("6.12.0", (3, 12), False),
        ("6.12.1", (3, 10), True),
        ("6.13.0", (3, 11), False),
    ],
)
def test_known_bad_pairs_are_refused_with_the_way_out(pyside: str, python: tuple[int, int], *, bad: bool) -> None:
    sentence = guard.broken_pair(pyside, python)
    assert (sentence is not None) == bad
    if sentence is not None:
        assert "pip install" in sentence


def test_this_installation_is_accepted() -> None:
    assert guard.refusal() is None


def test_a_refused_installation_ends_with_the_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from gptscope.app.gui import main

    monkeypatch.setattr(main, "refusal", lambda: "It crashes.")
    assert main.main([]) == 1
    assert capsys.readouterr().err == "It crashes.\n"


def test_the_first_screen_offers_ways_to_begin_before_the_engine_has_answered(
    bare_window: Callable[[], MainWindow], session: Any
) -> None:
    window = bare_window()
    assert window.current_view() is window.first
    assert window.first.demo_button.isEnabled()
    assert [type(command).__name__ for command in session.sent] == ["AskCapabilities"]
    form = window.dock.levers_form
    early = [form.precision, *form.combos.values(), *form.options.values()]
    assert not any(widget.isVisible() for widget in early), "levers appear with the capabilities"


def test_the_layout_is_restored(bare_window: Callable[[], MainWindow], tmp_path: Path, qtbot: QtBot) -> None:
    first = bare_window()
    first.resize(1200, 780)
    first.commands.handlers()["toggle_setup"]()
    first.show_view(1)
    qtbot.wait(1)
    first.close()
    second = bare_window()
    assert second.dock.isHidden()


def test_three_starts_and_ends_leave_nothing_behind(bare_window: Callable[[], MainWindow], qtbot: QtBot) -> None:
    import threading

    for _ in range(3):
        made = bare_window()
        made.close()
    assert [t.name for t in threading.enumerate() if t.name == "library"] == []
