"""Measures what this machine's memory and arithmetic give at best, and keeps it. Needs no torch: the worker brings it.

Read and copy go through buffers well above the last-level cache, matrix products grow until one takes long enough to
time. The best of several passes counts: anything else that ran in between can only have made a pass slower. Everything
together stays within about six seconds.
"""

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec
import platformdirs
import psutil

from gptscope.profiling.machine.published import published_peaks
from gptscope.profiling.records import MachineInfo, Peaks

BUDGET_S = 6.0
ENOUGH_PASS_S = 0.03
"""A pass at least this long is timed to better than a percent."""
MIN_PASSES, MAX_PASSES = 3, 12
FIRST_GEMM, LARGEST_GEMM = 256, 8192
CACHE_MULTIPLE = 4
MIN_BUFFER_BYTES: dict[str, int] = {"cpu": 256 << 20, "cuda": 2 << 30}
"""A GPU finishes a small buffer before its launch is forgotten."""
QUIET_PERCENT = 25.0
"""Of one core, by others: above it the measured peaks are too low to be kept."""
MEMORY_SHARE = 6
"""At most one in so many free bytes is taken for a buffer; a copy needs two."""

_LAYOUT = 2
"""Raised when what is measured changes, so that kept figures are measured again."""


class Kernels(Protocol):
    """What the worker runs. Each method returns the seconds of one pass, synchronised, with buffers made before."""

    def read(self, n_bytes: int) -> float:
        """Read a buffer once, e.g. by summing it."""

    def copy(self, n_bytes: int) -> float:
        """Copy one buffer of `n_bytes` into another: `n_bytes` are read and as many written."""

    def gemm(self, precision: str, n: int) -> float:
        """Multiply two n x n matrices at this precision.

        Raises:
            ValueError: This device cannot, with a sentence why.
        """


Progress = Callable[[float, float, str], None]
"""Done, total, what is being measured."""


def _silent(done: float, total: float, note: str) -> None:
    del done, total, note


def measure_ceilings(
    kernels: Kernels,
    *,
    device: Literal["cpu", "cuda"],
    device_name: str,
    threads: int,
    precisions: Sequence[str],
    available_bytes: int,
    cache_bytes: int | None = None,
    run_id: str | None = None,
    progress: Progress = _silent,
    budget_s: float = BUDGET_S,
) -> Peaks:
    """Measure read, copy and matrix product ceilings.

    Args:
        kernels: From the worker, using `threads` threads.
        device: Where they run.
        device_name: As the driver or the system calls it; also looks up published figures.
        threads: That the kernels use.
        precisions: Recipes whose matrix products are wanted.
        available_bytes: Free memory of the device.
        cache_bytes: Size of its last-level cache; None: unknown.
        run_id: Of the run that asked.
        progress: Told before each measurement.
        budget_s: For everything together; each measurement gets an equal part of what is left.

    Returns:
        Peaks with a reason in `unknown` for each figure that could not be measured, under the figure's name.
    """
    load = OtherLoad()
    buffer = buffer_bytes(device, available_bytes, cache_bytes)
    results, unknown = _measured(kernels, precisions, buffer, budget_s, progress)
    published = published_peaks(device_name) if device == "cuda" else None
    return Peaks(
        device=device,
        device_name=device_name,
        threads=threads,
        read_gbps=results.get("read_gbps"),
        copy_gbps=results.get("copy_gbps"),
        gemm_tflops={name: results[name] for name in precisions if name in results},
        measured_unix_ns=time.time_ns(),
        published=dict(published.figures) if published is not None else {},
        published_source=published.source if published is not None else None,
        unknown=unknown,
        disturbed=load.sentence() if device == "cpu" else None,
        run_id=run_id,
    )


