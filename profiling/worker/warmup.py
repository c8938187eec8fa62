"""Run until the times are steady: caches filled, memory allocated, graphs compiled, clocks up. Never counted."""

import statistics
import time
from collections.abc import Sequence

from gptscope.profiling.records import Compiled
from gptscope.profiling.worker.output import Output
from gptscope.profiling.worker.reporting import StepReporter
from gptscope.profiling.worker.steps import Workbench

STEADY_WITHIN = 0.03
"""Medians of two neighbouring groups of steps agree to this fraction."""
LEAST_S = 0.2
"""Shorter warm-ups end before a sleeping processor has raised its clock."""
LONGEST_S = 10.0
"""A machine that is never steady must not hold up the measurement; the samples' spread will show it."""
GROUP_STEPS = {"train": 1, "prefill": 2, "decode": 4}


def warm_up(bench: Workbench, output: Output, run_id: str) -> None:
    """Warm up one variant; what it compiled is told as `Compiled`.

    Args:
        bench: The workload.
        output: Progress and samples (phase `warmup`) go there.
        run_id: The run.
    """
    reporter = StepReporter(output, run_id, "warmup")
    compiling = "compile" in bench.prepared.context.fusions
    if compiling:
        output.progress("compile", 0, 0, note="The first calls trace the model and compile its kernels.")
        bench.warm(reporter, bench.cycle if bench.longest_warm_up is None else 1)
        prepared = bench.prepared
        output.emit(
            Compiled(
                run_id=run_id,
                compile_s=prepared.compile_s,
                graph_breaks=prepared.graph_breaks,
                regions=prepared.regions,
            )
        )
    begun_s = time.monotonic()
    group = GROUP_STEPS[bench.kind]
    done = reporter.steps
    while not _enough(bench, reporter, time.monotonic() - begun_s):
        output.progress("warmup", reporter.steps - done, bench.longest_warm_up or 0, "steps")
        bench.warm(reporter, group)
    output.progress("warmup", reporter.steps, reporter.steps, "steps")


def _enough(bench: Workbench, reporter: StepReporter, elapsed_s: float) -> bool:
    if bench.longest_warm_up is not None:
        return reporter.steps >= bench.longest_warm_up
    group = GROUP_STEPS[bench.kind]
    durations = reporter.durations_ns[bench.kind] or reporter.durations_ns["prefill"]
    if len(durations) < 2 * group:
        return len(durations) >= group and elapsed_s > LONGEST_S
    return elapsed_s > LONGEST_S or (elapsed_s >= LEAST_S and is_steady(durations, group))


def is_steady(durations_ns: Sequence[int], group: int) -> bool:
    """True when the medians of the last two groups of `group` steps agree within `STEADY_WITHIN`."""
    earlier = statistics.median(durations_ns[-2 * group : -group])
    later = statistics.median(durations_ns[-group:])
    return abs(later - earlier) <= STEADY_WITHIN * earlier
