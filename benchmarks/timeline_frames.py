"""Frames of the timeline at one and five million events, and how long the window stalls while it opens a trace.

    python -P benchmarks/timeline_frames.py [--events 1000000 5000000] [--load 1000000] [--frames 40]

Drawn at 1600x900 with Qt's software rendering (the offscreen platform), no display is needed. Every frame shows
another part of the time, so nothing is taken from the frame before. The stall is the longest time between two beats of
a timer of 4 ms while a generated file is read, sorted into lanes and summed up in all tables. Limits: 16 ms per frame,
30 ms per stall.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).parent))

import generated_trace
import numpy as np
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication

from gptscope.app.gui.settings import Settings
from gptscope.app.gui.start import prepare_application
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.timeline.state import TimelineState
from gptscope.app.gui.timeline.timeline_view import TimelineView
from gptscope.app.viewmodels.timeline_axis import Axis
from gptscope.app.viewmodels.timeline_model import Timeline

FRAME_LIMIT_MS, STALL_LIMIT_MS = 16.0, 30.0
SHARES = {"whole trace": 1.0, "a tenth": 0.1, "a thousandth": 1e-3, "labels": 0.0}
LABELLED_EVENTS = 300
"""Operators in the view of `labels`: most of them wide enough for a text."""
BEAT_MS = 4


def axes(timeline: Timeline, share: float, frames: int) -> Iterator[Axis]:
    """Another window per frame: a pan of a hundredth of the view each."""
    whole = Axis.whole(timeline.first, timeline.last)
    length = timeline.span * (share or LABELLED_EVENTS / max(len(timeline.trace) / 4, 1))
    for frame in range(frames):
        if share == 1.0:
            yield whole.zoomed(1 + 1e-4 * frame, timeline.span / 2)
        else:
            start = timeline.span * 0.3 + frame * length / 100
            yield whole.to(start, start + length)


def frames(theme: Theme, events: int, count: int) -> bool:
    """Measure and print; whether the limit is met."""
    began = time.perf_counter()
    timeline = Timeline(generated_trace.as_trace(events))
    print(f"{len(timeline.trace):,} events, sorted into lanes in {time.perf_counter() - began:.1f} s")
    state = TimelineState()
    view = TimelineView(state, theme)
    view.resize(1600, 900)
    view.show()
    state.open(timeline)
    QApplication.processEvents()
    good = True
    for name, share in SHARES.items():
        taken = []
        for axis in axes(timeline, share, count + 3):
            state.axis = axis
            begin = time.perf_counter()
            view.canvas.repaint()
            view.minimap.repaint()
            taken.append((time.perf_counter() - begin) * 1e3)
        taken = sorted(taken[3:])  # the first ones make what is kept between frames
        median, p95 = taken[len(taken) // 2], taken[int(0.95 * len(taken))]
        good &= median <= FRAME_LIMIT_MS
        print(f"  {name:<14} median {median:5.1f} ms   p95 {p95:5.1f} ms   worst {taken[-1]:5.1f} ms")
    view.close()
    return good


def stalls(theme: Theme, events: int) -> bool:
    """Open a file in the Trace view with a watch beside it; whether the limit is met."""
    from gptscope.app.gui.controller import Controller
    from gptscope.app.gui.session import Session
    from gptscope.app.gui.views.trace import TraceView
    from gptscope.app.gui.widgets.basics import ThemedIcons

    with tempfile.TemporaryDirectory(prefix="gptscope-frames-") as folder:
        file = Path(folder) / "trace.json"
        generated_trace.write(file, events)
        controller = Controller(Session(), Settings(Path(folder) / "window.ini"))
        view = TraceView(controller, theme, ThemedIcons(theme, controller), lambda *_: None)
        view.resize(1600, 900)
        view.show()
        QApplication.processEvents()
        beats: list[tuple[int, str]] = []
        watch = QTimer()
        watch.setTimerType(Qt.TimerType.PreciseTimer)
        watch.timeout.connect(lambda: beats.append((time.perf_counter_ns(), view.header.stage.text())))
        watch.start(BEAT_MS)
        began = time.perf_counter()
        shown: list[float] = []
        view.shown.connect(lambda: shown.append(time.perf_counter() - began))
        view.open(file)
        while view.loader.busy or not shown:
            QApplication.processEvents()
            time.sleep(0.0005)
        total = time.perf_counter() - began
        QApplication.processEvents()
        moments = np.array([beat[0] for beat in beats])
        gaps = np.diff(moments) / 1e6
        print(f"{events:,} events from a file of {file.stat().st_size / 1e6:.0f} MB: timeline after {shown[0]:.1f} s,")
        print(f"  all tables after {total:.1f} s; stalls: p99 {np.percentile(gaps, 99):.1f} ms, longest:")
        for place in np.argsort(gaps)[::-1][:6].tolist():
            print(f"    {gaps[place]:5.1f} ms  {beats[place][1]}")
        view.close()
        view.close_loader()
        return bool(gaps.max() <= STALL_LIMIT_MS)


def main() -> int:
    parser = argparse.ArgumentParser(description="Frames of the timeline, and stalls while a trace is opened.")
    parser.add_argument("--events", type=int, nargs="*", default=[1_000_000, 5_000_000])
    parser.add_argument("--load", type=int, default=1_000_000)
    parser.add_argument("--frames", type=int, default=40)
    options = parser.parse_args()
    app = QApplication([])
    with tempfile.TemporaryDirectory(prefix="gptscope-frames-") as folder:
        theme, _ = prepare_application(app, theme="dark", settings=Settings(Path(folder) / "w.ini"), system_font=False)
        good = True
        for events in options.events:
            good &= frames(theme, events, options.frames)
        if options.load:
            good &= stalls(theme, options.load)
    print("within the limits" if good else "NOT within the limits of 16 ms per frame and 30 ms per stall")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
