"""Stopwatches: one reading per step, on the CPU's clock or the GPU's, and nothing else between two steps."""

import time
from typing import Protocol

import torch

REPORT_INTERVAL_NS = 100_000_000
"""Live charts move ten times a second; between two reports a step costs one clock reading."""


class Laps:
    """Steps read since the last report: when each began and how long it took, in ns of `time.perf_counter_ns`."""

    def __init__(self, start_ns: list[int], duration_ns: list[int]) -> None:
        self.start_ns, self.duration_ns = start_ns, duration_ns


class Stopwatch(Protocol):
    """Times consecutive steps: `start`, then `lap` after each step, then `take` what was read."""

    def start(self) -> None:
        """Begin, or begin again after a pause that belongs to no step."""

    def lap(self) -> None:
        """One step has ended, the next begins."""

    def due(self) -> bool:
        """True when the last report is older than `REPORT_INTERVAL_NS`."""

    def take(self) -> Laps:
        """Wait until the device is done; give the laps since the last `take` and forget them."""


class CpuStopwatch:
    """A step ends when its call returns."""

    def __init__(self) -> None:
        self._marks: list[int] = []
        self._laps = Laps([], [])
        self._reported_ns = time.perf_counter_ns()

    def start(self) -> None:
        self._close()
        self._marks.append(time.perf_counter_ns())

    def lap(self) -> None:
        self._marks.append(time.perf_counter_ns())

    def due(self) -> bool:
        return self._marks[-1] - self._reported_ns >= REPORT_INTERVAL_NS

    def take(self) -> Laps:
        self._close()
        laps, self._laps = self._laps, Laps([], [])
        self._reported_ns = time.perf_counter_ns()
        return laps

    def _close(self) -> None:
        """Turn marks into laps."""
        self._laps.start_ns += self._marks[:-1]
        self._laps.duration_ns += [end - start for start, end in zip(self._marks, self._marks[1:], strict=False)]
        self._marks.clear()


class CudaStopwatch:
    """A step ends when the GPU has finished it; the host may run ahead, as it does without a stopwatch.

    Events in the stream give the durations. The host's clock is read once, when the device is idle at `start`.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._events: list[torch.cuda.Event] = []
        self._origin_ns = 0
        self._laps = Laps([], [])
        self._reported_ns = time.perf_counter_ns()

    def start(self) -> None:
        self._close()
        torch.cuda.synchronize(self._device)
        self._mark()
        self._origin_ns = time.perf_counter_ns()

    def lap(self) -> None:
        self._mark()

    def due(self) -> bool:
        return time.perf_counter_ns() - self._reported_ns >= REPORT_INTERVAL_NS

    def take(self) -> Laps:
        self._close()
        laps, self._laps = self._laps, Laps([], [])
        self._reported_ns = time.perf_counter_ns()
        return laps

    def _mark(self) -> None:
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._device))
        self._events.append(event)

    def _close(self) -> None:
        if not self._events:
            return
        torch.cuda.synchronize(self._device)
        begun_ns = self._origin_ns
        for first, second in zip(self._events, self._events[1:], strict=False):
            duration_ns = round(first.elapsed_time(second) * 1e6)
            self._laps.start_ns.append(begun_ns)
            self._laps.duration_ns.append(duration_ns)
            begun_ns += duration_ns
        self._events.clear()


def stopwatch_for(device: torch.device) -> Stopwatch:
    """The stopwatch that suits a device."""
    return CudaStopwatch(device) if device.type == "cuda" else CpuStopwatch()
