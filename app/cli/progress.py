"""How far a run is, on standard error: one bar with the time left on a terminal, a few lines otherwise.

The bar is drawn at most four times a second: the measured process needs the computer more.
"""

import time
from typing import TYPE_CHECKING, Protocol

from gptscope.app.cli.console import Console
from gptscope.app.viewmodels.formatting import count, number
from gptscope.profiling.records import Phase, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

REFRESH_HZ = 4
_QUARTERS = 4
_LONG_S = 10.0
_VERBS: dict[Phase, str] = {
    "start": "Starting",
    "fetch": "Downloading",
    "load": "Loading",
    "compile": "Compiling",
    "warmup": "Warming up",
    "measure": "Measuring",
    "profile": "Profiling",
    "evaluate": "Comparing output",
    "peaks": "Measuring this machine's peaks",
    "train": "Training",
}


_PEAKS = {"read_gbps": "memory read", "copy_gbps": "memory copy"}


class ProgressView(Protocol):
    """Shows progress and lets sentences through."""

    def update(self, progress: Progress, who: str) -> None:
        """Show a phase of the variant called `who` (empty: of no variant)."""

    def say(self, sentence: str, *, warning: bool = False) -> None:
        """Print a sentence without disturbing the bar."""

    def close(self) -> None:
        """Take the bar away."""


def progress_view(console: Console) -> ProgressView:
    """The view that suits the output."""
    return BarView(console) if console.is_terminal else LineView(console)


def describe(progress: Progress, who: str) -> str:
    """`Measuring BF16, attention: note`."""
    text = _VERBS[progress.phase]
    if progress.phase == "peaks":  # of the machine, not of a variant
        return f"{text}: {_PEAKS.get(progress.note, f'matrix product {progress.note}')}" if progress.note else text
    text += f" {who}" if who else ""
    return f"{text}: {progress.note}" if progress.note else text


def amount(progress: Progress) -> str:
    """`34.2 of 98.0 MB`, `3 of 8 slices`; empty while nothing is known."""
    if progress.unit == "bytes":
        total = f" of {number(progress.total / 1e6)}" if progress.total else ""
        return f"{number(progress.done / 1e6)}{total} MB"
    if not progress.total:
        return ""
    return f"{count(round(progress.done))} of {count(round(progress.total))} {progress.unit}".rstrip()


class BarView:
    """A bar with the time left, on a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: RichProgress | None = None
        self._tasks: dict[tuple[Phase, str], TaskID] = {}

    def update(self, progress: Progress, who: str) -> None:
        bar = self._bar or self._start()
        what = (progress.phase, who)
        if what not in self._tasks:
            self._tasks[what] = bar.add_task(self._console.text(describe(progress, who)), total=None, amount="")
        for other, task in self._tasks.items():  # variants take turns: only the one at work is shown
            bar.update(task, visible=other == what)
        bar.update(
            self._tasks[what],
            description=self._console.text(describe(progress, who)),
            total=progress.total or None,
            completed=progress.done,
            amount=self._console.text(amount(progress)),
        )

    def say(self, sentence: str, *, warning: bool = False) -> None:
        self._console.line(sentence, "warn" if warning else "dim")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
            self._tasks.clear()

    def _start(self) -> "RichProgress":
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[amount]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("left", markup=False),
            TimeRemainingColumn(),
            console=self._console.rich,
            refresh_per_second=REFRESH_HZ,
            transient=True,
        )
        self._bar.start()
        return self._bar


class _Stage:
    """A part of a phase that counts one thing from its beginning to its end, such as windows, then prompts."""

    def __init__(self, begun_s: float, quarter: int, first: Progress) -> None:
        self.begun_s, self.quarter = begun_s, quarter
        self.first = self.latest = first

    def over(self, progress: Progress) -> bool:
        """Whether another part has begun."""
        return progress.unit != self.latest.unit or progress.done < self.latest.done


class LineView:
    """One line when a phase begins, and one per quarter of a phase that takes long."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._stages: dict[tuple[Phase, str], _Stage] = {}

    def update(self, progress: Progress, who: str) -> None:
        what, now = (progress.phase, who), time.monotonic()
        quarter = int(_QUARTERS * progress.done / progress.total) if progress.total else 0
        stage = self._stages.get(what)
        if stage is None:
            self._console.line(describe(progress, who))
        if stage is None or stage.over(progress):
            self._stages[what] = _Stage(now, quarter, progress)
            return
        stage.latest = progress
        if stage.quarter < quarter < _QUARTERS and now - stage.begun_s > _LONG_S:
            gained = progress.done - stage.first.done
            left_s = (now - stage.begun_s) / gained * (progress.total - progress.done)
            self._console.line(f"{describe(progress, who)}: {amount(progress)}, about {left_s:.0f} s left")
            stage.quarter = quarter

    def say(self, sentence: str, *, warning: bool = False) -> None:
        self._console.line(f"Warning: {sentence}" if warning else sentence)

    def close(self) -> None:
        pass
