"""Was a slice of steps measured on a quiet machine? One sentence when it was not."""

from collections.abc import Collection, Sequence

import psutil

from gptscope.profiling.telemetry.cpu import CpuLoad
from gptscope.profiling.telemetry.nvidia import SLOWDOWNS

OTHER_SHARE = 0.15
"""Of one core. Small kernels slow down several times when another process takes one of their cores."""
OWN_SHARE = 0.5
"""Of one core; a window that draws live charts needs some."""
STEAL_SHARE = 0.03
"""Of all cores' time, taken by other virtual machines."""
WORKER_ERROR = 0.02
"""By how much the sampled total and the worker's exact time may differ, as a share of the worker's time."""
TICKS_S = 0.04
"""Four ticks of the counters: less is not told apart from rounding."""


def judge(
    load: CpuLoad,
    *,
    processors: int,
    throttled: bool = False,
    gpu_reasons: Collection[str] = (),
    culprits: Sequence[str] = (),
) -> str | None:
    """Say why a slice is not counted.

    Args:
        load: CPU seconds between its start and its end.
        processors: Logical processors of the machine.
        throttled: The processors were slowed down because of heat meanwhile.
        gpu_reasons: Throttle reasons of the GPU seen meanwhile.
        culprits: Names of the busiest other processes.
    """
    reasons = []
    if load.other_s > OTHER_SHARE * load.seconds + WORKER_ERROR * load.worker_s + TICKS_S:
        names = f" ({', '.join(culprits)})" if culprits else ""
        reasons.append(f"other processes used {load.percent(load.other_s):.0f} % of a core{names}")
    if load.own_s > OWN_SHARE * load.seconds + TICKS_S:
        reasons.append(f"gptscope's own window and engine used {load.percent(load.own_s):.0f} % of a core")
    if load.steal_s is not None and load.steal_s > STEAL_SHARE * load.seconds * processors + TICKS_S:
        share = 100.0 * load.steal_s / (load.seconds * processors)
        reasons.append(f"other virtual machines took {share:.0f} % of the processors' time")
    if throttled:
        reasons.append("the processors were slowed down because of heat")
    slow = sorted(SLOWDOWNS.intersection(gpu_reasons))
    if slow:
        reasons.append(f"the GPU's clocks were lowered ({', '.join(slow)})")
    return "; ".join(reasons) or None


def cpu_seconds_by_process(leave_out: Collection[int]) -> dict[int, tuple[str, float]]:
    """Name and CPU seconds of every process of the machine but some."""
    seconds: dict[int, tuple[str, float]] = {}
    for process in psutil.process_iter(["name", "cpu_times"]):
        times = process.info["cpu_times"]
        if process.pid not in leave_out and times is not None:
            seconds[process.pid] = (process.info["name"] or f"process {process.pid}", times.user + times.system)
    return seconds


def busiest(
    before: dict[int, tuple[str, float]], after: dict[int, tuple[str, float]], seconds: float, most: int = 3
) -> tuple[str, ...]:
    """Names of the processes that used more than a twentieth of a core between two looks, busiest first."""
    used: dict[str, float] = {}
    for pid, (name, total) in after.items():
        if pid in before:
            used[name] = used.get(name, 0.0) + total - before[pid][1]
    names = sorted((name for name, cpu in used.items() if cpu > 0.05 * seconds), key=lambda name: -used[name])
    return tuple(names[:most])
