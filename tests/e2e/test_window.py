"""The real window on a real display with the real engine and the bundled model, driven by mouse and keyboard."""

import csv
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from gptscope.assets import ASSETS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

Open = Callable[..., Any]
TINY = "preset:tiny"
"""Where a test is not about the model: loads in no time and steps fast on a busy machine, too."""
READY = "c.capabilities is not None and c.model is not None"
MEASURED = "live.cards[0].value.text() != 'n/a'"


def ready(window: Any) -> None:
    """Wait for the engine's answers."""
    window.wait(f"({READY}) or c.model_problem", "the engine's answer")
    assert window.get("c.model_problem") == ""


def small_run(window: Any) -> None:
    """Set a workload that takes seconds, by keyboard, and run it."""
    begin(window, (("Context", "32"), ("New tokens", "24"), ("Sequences", "3"), ("Threads", "1")))


def begin(window: Any, numbers: tuple[tuple[str, str], ...]) -> None:
    """Type the numbers into their fields, press Run, wait until another experiment has begun.

    A quick run may have ended before one looks, so the sign is another experiment, not `running`.
    """
    ready(window)
    for name, value in numbers:
        window.click(name)
        window.keys("ctrl+a")
        window.type(value)
        window.keys("Tab")
    before = window.get("c.experiment and c.experiment.experiment_id")
    window.keys("ctrl+r")
    window.wait(f"c.experiment is not None and c.experiment.experiment_id != {before!r}", "the run's start")


def finish(window: Any) -> None:
    window.wait("not c.running", "the run's end")
    window.wait(MEASURED, "the numbers")


def long_run(window: Any) -> None:
    """A run that is still going on when one acts on it."""
    begin(window, (("Sequences", "9999"), ("Threads", "1")))
    window.wait(f"c.running and {MEASURED}", "the first numbers")


def test_first_start_offers_the_demo_and_closes_without_a_trace(open_window: Open) -> None:
    window = open_window()
    assert window.get("window.current_view() is window.first")
    ready(window)
    assert window.get("window.dock.model_form._facts[0].text()").startswith("Llama")
    errors = window.close()
    assert "Traceback" not in errors, errors


def test_toggle_levers_run_and_read_the_numbers(open_window: Open) -> None:
    window = open_window()
    ready(window)
    window.click("Precision: BF16")
    window.click("All fusions")
    window.click("KV cache: static")
    assert window.get("c.setup.variant.precision") == "bf16"
    assert window.get("len(c.setup.variant.fusions)") >= 4
    small_run(window)
    finish(window)
    assert float(window.get("live.cards[0].value.text()").replace("\u202f", "")) > 0
    assert window.get("live.kernel_chart.times is not None and len(live.kernel_chart.times.rows)") >= 3
    window.keys("ctrl+2")
    window.wait("window.current_view() is profile", "the Profile view")
    assert window.get("profile.kernels.columns.rowCount()") > 3
    assert window.get("profile.roofline.canvas.chart.empty") == ""
    window.close()


def test_stop_keeps_what_was_measured(open_window: Open) -> None:
    window = open_window(TINY)
    long_run(window)
    pressed = time.monotonic()
    window.keys("Escape")
    window.wait("not c.running", "the stop")
    assert time.monotonic() - pressed < 30
    assert window.get(MEASURED)
    assert window.get("c.experiment.finished.outcome") == "cancelled"
    window.close()


def test_a_killed_worker_and_a_killed_engine_are_told_and_the_next_run_works(open_window: Open) -> None:
    window = open_window(TINY)
    long_run(window)
    worker = next(p for p in window.engine_children() if "gptscope.profiling.worker" in p.cmdline())
    worker.send_signal(signal.SIGKILL)
    window.wait("not c.running", "the end after the worker's death")
    assert window.get("live.failure.isVisible()")
    assert window.get("live.failure.sentence.text()").endswith(".")
    assert window.get(MEASURED)
    window.keys("ctrl+r")
    window.wait(f"c.running and {MEASURED}", "the run after a worker's death")
    psutil.Process(window.get("c.session.engine_pid")).send_signal(signal.SIGKILL)
    window.wait("not c.running", "the end after the engine's death")
    assert "What was measured is kept" in window.get("live.failure.sentence.text()")
    assert window.get(MEASURED)
    small_run(window)
    finish(window)
    assert window.get("c.experiment.finished.outcome") == "done"
    window.close()


def test_a_run_is_reopened_from_history_after_a_restart(open_window: Open) -> None:
    window = open_window(TINY)
    small_run(window)
    finish(window)
    speed = window.get("live.cards[0].value.text()")
    window.close()
    again = open_window(TINY)
    again.keys("ctrl+6")
    again.wait("history.table.columns.rowCount() == 1", "the kept run")
    again.click("Runs")
    again.keys("Home", "Return")
    again.wait("window.current_view() is live", "the reopened run")
    assert again.get("live.cards[0].value.text()") == speed
    again.close()


