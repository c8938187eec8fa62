"""Takes the pictures in docs/images from the real window: real runs of the bundled model, measured while one waits.

    python docs/make_screenshots.py

Needs no display and no network, takes a minute or two on an idle machine, and leaves your library and settings alone.
The numbers in the pictures are those of the machine on which it ran, at that moment.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"

from msgspec.structs import replace
from PySide6.QtWidgets import QApplication

from gptscope.app.gui.settings import Settings
from gptscope.app.gui.start import build_window, prepare_application
from gptscope.app.gui.theme import ThemeName
from gptscope.app.gui.window import COMPARE, HISTORY, LIVE, PROFILE, QUALITY, MainWindow
from gptscope.app.viewmodels.setup import all_fusions
from gptscope.profiling.experiment import Experiment, Variant, Workload

IMAGES = Path(__file__).with_name("images")
SIZE = (1440, 900)
WORKLOAD = Workload(kind="decode", batch=1, context=64, new_tokens=64, steps=8)
PATIENCE_S = 600.0
THEMES: tuple[ThemeName, ...] = ("light", "dark")


def wait(what: str, is_so: Callable[[], bool]) -> None:
    """Let the window live until something is so."""
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError(f"{what} did not happen within {PATIENCE_S:.0f} s")
        QApplication.processEvents()
        time.sleep(0.005)


def settle(window: MainWindow) -> None:
    """Let everything be laid out and drawn; no cursor blinks."""
    focus = window.focusWidget()
    if focus is not None:
        focus.clearFocus()
    until = time.monotonic() + 0.5
    wait("drawing", lambda: time.monotonic() > until)


def picture(window: MainWindow, name: str) -> None:
    """Write one picture of what is shown."""
    settle(window)
    file = IMAGES / f"{name}-{window.theme.name}.png"
    if not window.grab().save(str(file), "PNG", 0):
        raise OSError(f"{file} cannot be written")
    print(file)


def measure(window: MainWindow, variants: tuple[Variant, ...], *, quality: bool) -> None:
    """Measure one variant, or several alternately, and wait until the library has their numbers."""
    controller = window.controller
    controller.setup.workload, controller.setup.variant = WORKLOAD, variants[-1]
    controller.setup_changed.emit()
    controller.start(Experiment(model="bundled", workload=WORKLOAD, variants=variants, quality=quality))
    wait("the run's end", lambda: not controller.running)
    view, library = controller.experiment, controller.library
    assert view is not None
    assert library is not None
    if view.finished is None or view.finished.outcome != "done":
        raise RuntimeError(f"the run did not end well: {window.status_text.text()}")

    def is_written(run_id: str) -> bool:
        entry = library.find(run_id)
        return entry is not None and entry.outcome == "done" and entry.headline.tokens_per_second is not None

    wait("writing the run", lambda: all(is_written(run_id) for run_id in view.run_ids))
    library.changed.emit()


def views(window: MainWindow, wanted: dict[str, int]) -> None:
    """Pictures of views in both themes."""
    for theme in THEMES:
        window.theme.choose(theme)
        for name, view in wanted.items():
            window.show_view(view)
            picture(window, name)


def take_all(window: MainWindow) -> None:
    """First screen, a comparison with its output, and one run beside a pinned baseline."""
    controller = window.controller
    wait("the engine's answer", lambda: controller.capabilities is not None and controller.model is not None)
    views(window, {"first": LIVE})
    fused = all_fusions(controller.capabilities, WORKLOAD.kind)
    static = Variant(fusions=fused, kv_cache="static", name="FP32, fused, static KV")
    narrow = replace(static, precision="bf16", name="BF16, fused, static KV")
    measure(window, (Variant(), static, narrow), quality=True)
    views(window, {"compare": COMPARE, "quality": QUALITY})
    assert controller.experiment is not None
    controller.pin_stored(controller.experiment.run_ids[0])
    measure(window, (narrow,), quality=False)
    views(window, {"live": LIVE, "profile": PROFILE, "history": HISTORY})
    take_trace(window)


def take_trace(window: MainWindow) -> None:
    """The trace of the shown run: its second step as the range, the longest call of its longest kernel chosen."""
    window.tracing.open_shown_run()
    trace = window.tracing.view
    assert trace is not None
    wait("reading the trace", lambda: trace.trace is not None and not trace.loader.busy)
    timeline = trace.state.timeline
    assert timeline is not None
    trace.tables.views["kernels"].selectRow(0)
    step = timeline.steps[1]
    room = (step.end - step.start) * 0.02
    trace.state.select((step.start, step.end))
    trace.state.look(trace.state.axis.to(step.start - room, step.end + room))
    views(window, {"trace": window.TRACE})


def main() -> int:
    """Take the pictures; returns the exit code."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gptscope-pictures-") as folder:
        app = QApplication(["gptscope"])
        settings = Settings(Path(folder) / "window.ini")
        theme, settings = prepare_application(app, theme="light", settings=settings, system_font=False)
        window = build_window(theme, settings, library=str(Path(folder) / "library"))
        window.controller.told.connect(lambda sentence, _level: print(sentence))
        opened: list[bool] = []
        window.ready.connect(lambda: opened.append(True))
        window.show()
        wait("the window's opening", lambda: bool(opened))
        window.resize(*SIZE)
        try:
            take_all(window)
        finally:
            window.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