def _measured(
    kernels: Kernels, precisions: Sequence[str], buffer: int | None, budget_s: float, progress: Progress
) -> tuple[dict[str, float], dict[str, str]]:
    """Figures by name, and why others are missing; each gets an equal part of the time that is left."""
    tasks = ["read_gbps", "copy_gbps", *precisions]
    deadline_s = time.perf_counter() + budget_s
    results: dict[str, float] = {}
    unknown: dict[str, str] = {}
    for number, task in enumerate(tasks):
        progress(number, len(tasks), task)
        share_s = max(0.0, deadline_s - time.perf_counter()) / (len(tasks) - number)
        try:
            if task in precisions:
                results[task] = _gemm_tflops(kernels, task, share_s)
            else:
                results[task] = _memory_gbps(kernels, task, buffer, share_s)
        except MemoryError:
            unknown[task] = "not enough memory"
        except (ValueError, RuntimeError) as error:
            unknown[task] = str(error) or type(error).__name__
    progress(len(tasks), len(tasks), "")
    return results, unknown


class OtherLoad:
    """How much of the processor others have used since this was made: other processes, and the host's other guests."""

    def __init__(self) -> None:
        self._start = self._now()

    def sentence(self) -> str | None:
        """What disturbed the measurement, or None when it was quiet."""
        wall_s, busy_s = (now - then for now, then in zip(self._now(), self._start, strict=True))
        percent = 100 * max(0.0, busy_s) / wall_s if wall_s > 0 else 0.0
        if percent < QUIET_PERCENT:
            return None
        return f"other processes used {percent:.0f} % of a core"

    @staticmethod
    def _now() -> tuple[float, float]:
        """Wall time, and processor time of everything but this process."""
        times = psutil.cpu_times()
        # `guest` is part of `user`, and waiting for a disk occupies nobody
        busy_s = sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq", "steal"))
        return time.perf_counter(), busy_s - time.process_time()


