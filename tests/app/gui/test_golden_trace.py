"""The Trace view with its timeline, pixel for pixel, in both themes; see test_golden.py for taking them anew."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from tests_app_traces import write_trace

from gptscope.app.gui.window import MainWindow

GOLDEN = Path(__file__).with_name("golden")
ROUNDING = 2
"""Of 255: other processors round the last bits of blending differently."""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="letters are drawn differently on other systems")


def pixels(image: QImage) -> np.ndarray:
    flat = np.frombuffer(bytes(image.constBits()), np.uint8)
    return flat.reshape(image.height(), image.width(), 4)[:, :, :3].astype(np.int16)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_an_opened_trace_with_a_range_and_a_chosen_kernel(
    theme: Any, window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    window.theme.choose(theme)
    window.tracing.open(write_trace(tmp_path / "run.json"))
    view = window.tracing.view
    assert view is not None
    with qtbot.waitSignal(view.loader.finished, timeout=30_000):
        pass
    timeline = view.state.timeline
    assert timeline is not None
    step = timeline.steps[1]
    view.state.look(view.state.axis.to(step.start - 10_000, step.end + 10_000))
    view.state.select((step.start + 100_000, step.start + 300_000))
    kernel = int(np.flatnonzero(timeline.trace.named_so("flash_fwd_kernel".__eq__))[5])
    view.timeline.show_row(kernel)
    qtbot.waitUntil(lambda: len(view.inspector.arguments.texts()) > 2, timeout=10_000)
    window.tell("Ready.", "info")
    focus = window.focusWidget()
    if focus is not None:
        focus.clearFocus()
    for _ in range(5):
        QApplication.processEvents()
    shown = window.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    file = GOLDEN / f"trace-{theme}.png"
    if os.environ.get("GPTSCOPE_UPDATE_GOLDEN"):
        shown.save(str(file))
        return
    expected = QImage(str(file)).convertToFormat(QImage.Format.Format_RGB32)
    assert not expected.isNull(), f"{file} is missing"
    shown.save(str(tmp_path / file.name))
    assert shown.size() == expected.size()
    different = int((np.abs(pixels(shown) - pixels(expected)).max(axis=2) > ROUNDING).sum())
    assert different == 0, f"{different} pixels differ from {file}; what is drawn now is in {tmp_path / file.name}"
