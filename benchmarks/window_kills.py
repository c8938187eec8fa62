"""Kills the worker, then the engine, in the middle of runs that the window shows, again and again.

    python benchmarks/window_kills.py [--times 10] [--model bundled]

Each time SIGKILL hits a run that measures, or one whose C++ compilers are at work (every second time, where there is a
compiler). Checked each time: the window says in one sentence what happened and is ready again; what was measured is
kept, on the screen and in the library; no process is left, compilers included; the next Run works. Needs no display.
Ends with exit code 1 at the first thing that is not so.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
MARK = ("GPTSCOPE_KILLS", uuid.uuid4().hex)
os.environ[MARK[0]] = MARK[1]
"""Inherited by all that the window starts, however far from it."""

import psutil  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402

from gptscope.app.gui.settings import Settings  # noqa: E402
from gptscope.app.gui.start import build_window, prepare_application  # noqa: E402
from gptscope.profiling.experiment import Experiment, Variant, Workload  # noqa: E402

PATIENCE_S = 120.0
MOST_LEFT_S = 5.0
NEW_TOKENS = 32
PLAIN, COMPILED = Variant(), Variant(fusions=("compile",))
COMPILERS = ("cc1plus", "g++", "c++", "as", "ld", "collect2")


class WrongError(Exception):
    """Something is not as promised."""


class Round:
    """One window, one kill after another."""

    def __init__(self, window: Any, model: str) -> None:
        self.window, self.controller, self.model = window, window.controller, model
        self.sentences: list[str] = []
        self.controller.failed.connect(lambda failure: self.sentences.append(failure.message))

    def wait(self, what: str, is_so: Callable[[], object], patience_s: float = PATIENCE_S) -> float:
        """Let the window live until something is so; seconds it took."""
        begun = time.monotonic()
        while not is_so():
            QApplication.processEvents()
            time.sleep(0.003)
            if time.monotonic() - begun > patience_s:
                raise WrongError(f"{what} did not happen within {patience_s:.0f} s ({self.window.status_text.text()})")
        return time.monotonic() - begun

    def start(self, variant: Variant, steps: int = 100_000) -> None:
        self.sentences.clear()
        work = Workload(kind="decode", context=32, new_tokens=NEW_TOKENS, steps=steps)
        self.controller.start(Experiment(model=self.model, workload=work, variants=(variant,), profile_steps=0))

    def measured(self) -> int:
        run = self.controller.experiment.current
        return run.measured_steps if run is not None else 0

    def worker(self) -> int:
        return next(p.pid for p in started_processes() if "gptscope.profiling.worker" in p.info["cmdline"])

    def compiling(self) -> bool:
        if not self.controller.running:
            raise WrongError(f"the run ended while it should compile: {self.sentences}")
        return self.controller.experiment.phase == "compile" and any(
            p.info["name"].startswith(COMPILERS) for p in started_processes()
        )

    def kill(self, whom: str, *, compiling: bool) -> str:
        """Start a run, kill in its middle, check; returns a line for the table."""
        self.start(COMPILED if compiling else PLAIN)
        if compiling:
            self.wait("a compiler", self.compiling)
        else:
            self.wait("the first numbers", lambda: self.measured() > 40)
        before = self.measured()
        pid = self.worker() if whom == "worker" else self.controller.session.engine_pid
        os.kill(pid, signal.SIGKILL)
        told_s = self.wait("the end of the run", lambda: not self.controller.running, 15.0)
        self.check_told(whom)
        left_s = self.check_nothing_left(engine_lives=whom == "worker")
        self.check_kept(before)
        where = "compiling" if compiling else f"measuring, {before} steps"
        return f"{whom:<7} {where:<22} told after {told_s * 1e3:>5.0f} ms, all gone after {left_s * 1e3:>5.0f} ms"

    def check_told(self, whom: str) -> None:
        if len(self.sentences) != 1:
            raise WrongError(f"after the {whom}'s death the window said {self.sentences}, not one sentence")
        (sentence,) = self.sentences
        strip = self.window.live.failure
        shown = strip.isVisible() and strip.sentence.text() == sentence
        if not shown or not sentence.endswith(".") or whom not in sentence or "\n" in sentence:
            raise WrongError(f"after the {whom}'s death the window shows {strip.sentence.text()!r}, said {sentence!r}")

    def check_nothing_left(self, *, engine_lives: bool) -> float:
        """Seconds until no process is left but a living engine."""

        def left() -> list[psutil.Process]:
            engine = self.controller.session.engine_pid if engine_lives else 0
            return [p for p in started_processes() if p.pid != engine]

        try:
            return self.wait("the end of all processes", lambda: not left(), MOST_LEFT_S)
        except WrongError as wrong:
            raise WrongError(
                f"{wrong}; left: {[(p.pid, p.info['name'], p.info['cmdline'][:4]) for p in left()]}"
            ) from wrong

    def check_kept(self, before: int) -> None:
        view = self.controller.experiment
        run = view.current
        least = before - before % (NEW_TOKENS - 1)  # a sequence that was cut off does not count beside whole ones
        if view.finished is None or view.finished.outcome != "failed" or self.measured() < least:
            raise WrongError(f"the run stands as {view.finished}, {self.measured()} of {before} steps are shown")
        library = self.controller.library

        def entry() -> Any:
            return library.find(run.run_id) if run is not None else None

        def is_kept() -> bool:
            found = entry()
            return found is not None and found.outcome == "failed" and bool(found.headline.tokens_per_second)

        if before:
            self.wait("keeping the run in the library", is_kept, 10.0)

    def check_next_run(self) -> None:
        self.start(PLAIN, steps=2)
        self.wait("the next run's end", lambda: not self.controller.running)
        if self.sentences or self.controller.experiment.finished.outcome != "done":
            raise WrongError(f"the next run ended {self.controller.experiment.finished}, {self.sentences}")


def started_processes() -> list[psutil.Process]:
    """All processes of ours, wherever they hang in the tree; zombies are gone already."""
    found = []
    for process in psutil.process_iter(["name", "cmdline", "status", "environ"]):
        ours = (process.info["environ"] or {}).get(MARK[0]) == MARK[1]
        if ours and process.pid != os.getpid() and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--no-compiling", action="store_true", help="kill only runs that measure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gptscope-kills-") as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{folder}/inductor"  # so that every run compiles anew
        app = QApplication(["gptscope"])
        settings = Settings(Path(folder, "window.ini"))
        theme, settings = prepare_application(app, theme="dark", settings=settings, system_font=False)
        window = build_window(theme, settings, library=f"{folder}/library", model=options.model)
        window.show()
        one = Round(window, options.model)
        try:
            one.wait("the engine's answer", lambda: window.controller.model is not None)
            levers = window.controller.capabilities.levers
            compiles = any(lever.name == "compile" and lever.unavailable_reason is None for lever in levers)
            for number in range(options.times):
                for whom in ("worker", "engine"):
                    compiling = number % 2 == 1 and not options.no_compiling and compiles
                    print(f"  {number + 1:>2}  {one.kill(whom, compiling=compiling)}", flush=True)
                one.check_next_run()
            print(
                f"  {2 * options.times} kills: every time one sentence, numbers kept, nothing left, the next Run works"
            )
        except WrongError as wrong:
            print(f"  WRONG: {wrong}")
            return 1
        finally:
            window.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
