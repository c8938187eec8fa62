"""Samples the machine about four times a second on a thread of its own, and judges each measured slice."""

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from gptscope.profiling.machine import facts
from gptscope.profiling.records import GpuSample, Telemetry
from gptscope.profiling.telemetry.cpu import CpuReading, CpuSource, load_between, throttle_count
from gptscope.profiling.telemetry.disturbance import busiest, cpu_seconds_by_process, judge
from gptscope.profiling.telemetry.nvidia import NvidiaSource

INTERVAL_S = 0.25
_CULPRIT_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Watched:
    """Whom to watch now."""

    run_id: str | None = None
    measured: int | None = None
    """Process id of the worker that works."""
    workers: tuple[int, ...] = ()
    """Process ids of all workers, the measured one among them."""
    in_slice: bool = False
    """A slice is being measured: do nothing that costs time."""


@dataclass(frozen=True, slots=True)
class SliceStart:
    """Counters at the beginning of a slice."""

    reading: CpuReading
    measured: int | None
    throttle_count: int | None


class Sampler:
    """Emits `Telemetry` from `start` to `stop`.

    Args:
        own: Process ids of engine and client.
        open_gpu: Called on the sampler's thread: the GPU to sample, or a sentence why none is.
        emit: Gets each sample, on the sampler's thread.
    """

    def __init__(
        self, own: Collection[int], open_gpu: Callable[[], NvidiaSource | str], emit: Callable[[Telemetry], None]
    ) -> None:
        self._own = tuple(own)
        self._open_gpu = open_gpu
        self._gpu: NvidiaSource | str = "The GPU's driver has not answered yet."
        self._emit = emit
        self._watched = Watched()
        self._sampled = CpuSource(self._own)
        self._judged = CpuSource(self._own)  # used by the caller's thread only
        self._slice_gpu_reasons: set[str] = set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def start(self) -> None:
        """Begin to sample."""
        self._thread.start()

    def stop(self) -> None:
        """Sample no more. Does not wait for a reading that hangs in a driver."""
        self._stopped.set()

    def watch(self, watched: Watched) -> None:
        """Say what is going on, for the next samples."""
        self._watched = watched

    def free_gpu_bytes(self) -> int | None:
        """Free memory of the sampled GPU; None without one."""
        return self._gpu.free_bytes() if isinstance(self._gpu, NvidiaSource) else None

    def begin_slice(self, watched: Watched) -> SliceStart:
        """Take the counters right before a slice."""
        self._slice_gpu_reasons = set()
        throttles = throttle_count()
        self.watch(watched)
        return SliceStart(self._judged.read(watched.workers), watched.measured, throttles)

    def end_slice(self, start: SliceStart, watched: Watched) -> str | None:
        """Take the counters right after a slice and say in a sentence what disturbed it; None: nothing.

        Takes a tenth of a second longer when something did, to find out which processes.
        """
        load = load_between(start.reading, self._judged.read(watched.workers), start.measured)
        self.watch(watched)
        if isinstance(self._gpu, NvidiaSource):
            self._slice_gpu_reasons.update(self._gpu.throttle_reasons())
        throttles = throttle_count()
        throttled = start.throttle_count is not None and throttles is not None and throttles > start.throttle_count
        reasons, processors = frozenset(self._slice_gpu_reasons), self._judged.processors
        if judge(load, processors=processors) is None:
            return judge(load, processors=processors, throttled=throttled, gpu_reasons=reasons)
        names = self._culprits(watched.workers)
        return judge(load, processors=processors, throttled=throttled, gpu_reasons=reasons, culprits=names)

    def _culprits(self, workers: Collection[int]) -> tuple[str, ...]:
        leave_out = {*self._own, *workers}
        before = cpu_seconds_by_process(leave_out)
        started = time.perf_counter()
        self._stopped.wait(_CULPRIT_LOOK_S)
        after = cpu_seconds_by_process(leave_out)
        return busiest(before, after, time.perf_counter() - started)

    def _run(self) -> None:
        self._gpu = self._open_gpu()
        before = self._sampled.read(())
        while not self._stopped.wait(INTERVAL_S):
            watched = self._watched
            reading = self._sampled.read(watched.workers, descendants=not watched.in_slice)
            gpu: GpuSample | None = None
            if isinstance(self._gpu, NvidiaSource):
                gpu = self._gpu.sample()
                self._slice_gpu_reasons.update(gpu.throttle_reasons)
            measured = watched.measured
            self._emit(
                Telemetry(
                    time_ns=reading.time_ns,
                    cpu=self._sampled.sample(load_between(before, reading, measured)),
                    worker_rss_bytes=None if measured is None else self._sampled.resident_bytes(measured),
                    memory_available_bytes=facts.memory_available_bytes(),
                    gpu=gpu,
                    gpu_reason=self._gpu if isinstance(self._gpu, str) else None,
                    run_id=watched.run_id,
                )
            )
            before = reading
