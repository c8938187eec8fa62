"""CPU load of the measured worker, of gptscope itself, and of everything else, from the system's time counters.

The counters of Linux tick every 10 ms and the total is sampled while a process's own time is exact, so both can differ
by a little: differences are never negative here, and a verdict about a short time needs more than a few ticks.
"""

import functools
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import psutil

from gptscope.profiling.records import CpuSample

_Fact = TypeVar("_Fact")
_LARGEST_SHARE = 1e-3
"""Share of one core that slow readings (frequency, temperature) may cost."""
_SLOW_INTERVAL_S = 1.0
_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "acpitz")


@dataclass(frozen=True, slots=True)
class CpuReading:
    """Counters at one moment, in CPU seconds."""

    time_ns: int
    busy_s: float
    """All processors, everything but idle, waiting and stolen time."""
    steal_s: float | None
    own_s: float
    """Engine and client."""
    workers_s: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class CpuLoad:
    """What happened between two readings, in CPU seconds."""

    seconds: float
    worker_s: float
    own_s: float
    """Engine, client, and workers that are not measured."""
    other_s: float
    steal_s: float | None

    def percent(self, cpu_seconds: float) -> float:
        """Percent of one core."""
        return 100.0 * cpu_seconds / self.seconds if self.seconds > 0 else 0.0


def load_between(before: CpuReading, after: CpuReading, measured: int | None) -> CpuLoad:
    """Split the busy time between two readings.

    Args:
        before: The earlier reading.
        after: The later one; a worker that only it knows began in between.
        measured: Process id of the measured worker; the others count as gptscope's own.
    """
    used = {pid: max(0.0, total - before.workers_s.get(pid, 0.0)) for pid, total in after.workers_s.items()}
    worker_s = used.pop(measured, 0.0) if measured is not None else 0.0
    own_s = max(0.0, after.own_s - before.own_s) + sum(used.values())
    steal = None if before.steal_s is None or after.steal_s is None else max(0.0, after.steal_s - before.steal_s)
    return CpuLoad(
        seconds=(after.time_ns - before.time_ns) / 1e9,
        worker_s=worker_s,
        own_s=own_s,
        other_s=max(0.0, after.busy_s - before.busy_s - worker_s - own_s),
        steal_s=steal,
    )


class CpuSource:
    """Reads CPU counters of the machine and of given processes."""

    def __init__(self, own: Collection[int]) -> None:
        """Watch gptscope's own processes, by process id; ids that do not exist are left out."""
        self._own = {pid: process for pid in own if (process := _process(pid)) is not None}
        self._workers: dict[int, psutil.Process] = {}
        self._children: dict[int, _Slow[list[psutil.Process]]] = {}
        self._frequency: _Slow[tuple[float | None, float | None]] = _Slow(_frequency_mhz, (None, None))
        self._temperature: _Slow[float | None] = _Slow(_temperature_c, None)
        self.processors = psutil.cpu_count() or 1

    def read(self, workers: Collection[int], *, descendants: bool = False) -> CpuReading:
        """Read all counters.

        Args:
            workers: Process ids of workers; those that have ended are left out.
            descendants: Count living children (compilers) too. To find them takes a look at every process of the
                machine, so new ones are found about once a second.
        """
        for pid in self._workers.keys() - set(workers):
            del self._workers[pid], self._children[pid]
        for pid in set(workers) - self._workers.keys():
            if (process := _process(pid)) is not None:
                self._workers[pid] = process
                self._children[pid] = _Slow(functools.partial(_descendants, process), [])
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        steal: float | None = getattr(times, "steal", None)
        # Linux counts guests in user and nice already
        guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        used = {pid: _cpu_seconds(process) for pid, process in self._workers.items()}
        if descendants:
            for pid, seconds in used.items():
                if seconds is not None:
                    used[pid] = seconds + sum(_own_seconds(child) for child in self._children[pid].read())
        return CpuReading(
            time_ns=time.perf_counter_ns(),
            busy_s=sum(times) - idle - (steal or 0.0) - guests,
            steal_s=steal,
            own_s=sum(_own_seconds(process) for process in self._own.values()),
            workers_s={pid: seconds for pid, seconds in used.items() if seconds is not None},
        )

    def sample(self, load: CpuLoad) -> CpuSample:
        """The record's form of a load, with frequency and temperature as of now."""
        frequency, max_frequency = self._frequency.read()
        steal = None if load.steal_s is None else 100.0 * load.steal_s / max(load.seconds * self.processors, 1e-9)
        return CpuSample(
            worker_percent=load.percent(load.worker_s),
            other_percent=load.percent(load.other_s),
            own_percent=load.percent(load.own_s),
            steal_percent=steal,
            frequency_mhz=frequency,
            max_frequency_mhz=max_frequency,
            temperature_c=self._temperature.read(),
        )

    def resident_bytes(self, worker: int) -> int | None:
        """Memory that a worker holds now; None when it has ended."""
        process = self._workers.get(worker) or _process(worker)
        try:
            return int(process.memory_info().rss) if process is not None else None
        except psutil.Error:
            return None


class _Slow(Generic[_Fact]):
    """Reads a fact so rarely that its cost stays below `_LARGEST_SHARE`; gives the last one in between."""

    def __init__(self, read: Callable[[], _Fact], unknown: _Fact) -> None:
        self._read, self._last, self._next_s = read, unknown, 0.0

    def read(self) -> _Fact:
        now = time.perf_counter()
        if now >= self._next_s:
            before = time.thread_time()
            self._last = self._read()
            cost = time.thread_time() - before
            self._next_s = now + max(_SLOW_INTERVAL_S, cost / _LARGEST_SHARE)
        return self._last


def throttle_count() -> int | None:
    """How often heat has slowed the processors down since the system started; None where nothing tells."""
    folders = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle")
    counts = [
        _number(folder / name) for folder in folders for name in ("core_throttle_count", "package_throttle_count")
    ]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def _own_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def _cpu_seconds(process: psutil.Process) -> float | None:
    """CPU seconds of a worker and of its children that have ended; None when it has ended itself."""
    try:
        times = process.cpu_times()
    except psutil.Error:
        return None
    return float(times.user + times.system + times.children_user + times.children_system)


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def _frequency_mhz() -> tuple[float | None, float | None]:
    try:
        frequency = psutil.cpu_freq()
        known = frequency.current or None, frequency.max or None
    except (OSError, NotImplementedError, AttributeError):  # also where psutil gives None
        return None, None
    return known


def _temperature_c() -> float | None:
    """The hottest CPU sensor; None where the system shows none."""
    if not hasattr(psutil, "sensors_temperatures"):
        return None
    try:
        found = psutil.sensors_temperatures()
    except (OSError, ValueError):
        return None
    readings = [entry.current for name in _SENSORS for entry in found.get(name, ()) if entry.current]
    return max(readings) if readings else None
