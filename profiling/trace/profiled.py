"""How long the profiled steps took and how much of it something worked."""

from dataclasses import dataclass
from typing import Literal

from gptscope.profiling.trace.nesting import nest
from gptscope.profiling.trace.steps import StepWindows, step_windows
from gptscope.profiling.trace.table import Trace
from gptscope.profiling.trace.work import busy_ns, work_in


@dataclass(frozen=True, slots=True)
class ProfiledTime:
    """Times of the profiled steps together."""

    steps: int
    """Marked steps; 0 when the trace marks none and was taken as a whole."""
    wall_ns: int
    busy_ns: int
    """Union of the work's intervals per device; on a CPU of all operators on all threads."""
    device: Literal["cpu", "cuda"]
    """`cuda` stands for any device with kernels of its own."""


def profiled_time(trace: Trace, steps: StepWindows | None = None) -> ProfiledTime:
    """Wall and busy time of the steps (`None`: those that the trace marks)."""
    windows = steps if steps is not None else step_windows(trace)
    work = work_in(trace, nest(trace), windows)
    return ProfiledTime(
        steps=windows.count if windows.marked else 0,
        wall_ns=windows.wall_ns,
        busy_ns=busy_ns(trace, work),
        device=work.device,
    )
