"""How often a live view may redraw: the window must not slow down the run that it shows."""

from gptscope.app.viewmodels.experiment_view import ExperimentView

FREE_SHARE = 0.25
"""Of one core, for the window's thread, while the run leaves it a core or computes on a GPU."""
TIGHT_SHARE = 0.015
"""The same while a run is measured on all cores: what the window takes then, every thread of the run waits for."""
_UNMEASURED = ("", "start", "fetch", "load", "compile")
LONGEST_S = 1.0
"""Between two redraws, whatever they cost."""


class Pace:
    """Allows a redraw when the window has rested long enough for what it has done since the last one."""

    def __init__(self) -> None:
        self._owed_s = 0.0
        self._last: tuple[float, float] | None = None

    def allows(self, now_s: float, used_s: float, share: float) -> bool:
        """Whether to redraw now. Ask often; `used_s` is the processor time of the window's thread so far."""
        if self._last is not None:
            before_s, used_before_s = self._last
            self._owed_s += used_s - used_before_s - share * (now_s - before_s)
            self._owed_s = min(max(self._owed_s, 0.0), share * LONGEST_S)
        self._last = (now_s, used_s)
        return self._owed_s == 0.0


def is_tight(view: ExperimentView) -> bool:
    """True while something is measured, or may be any moment, on all cores of this machine."""
    machine, run = view.machine, view.current
    if view.phase in _UNMEASURED or machine is None or machine.device != "cpu":
        return False
    threads = run.started.variant.threads if run is not None and run.started is not None else None
    return (threads or machine.physical_cores) >= machine.physical_cores  # the second thread of a core is no free core