def buffer_bytes(device: str, available_bytes: int, cache_bytes: int | None) -> int | None:
    """Size of a buffer that no cache holds, or None when free memory does not allow one.

    Virtual machines report the cache of a whole server, so the least that counts as large is a fixed size as well.
    """
    least = MIN_BUFFER_BYTES[device]
    wanted = max(least, CACHE_MULTIPLE * (cache_bytes or 0))
    size = min(wanted, available_bytes // MEMORY_SHARE) // 4096 * 4096
    large_enough = size >= least or size >= 2 * (cache_bytes or least)
    return size if large_enough else None


def _best_s(run: Callable[[], float], budget_s: float) -> float:
    """The shortest pass. The first one is left out: it touches memory for the first time.

    Raises:
        ValueError: The clock showed no time at all.
    """
    end_s = time.perf_counter() + budget_s
    run()
    passes: list[float] = []
    while len(passes) < MIN_PASSES or (len(passes) < MAX_PASSES and time.perf_counter() < end_s):
        passes.append(run())
        if time.perf_counter() >= end_s and passes:
            break
    best = min(passes)
    if best <= 0:
        raise ValueError("a pass took no measurable time")
    return best


def _memory_gbps(kernels: Kernels, task: str, buffer: int | None, budget_s: float) -> float:
    """Best rate of reading or copying a buffer of `buffer` bytes.

    Raises:
        ValueError: There is no such buffer, or the clock showed no time.
    """
    if buffer is None:
        raise ValueError("too little free memory for a buffer larger than the last-level cache")
    if task == "read_gbps":
        return buffer / _best_s(lambda: kernels.read(buffer), budget_s) / 1e9
    return 2 * buffer / _best_s(lambda: kernels.copy(buffer), budget_s) / 1e9


def _gemm_tflops(kernels: Kernels, precision: str, budget_s: float) -> float:
    """Best rate over growing sizes; the last size is repeated as the budget allows."""
    end_s = time.perf_counter() + budget_s
    n, best = FIRST_GEMM, 0.0
    while True:
        kernels.gemm(precision, n)
        seconds = kernels.gemm(precision, n)
        if seconds > 0:
            best = max(best, 2 * n**3 / seconds / 1e12)
        # The next size takes eight times as long, twice (it is warmed up).
        if seconds >= ENOUGH_PASS_S or n >= LARGEST_GEMM or time.perf_counter() + 16 * seconds > end_s:
            break
        n *= 2
    repeats = 0
    while repeats < MAX_PASSES and time.perf_counter() + seconds < end_s:
        best = max(best, 2 * n**3 / max(kernels.gemm(precision, n), 1e-9) / 1e12)
        repeats += 1
    if best <= 0:
        raise ValueError("a matrix product took no measurable time")
    return best


def last_level_cache_bytes() -> int | None:
    """Size of the CPU's largest cache; None where the system does not say."""
    sizes = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        try:
            text = path.read_text().strip()
            unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
            sizes.append(int(text.rstrip("KMG")) * unit)
        except (OSError, ValueError):
            continue
    return max(sizes, default=None)


class PeaksCache:
    """Keeps measured peaks as JSON files in the user's cache folder, one for each machine, device and thread count."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder if folder is not None else Path(platformdirs.user_cache_dir("gptscope")) / "peaks"

    def load(self, machine: MachineInfo, threads: int, precisions: Sequence[str]) -> Peaks | None:
        """The kept peaks, marked as reused; None when there are none, they are damaged, or lack a wanted precision."""
        try:
            peaks = msgspec.json.decode(self._path(machine, threads).read_bytes(), type=Peaks)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        if any(name not in peaks.gemm_tflops and name not in peaks.unknown for name in precisions):
            return None
        return msgspec.structs.replace(peaks, reused=True)

    def save(self, machine: MachineInfo, peaks: Peaks) -> str | None:
        """Keep peaks; return why they could not be kept (they are good for this run all the same), or None."""
        path = self._path(machine, peaks.threads)
        kept = msgspec.structs.replace(peaks, reused=False, run_id=None)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._folder, suffix=".part", delete=False) as file:
                file.write(msgspec.json.encode(kept))
            os.replace(file.name, path)  # noqa: PTH105 (a whole file or none)
        except OSError as error:
            return f"The measured peaks could not be kept in {self._folder}: {error.strerror or error}."
        return None

    def _path(self, machine: MachineInfo, threads: int) -> Path:
        facts = (
            _LAYOUT,
            machine.hostname,
            machine.cpu_name,
            machine.logical_cores,
            machine.memory_bytes,
            machine.device,
            machine.device_name,
            threads,
        )
        key = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
        return self._folder / f"{machine.device}-{threads}-{key}.json"


def get_ceilings(
    measure: Callable[[], Peaks],
    machine: MachineInfo,
    threads: int,
    precisions: Sequence[str],
    *,
    fresh: bool = False,
    cache: PeaksCache | None = None,
    run_id: str | None = None,
) -> tuple[Peaks, str | None]:
    """Kept peaks, or newly measured ones that are kept from now on.

    Args:
        measure: Measures them; only called when needed.
        machine: Whose peaks they are.
        threads: That the kernels use.
        precisions: Recipes that the kept peaks must speak of.
        fresh: Measure again whatever is kept.
        cache: Where they are kept; None: the user's cache folder.
        run_id: Of the run that asks.

    Returns:
        The peaks, and a sentence when they were not kept (the machine was busy, or the folder cannot be written).
    """
    store = cache if cache is not None else PeaksCache()
    kept = None if fresh else store.load(machine, threads, precisions)
    if kept is not None:
        return msgspec.structs.replace(kept, run_id=run_id), None
    peaks = measure()
    if peaks.disturbed is not None:
        sentence = f"This machine's peaks were measured while {peaks.disturbed}: they are too low and were not kept."
        return msgspec.structs.replace(peaks, run_id=run_id), sentence
    return msgspec.structs.replace(peaks, run_id=run_id), store.save(machine, peaks)