def test_two_runs_from_history_are_compared_and_then_measured_together(open_window: Open) -> None:
    window = open_window(TINY)
    small_run(window)
    finish(window)
    window.click("Precision: BF16")
    small_run(window)
    finish(window)
    window.keys("ctrl+6")
    window.wait("history.table.columns.rowCount() == 2", "both kept runs")
    window.wait("all(e.outcome == 'done' for e in history._entries.values())", "their ends")
    window.click("Runs")
    window.keys("ctrl+a")
    window.click("Compare")
    window.wait("window.current_view() is window.compare", "the Compare view")
    assert window.get("len(window.compare.cards)") == 1
    assert window.get("window.compare.cards[0].card.figures[0].value") != "n/a"
    assert "different times" in window.get("window.compare.cards[0].card.reason")
    assert window.get("window.compare.canvas.chart is not None")
    window.click("A: show in Profile")
    window.wait("window.current_view() is profile", "the Profile view")
    assert window.get("c.experiment.current.started.variant.precision") == "bf16"
    window.keys("ctrl+3")
    window.wait("window.current_view() is window.compare", "Compare again")
    before = window.get("c.experiment.experiment_id")
    window.click("Measure together")
    window.wait(f"c.experiment.experiment_id != {before!r} and not c.running", "the measurement of both")
    window.keys("ctrl+3")
    window.wait("window.current_view() is window.compare", "the verdict")
    assert window.get("len(window.comparing.run_ids)") == 2
    assert not window.get("window.comparing.from_history")
    assert "different times" not in window.get("window.compare.cards[0].card.reason")
    window.close()


def test_the_theme_is_switched_by_mouse_and_kept(open_window: Open) -> None:
    window = open_window()
    window.click("Switch theme")
    window.wait("window.theme.name == 'light'", "the light theme")
    window.close()
    settings = next(window.home.rglob("window.ini")).read_text("utf-8")
    assert "theme=light" in settings


def test_a_chart_is_exported_through_the_menu(open_window: Open) -> None:
    window = open_window(TINY)
    small_run(window)
    finish(window)
    window.keys("ctrl+k")
    window.type("chart data csv")
    window.keys("Return")
    window.wait("QApplication.activeModalWidget() is not None", "the save dialog")
    file = window.home / "speed.csv"
    window.keys("ctrl+a")
    window.type(str(file))
    window.keys("Return")
    window.wait("window.status_text.text().startswith('Saved')", "the export")
    rows = list(csv.reader(file.read_text("utf-8").splitlines()))
    assert rows[0] == ["series", "x", "x_end", "y"]
    assert len(rows) > 2
    window.close()


def drag_across(window: Any, pause: str) -> None:
    """Press on the small window, move onto the large one in steps, let go."""
    window.xdotool("mousemove", "80", "70", "sleep", pause, "mousedown", "1", "sleep", pause)
    for x, y in ((110, 90), (300, 300), (700, 500), (710, 510), (720, 520), (725, 525)):
        window.xdotool("mousemove", str(x), str(y), "sleep", pause)
    window.xdotool("mouseup", "1")


def test_a_model_folder_is_dragged_onto_the_window(open_window: Open, tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    shutil.copytree(ASSETS / "bundled", folder, ignore=shutil.ignore_patterns("*.py", "__pycache__", "*.txt", "*.csv"))
    window = open_window()
    ready(window)
    script = Path(__file__).with_name("drag_source.py")
    source = subprocess.Popen(
        [sys.executable, "-P", str(script), str(folder)], env=window.environment, stdout=subprocess.PIPE, text=True
    )
    chosen = f"c.setup.model == {str(folder)!r}"
    try:
        assert source.stdout is not None
        assert source.stdout.readline() == "shown\n"
        for pause in ("0.2", "0.5", "1.5", "4"):  # a busy machine misses quick movements
            drag_across(window, pause)
            if window.holds(chosen, patience_s=3 + 2 * float(pause)):
                break
    finally:
        source.terminate()
        source.communicate()
    window.wait(f"c.setup.model == {str(folder)!r} and c.model is not None", "the dropped model")
    assert window.get("c.model.n_layer") == 4
    window.close()


def test_int8_with_a_changed_setting_is_compared_and_the_quality_view_shows_figures(open_window: Open) -> None:
    window = open_window()
    ready(window)
    window.click("Precision: INT8")
    window.click("Recipe")
    window.keys("Down", "Return")
    window.wait("c.setup.variant.precision == 'int8-dynamic'", "the recipe")
    window.click("INT8 dynamic: Weight scales")
    window.keys("Down", "Return")
    window.wait("c.setup.variant.options == {'int8-dynamic': {'granularity': 'tensor'}}", "the setting")
    window.xdotool("mousemove", "40", "500", "click", "--repeat", "40", "--delay", "15", "5")
    window.click("Compare output")
    window.wait("c.setup.compare", "the comparison")
    window.xdotool("mousemove", "40", "500", "click", "--repeat", "40", "--delay", "15", "4")
    small_run(window)
    window.wait("not c.running", "the run's end")
    assert window.get("c.experiment.finished.outcome") == "done"
    window.keys("ctrl+4")
    window.wait("window.current_view() is window.quality", "the Quality view")
    values = window.get("[card.value.text() for card in window.quality.cards]")
    assert len(values) == 5
    assert not [value for value in values if value.startswith("n/a")]
    assert window.get("len(window.quality.text.prompts.model().rows)") > 3
    assert window.get("window.quality.candidate.currentText()") == "A INT8 dynamic, granularity tensor"
    window.close()


def test_the_palette_chooses_a_model(open_window: Open) -> None:
    window = open_window()
    ready(window)
    window.keys("ctrl+k")
    window.type("preset tiny")
    window.keys("Return")
    window.wait("c.setup.model == 'preset:tiny' and c.model is not None", "the model's facts")
    assert window.get("c.model.random_weights")
    window.close()
