"""The progress strip: load, compile, warm-up, measure, profile, with the time that is left."""

from dataclasses import dataclass
from typing import Literal

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.experiment_view import ExperimentView
from gptscope.app.viewmodels.progress_text import fraction_of, progress_note
from gptscope.app.viewmodels.run_view import RunView
from gptscope.app.viewmodels.scales import clock
from gptscope.app.viewmodels.series import NS_PER_S
from gptscope.profiling.records import Progress

PHASES = ("load", "compile", "warmup", "measure", "profile")
_TITLES = {
    "fetch": "Fetch",
    "load": "Load",
    "compile": "Compile",
    "warmup": "Warm-up",
    "measure": "Measure",
    "profile": "Profile",
    "evaluate": "Evaluate",
    "peaks": "Measure peaks",
}
_WEIGHTS = {
    "fetch": 3.0,
    "load": 2.0,
    "compile": 1.6,
    "warmup": 2.0,
    "measure": 7.0,
    "profile": 2.0,
    "evaluate": 3.0,
    "peaks": 2.0,
}
State = Literal["done", "active", "todo", "off"]


@dataclass(frozen=True)
class PhaseCell:
    """One part of the strip; `fraction` 0 to 1, None = busy without a known end."""

    name: str
    title: str
    note: str
    state: State
    fraction: float | None
    weight: float


@dataclass(frozen=True)
class Strip:
    """The whole strip with its right-hand texts."""

    cells: tuple[PhaseCell, ...]
    left: str
    of: str
    left_s: float | None


class PhaseClock:
    """Remembers when each phase began (by the client's clock), for elapsed and remaining time of a live run."""

    def __init__(self) -> None:
        self.began_s: float | None = None
        self._phase_began: dict[str, float] = {}
        self._last_phase = ""

    def tick(self, phase: str, now_s: float) -> None:
        """Note that `phase` is going on."""
        if self.began_s is None:
            self.began_s = now_s
        if phase != self._last_phase and phase:
            self._phase_began.setdefault(phase, now_s)
            self._last_phase = phase

    def elapsed_s(self, phase: str, now_s: float) -> float | None:
        """Seconds since the phase began; None before that."""
        began = self._phase_began.get(phase)
        return None if began is None else now_s - began


def strip(view: ExperimentView | None, timing: PhaseClock | None, now_s: float) -> Strip | None:
    """The strip of an experiment; None without one."""
    if view is None or view.experiment is None:
        return None
    running = view.running
    names: list[str] = [p for p in ("fetch", "peaks") if running and view.phase == p]
    names += list(PHASES)
    if view.experiment.quality:
        names.append("evaluate")
    active = view.phase if running else ""
    order = {name: index for index, name in enumerate(names)}
    cells = tuple(_cell(name, view, active, order) for name in names)
    left_s = _left(view, timing, now_s) if running else None
    if not running:
        return Strip(cells, _outcome(view), "", None)
    began = timing.began_s if timing is not None else None
    of = (
        f"of about {clock(now_s - began + left_s)}" if began is not None and left_s is not None else "time left unknown"
    )
    return Strip(cells, f"{clock(left_s)} left" if left_s is not None else "", of, left_s)


def _outcome(view: ExperimentView) -> str:
    outcome = view.finished.outcome if view.finished is not None else "interrupted"
    return {"done": "Finished", "cancelled": "Stopped", "failed": "Failed"}.get(outcome, "Interrupted")


def _cell(name: str, view: ExperimentView, active: str, order: dict[str, int]) -> PhaseCell:
    run = view.current
    if name == active:
        progress = view.progress.get(name)
        return PhaseCell(
            name, _TITLES[name], _active_note(name, progress, run), "active", fraction_of(progress), _WEIGHTS[name]
        )
    note, known = _done_note(name, run)
    if name == "compile" and not known:
        off = view.experiment is not None and not any("compile" in v.fusions for v in view.experiment.variants)
        if off:
            return PhaseCell(name, _TITLES[name], "off", "off", 0.0, _WEIGHTS[name])
    if name == "profile" and view.experiment is not None and view.experiment.profile_steps == 0:
        return PhaseCell(name, _TITLES[name], "off", "off", 0.0, _WEIGHTS[name])
    passed = active in order and order[name] < order[active]
    state: State = "done" if known or passed else "todo"
    return PhaseCell(name, _TITLES[name], note, state, 1.0 if state == "done" else 0.0, _WEIGHTS[name])


def _active_note(name: str, progress: Progress | None, run: RunView | None) -> str:
    note = progress_note(progress)
    if name == "measure" and run is not None:
        speed = run.last_summary().tokens_per_s
        if speed is not None:
            note = f"{note}, {fmt.number(speed.value)} tok/s" if note else f"{fmt.number(speed.value)} tok/s"
    return note


def _done_note(name: str, run: RunView | None) -> tuple[str, bool]:
    """What a finished phase took, from the records alone, so that a reopened run shows the same."""
    if run is None:
        return "", False
    if name == "load" and run.loaded is not None:
        return fmt.duration(run.loaded.load_s), True
    if name == "compile" and run.compiled is not None:
        return fmt.duration(run.compiled.compile_s), True
    if name == "measure" and run.slices_done and run.finished is not None:
        return f"{run.slices_done} slices", True
    if name in ("warmup", "profile"):
        spans = [s.end_ns - s.start_ns for s in run.stretches if s.kind == name]
        if spans and (name == "warmup" or run.profile is not None):
            return fmt.duration(sum(spans) / NS_PER_S), True
        if name == "profile" and run.profile is not None:
            return f"{run.profile.steps} steps", True
    return "", False


def _left(view: ExperimentView, timing: PhaseClock | None, now_s: float) -> float | None:
    """Remaining seconds of the measured part (and a share for the profile), None while nobody can know."""
    if timing is None:
        return None
    progress = view.progress.get(view.phase)
    fraction = fraction_of(progress)
    elapsed = timing.elapsed_s(view.phase, now_s)
    if fraction is None or elapsed is None or fraction <= 0.02:
        return None
    return elapsed * (1 - fraction) / fraction
