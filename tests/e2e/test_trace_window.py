"""A trace dragged onto the real window: zoomed with the wheel, an event clicked, its details read."""

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
TRACES = Path(__file__).parents[1] / "app" / "traces.py"
VIEW = "window.tracing.view"


def write_trace(path: Path) -> Path:
    spec = importlib.util.spec_from_file_location("traces_of_the_app_s_tests", TRACES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written: Path = module.write_trace(path)
    return written


def drag_across(window: Any, pause: str) -> None:
    window.xdotool("mousemove", "80", "70", "sleep", pause, "mousedown", "1", "sleep", pause)
    for x, y in ((110, 90), (300, 300), (700, 500), (710, 510), (720, 520), (725, 525)):
        window.xdotool("mousemove", str(x), str(y), "sleep", pause)
    window.xdotool("mouseup", "1")


def test_a_trace_is_dragged_zoomed_and_clicked(open_window: Callable[..., Any], tmp_path: Path) -> None:
    file = write_trace(tmp_path / "run.json.gz")
    window = open_window()
    script = Path(__file__).with_name("drag_source.py")
    source = subprocess.Popen(
        [sys.executable, "-P", str(script), str(file)], env=window.environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert source.stdout is not None
        assert source.stdout.readline() == "shown\n"
        for pause in ("0.2", "0.5", "1.5", "4"):  # a busy machine misses quick movements
            drag_across(window, pause)
            if window.holds(f"{VIEW} is not None", patience_s=3 + 2 * float(pause)):
                break
    finally:
        source.terminate()
        source.communicate()
    window.wait(f"{VIEW}.trace is not None and not {VIEW}.loader.busy", "the opened trace")
    assert window.get(f"{VIEW}.header.name.text()") == "run.json.gz"

    canvas, state = f"{VIEW}.timeline.canvas", f"{VIEW}.state"
    whole = window.get(f"{state}.axis.length")
    left, top = window.get(f"(lambda p: [p.x(), p.y()])({canvas}.mapToGlobal({canvas}.rect().topLeft()))")
    window.xdotool("mousemove", str(left + 500), str(top + 60), "click", "--repeat", "3", "--delay", "60", "4")
    window.wait(f"{state}.axis.length < {whole} * 0.6", "the wheel's zoom")
    window.keys("d", "d")
    window.keys("f")
    window.wait(f"{state}.axis.is_whole", "the whole trace again")

    kernel = f"int({state}.timeline.trace.named_so('flash_fwd_kernel'.__eq__).nonzero()[0][3])"
    window.click("Search events")
    window.type("flash_fwd")
    window.keys("Return")
    window.wait(f"{state}.row is not None", "the found event")
    window.keys("Return", "Return", "Return")
    x = window.get(f"round({canvas}.width() - {canvas}.lanes_width + {state}.axis.x("
                   f"{state}.timeline.times({kernel})[0] + 2000, {canvas}.lanes_width))")  # fmt: skip
    y = window.get(f"[24 + r.top - {canvas}.offset + 9 for r in {canvas}.rows.lanes if {kernel} in r.lane.rows][0]")
    window.click("Timeline")  # another place first: nothing, or another event, is chosen
    window.xdotool("mousemove", str(left + x), str(top + y), "sleep", "0.2", "click", "1")
    window.wait(f"{VIEW}.inspector.title.text() == 'flash_fwd_kernel'", "the clicked event's details")
    window.wait(f"len({VIEW}.inspector.arguments.texts()) > 3", "its arguments")
    errors = window.close()
    assert "Traceback" not in errors, errors
