"""The main views, pixel for pixel, in both themes; fonts.conf beside this file makes letters alike on every machine.

After a wanted change: `GPTSCOPE_UPDATE_GOLDEN=1 pytest tests/app/gui/test_golden.py`, and look at the pictures.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from tests_app_quality_streams import INT8, RICH_CAPABILITIES, compared, layer_errors, losses, quality, scales
from tests_app_streams import (
    CAPABILITIES,
    FUSED,
    INSPECTED,
    PEAKS,
    PLAIN,
    WORKLOAD,
    comparison_records,
    experiment_records,
)

from gptscope.app.gui.library_access import LibraryAccess
from gptscope.app.gui.widgets.basics import set_text
from gptscope.app.gui.window import COMPARE, HISTORY, LIVE, PROFILE, QUALITY, MainWindow
from gptscope.profiling.experiment import Variant, Workload
from gptscope.profiling.records import Record, RunStarted

GOLDEN = Path(__file__).with_name("golden")
ROUNDING = 2
"""Of 255: Qt blends with other instructions on other processors, which round the last bits differently."""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="letters are drawn differently on other systems")


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def compare(window: MainWindow, name: str, tmp_path: Path) -> None:
    focus = window.focusWidget()
    if focus is not None:
        focus.clearFocus()  # no blinking cursor
    for _ in range(5):
        QApplication.processEvents()
    set_text(window.status_right, "")  # how many runs are kept yet is up to a thread of its own
    shown = window.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    file = GOLDEN / f"{name}.png"
    if os.environ.get("GPTSCOPE_UPDATE_GOLDEN"):
        shown.save(str(file))
        return
    expected = QImage(str(file)).convertToFormat(QImage.Format.Format_RGB32)
    assert not expected.isNull(), f"{file} is missing"
    actual = tmp_path / f"{name}.png"
    shown.save(str(actual))
    assert shown.size() == expected.size()
    apart = np.abs(pixels(shown) - pixels(expected)).max(axis=2)
    different = int((apart > ROUNDING).sum())
    assert different == 0, f"{different} pixels differ from {file}; what is drawn now is in {actual}"


def pixels(image: QImage) -> np.ndarray:
    """Channels of every pixel, height x width x 3."""
    flat = np.frombuffer(bytes(image.constBits()), np.uint8)
    return flat.reshape(image.height(), image.width(), 4)[:, :, :3].astype(np.int16)


def kept(library: LibraryAccess, records: list[Record], qtbot: QtBot) -> None:
    """Wait until the recorder, a thread of its own, has written the run's numbers."""
    run_id = next(record.run_id for record in records if isinstance(record, RunStarted))
    qtbot.waitUntil(
        lambda: (entry := library.find(run_id)) is not None and entry.headline.tokens_per_second is not None,
        timeout=15_000,
    )


def finished_pair(window: MainWindow, session: Any, qtbot: QtBot) -> None:
    """A baseline and a run beside it, both in the library."""
    library = window.controller.library
    assert library is not None
    for records in (experiment_records(PLAIN, ms=37.0, run_id="base", experiment_id="e0"), experiment_records()):
        window.controller.setup.variant, window.controller.setup.workload = FUSED, WORKLOAD
        window.controller.run()
        session.feed(*records)
        if window.controller.baseline is None:
            window.controller.pin_current()
        kept(library, records, qtbot)
    library.changed.emit()


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_first_screen(theme: Any, bare_window: Callable[[], MainWindow], session: Any, tmp_path: Path) -> None:
    window = bare_window()
    window.theme.choose(theme)
    window.resize(1440, 900)
    session.feed(CAPABILITIES, INSPECTED)
    compare(window, f"first-{theme}", tmp_path)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_live_profile_and_history(
    theme: Any, bare_window: Callable[[], MainWindow], session: Any, qtbot: QtBot, tmp_path: Path, utc: None
) -> None:
    window = bare_window()
    window.theme.choose(theme)
    window.resize(1440, 900)
    session.feed(CAPABILITIES, INSPECTED, PEAKS)
    finished_pair(window, session, qtbot)
    window.tell("Ready.", "info")
    for name, index in (("live", LIVE), ("profile", PROFILE), ("history", HISTORY)):
        window.show_view(index)
        compare(window, f"{name}-{theme}", tmp_path)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_operators_and_compare(
    theme: Any, bare_window: Callable[[], MainWindow], session: Any, tmp_path: Path, utc: None
) -> None:
    window = bare_window()
    window.theme.choose(theme)
    window.resize(1440, 900)
    session.feed(CAPABILITIES, INSPECTED, PEAKS)
    window.controller.run()
    session.feed(*comparison_records())
    window.tell("Ready.", "info")
    window.show_view(COMPARE)
    compare(window, f"compare-{theme}", tmp_path)
    window.show_view(PROFILE)
    assert window.profile is not None
    window.profile.tables.tabs.setCurrentIndex(1)
    compare(window, f"operators-{theme}", tmp_path)


def test_live_at_the_smallest_common_size(
    bare_window: Callable[[], MainWindow], session: Any, qtbot: QtBot, tmp_path: Path, utc: None
) -> None:
    window = bare_window()
    window.resize(1280, 800)
    session.feed(CAPABILITIES, INSPECTED, PEAKS)
    finished_pair(window, session, qtbot)
    window.tell("Ready.", "info")
    compare(window, "live-1280-dark", tmp_path)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_setup_with_settings_and_the_quality_view(
    theme: Any, bare_window: Callable[[], MainWindow], session: Any, tmp_path: Path, utc: None
) -> None:
    window = bare_window()
    window.theme.choose(theme)
    window.resize(1440, 900)
    session.feed(RICH_CAPABILITIES, INSPECTED, PEAKS)
    window.controller.setup.variant, window.controller.setup.compare = INT8, True
    window.controller.setup_changed.emit()
    window.controller.run()
    session.feed(*compared(quality(), layer_errors()))
    window.tell("Ready.", "info")
    compare(window, f"setup-int8-{theme}", tmp_path)
    window.show_view(QUALITY)
    compare(window, f"quality-{theme}", tmp_path)


def test_quality_of_a_training_at_the_smallest_common_size(
    bare_window: Callable[[], MainWindow], session: Any, tmp_path: Path, utc: None
) -> None:
    window = bare_window()
    window.resize(1280, 800)
    session.feed(RICH_CAPABILITIES, INSPECTED, PEAKS)
    window.controller.run()
    work = Workload(kind="train", batch=8, context=128, steps=60)
    fp8 = Variant(precision="fp8-delayed")
    session.feed(*compared(losses("r0"), losses("r1", 0.03), scales(), candidate=fp8, workload=work))
    window.tell("Ready.", "info")
    window.show_view(QUALITY)
    compare(window, "quality-train-1280-dark", tmp_path)
