"""Which runs are compared: those of the shown experiment with its baseline, or runs chosen in History."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gptscope.app.gui.controller import Controller

if TYPE_CHECKING:
    from gptscope.app.viewmodels.comparison import ComparedRun, Comparison
    from gptscope.app.viewmodels.experiment_view import ExperimentView
    from gptscope.app.viewmodels.run_view import RunView


class Comparing(QObject):
    """Follows the shown experiment; a choice of stored runs holds until another run ends or is opened."""

    changed = Signal()

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self._controller = controller
        self._runs: list[ComparedRun] = []
        self._baseline_id = ""
        self._made: Comparison | None = None
        self.from_history = False
        controller.running_changed.connect(self._follow)
        controller.experiment_opened.connect(self._follow)
        controller.baseline_changed.connect(self._on_baseline)

    @property
    def available(self) -> bool:
        """Whether there is something to compare."""
        return len(self._runs) > 1

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The compared runs."""
        return tuple(run.run_id for run in self._runs)

    def comparison(self) -> "Comparison | None":
        """The judged comparison, made when it is first looked at."""
        if self._made is None and self.available:
            from gptscope.app.viewmodels.comparison import compare

            self._made = compare(self._runs, self._baseline_id)
        return self._made

    def retell(self) -> None:
        """Write all texts anew (another number of digits)."""
        self._made = None
        self.changed.emit()

    # ---------------------------------------------------------------------------------------------- what to compare

    def _follow(self) -> None:
        """Take the shown experiment, once it has ended and holds two runs or stands beside a baseline."""
        view = self._controller.experiment
        if view is None or self._controller.running:
            return
        if self.from_history and view.chosen_run in self.run_ids:
            return  # one of the compared runs was opened to look at it
        runs = [self._compared(view, run) for run in view.runs.values() if run.started is not None]
        own = view.own_baseline
        pinned = self._controller.shown_baseline()
        if own is None and pinned is not None and runs:
            runs.insert(0, self._compared(None, pinned))
        if len(runs) > 1:
            self.from_history = False
            self._show(runs, own.run_id if own is not None else runs[0].run_id)

    def _on_baseline(self) -> None:
        """A run was pinned or unpinned."""
        if self.from_history:
            pinned = self._controller.baseline
            if pinned is not None and pinned.run_id in self.run_ids:
                self.make_baseline(pinned.run_id)
        else:
            self._follow()

    def choose(self, run_ids: "tuple[str, ...] | list[str]") -> str:
        """Compare stored runs; returns why that is not possible, or nothing.

        The pinned run is the baseline when it is among them, else the one that was measured first.
        """
        from gptscope.app.viewmodels.comparison import MOST_RUNS

        library = self._controller.library
        entries = [entry for run_id in run_ids if library is not None and (entry := library.find(run_id)) is not None]
        if len(entries) < 2:
            return "Choose two or more runs to compare (Ctrl+click, or Shift and the arrow keys)."
        if len(entries) > MOST_RUNS:
            return f"At most {MOST_RUNS} runs can be compared at once; {len(entries)} are chosen."
        entries.sort(key=lambda entry: (entry.created_unix_ns, entry.position))
        views = {entry.experiment_id: self._controller.replayed(entry.experiment_id) for entry in entries}
        runs = []
        for entry in entries:
            view = views[entry.experiment_id]
            run = view.runs.get(entry.run_id) if view is not None else None
            if view is None or run is None:
                return f"{entry.name} cannot be read from the library, so it cannot be compared."
            runs.append(self._compared(view, run))
        pinned = self._controller.baseline
        first = runs[0].run_id
        self.from_history = True
        self._show(runs, pinned.run_id if pinned is not None and pinned.run_id in run_ids else first)
        return ""

    def make_baseline(self, run_id: str) -> None:
        """Hold all others against this run."""
        if run_id in self.run_ids and run_id != self._baseline_id:
            self._show(self._runs, run_id)

    def _show(self, runs: "list[ComparedRun]", baseline_id: str) -> None:
        self._runs, self._baseline_id, self._made = runs, baseline_id, None
        self.changed.emit()

    @staticmethod
    def _compared(view: "ExperimentView | None", run: "RunView") -> "ComparedRun":
        from gptscope.app.viewmodels.comparison import ComparedRun

        if view is None:
            return ComparedRun(run.accumulator)
        return ComparedRun(run.accumulator, view.qualities.get(run.run_id), view.output)
