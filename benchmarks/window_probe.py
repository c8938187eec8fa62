"""The program's window with stopwatches beside it: what the benchmarks of the window start. Not for running by hand.

    python -P benchmarks/window_probe.py start
    python -P benchmarks/window_probe.py watch SECONDS NEW_TOKENS
    python -P benchmarks/window_probe.py run STEPS NEW_TOKENS

It starts the program as `gptscope` does, with the same imports, and prints lines `NAME NUMBER ...`.
`start`: first paint, heavy parts made, engine's answer, memory. `watch`: how the window's thread does while a decode
run of the bundled model streams for so long. `run`: speed of a whole run with the window open, no stopwatch in it.
All moments are `time.perf_counter_ns`, which counts from the same moment in all processes of a machine.
"""

import itertools
import sys
import time
from typing import Any

from gptscope.app.gui import start

BEAT_MS = 10
_READY_MS = 500
_SETTLE_MS = 1500


def say(name: str, *values: object) -> None:
    print(name, *values, flush=True)


def watched(build: Any) -> Any:
    """`build_window`, with a note of the moment at which the first paint is on the screen."""

    def build_and_watch(*given: Any, **options: Any) -> Any:
        window = build(*given, **options)
        after_paint = window._after_first_paint

        def noted() -> None:
            say("painted", time.perf_counter_ns(), int(window._painted and window.isVisible()))
            after_paint()

        window._after_first_paint = noted
        window.ready.connect(lambda: say("ready", time.perf_counter_ns()))
        window._probe = probe(window)  # signals hold bound methods weakly
        return window

    return build_and_watch


def probe(window: Any) -> Any:
    """What is to be measured in this start."""
    match sys.argv[1]:
        case "start":
            return Start(window)
        case "watch":
            return Streaming(window, steps=100_000, new_tokens=int(sys.argv[3]), seconds=float(sys.argv[2]))
        case _:
            return Streaming(window, steps=int(sys.argv[2]), new_tokens=int(sys.argv[3]))


class Beat:
    """How late a quick timer is: the longest time for which the window could not react."""

    def __init__(self, window: Any) -> None:
        from PySide6.QtCore import Qt, QTimer

        self._timer = QTimer(window)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(BEAT_MS)
        self._timer.timeout.connect(self._on_beat)
        self.longest_ns = 0
        self._last_ns = 0

    def start(self) -> None:
        self.longest_ns, self._last_ns = 0, time.perf_counter_ns()
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def _on_beat(self) -> None:
        now = time.perf_counter_ns()
        self.longest_ns = max(self.longest_ns, now - self._last_ns)
        self._last_ns = now


class Start:
    """First paint to the engine's answer: can one use the window meanwhile?"""

    def __init__(self, window: Any) -> None:
        from PySide6.QtCore import QTimer

        self._window, self._later = window, QTimer.singleShot
        self._beat = Beat(window)
        window.ready.connect(lambda: self._later(0, self._use))
        window.controller.capabilities_changed.connect(self._on_answer)

    def _use(self) -> None:
        """Do what a quick person does: look at History, come back, type a number."""
        from PySide6.QtCore import Qt
        from PySide6.QtTest import QTest

        window = self._window
        self._beat.start()
        begun_ns = time.perf_counter_ns()
        window.actions_by_id["view_history"].trigger()
        there = window.current_view() is window.history
        window.actions_by_id["view_live"].trigger()
        context = window.dock.workload_form.spins["context"]
        context.setFocus()
        context.selectAll()
        QTest.keyClicks(context, "96")
        QTest.keyClick(context, Qt.Key.Key_Return)
        back = window.current_view() is window.first and context.value() == 96
        waiting = window.controller.capabilities is None
        say("used", time.perf_counter_ns(), int(there and back and waiting), time.perf_counter_ns() - begun_ns)

    def _on_answer(self) -> None:
        self._beat.stop()
        say("answered", time.perf_counter_ns(), self._beat.longest_ns)
        self._later(_SETTLE_MS, self._measure_memory)

    def _measure_memory(self) -> None:
        import psutil

        memory = psutil.Process().memory_full_info()
        say("memory", memory.rss, memory.uss)
        self._window.close()


class Streaming:
    """One decode run of the bundled model, started as Run starts it."""

    def __init__(self, window: Any, *, steps: int, new_tokens: int, seconds: float | None = None) -> None:
        """`seconds`: stop the run after so much time of it, and watch the window's thread meanwhile."""
        from PySide6.QtCore import QTimer

        self._window, self._later = window, QTimer.singleShot
        self._steps, self._new_tokens, self._seconds = steps, new_tokens, seconds
        self._beat = Beat(window)
        self._ticks: list[int] = []
        self._began = False
        self._thread_s, self._process_s = 0.0, 0.0
        controller = window.controller
        controller.model_changed.connect(self._on_model)
        controller.running_changed.connect(self._on_running)
        if seconds is not None:
            window._redraw.timeout.connect(self._on_tick)

    def _on_model(self) -> None:
        if self._window.controller.model is not None and not self._began:
            self._began = True
            self._later(_READY_MS, self._begin)

    def _begin(self) -> None:
        from gptscope.profiling.experiment import Experiment, Variant, Workload

        work = Workload(kind="decode", context=64, new_tokens=self._new_tokens, steps=self._steps)
        experiment = Experiment(model="bundled", workload=work, variants=(Variant(),), profile_steps=0)
        self._window.controller.start(experiment)

    def _on_tick(self) -> None:
        """At every redraw while a run goes on."""
        now = time.perf_counter_ns()
        if not self._ticks:
            run = self._window.controller.experiment.current
            if run is None or run.measured_steps == 0:
                return
            self._thread_s, self._process_s = time.thread_time(), time.process_time()
            self._beat.start()
        self._ticks.append(now)
        if self._seconds is not None and now - self._ticks[0] >= self._seconds * 1e9 and self._beat.longest_ns:
            self._tell_thread()
            self._seconds = None
            self._window.controller.stop()

    def _tell_thread(self) -> None:
        self._beat.stop()
        thread_s, process_s = time.thread_time() - self._thread_s, time.process_time() - self._process_s
        gaps = sorted(after - before for before, after in itertools.pairwise(self._ticks))
        wall_s = (self._ticks[-1] - self._ticks[0]) / 1e9
        say("watched", wall_s, thread_s, process_s, len(gaps), gaps[len(gaps) // 2], gaps[-1], self._beat.longest_ns)

    def _on_running(self) -> None:
        controller = self._window.controller
        if controller.running or not self._began or controller.experiment is None:
            return
        speed = controller.experiment.current.summary().tokens_per_s
        say("speed", speed.value, controller.experiment.current.measured_steps)
        self._later(0, self._window.close)


start.build_window = watched(start.build_window)

if __name__ == "__main__":
    from gptscope.app.__main__ import main

    sys.exit(main([]))
