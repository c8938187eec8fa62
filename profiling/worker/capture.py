"""The profiled steps: a bounded recording with torch.profiler, exported as a Kineto trace."""

import errno
import itertools
import shutil
import statistics
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.autograd.profiler import profile, record_function

from gptscope.models.prepare import PreparedModel
from gptscope.profiling.trace.names import DRAFT_SCOPE
from gptscope.profiling.worker.reporting import StepReporter
from gptscope.profiling.worker.scopes import module_scopes
from gptscope.profiling.worker.steps import Workbench
from gptscope.profiling.worker.timing import stopwatch_for

MOST_EVENTS = 300_000
"""A million events with shapes take 5 GB while they are recorded."""
STEP_MARK = "ProfilerStep#"
_BYTES_PER_EVENT = 900
"""Of the JSON text, generously: annotations take 250, operators with shapes 500 to 800."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One finished recording. Durations in ns."""

    trace: Path
    steps: int
    tokens: int
    """Tokens per sequence that decode steps gave; `steps` for other kinds."""
    durations_ns: list[int]
    notes: tuple[str, ...]


def record(bench: Workbench, wanted_steps: int, folder: Path, reporter: StepReporter) -> Recording:
    """Record steps of the bench's kind and export them to a file in `folder`.

    One step is recorded and thrown away first: the profiler's own start-up goes there, and its number of events tells
    how many steps may follow.

    Args:
        bench: The workload, warmed up.
        wanted_steps: How many steps to record, if `MOST_EVENTS` allows.
        folder: Where the trace goes.
        reporter: Gets the recorded steps' times.

    Raises:
        OSError: No space for the trace (`errno.ENOSPC`), or it was cut off.
    """
    notes: list[str] = []
    if "compile" in bench.prepared.context.fusions:
        notes.append(
            "Compiled layers have no modules inside any more: their kernels carry the compiled region's name only."
        )
    bench.before_profile(1)
    events = _count_events(_run(bench, 1, None))
    steps = min(wanted_steps, bench.most_profiled_steps or wanted_steps, max(1, MOST_EVENTS // events))
    if steps < wanted_steps:
        why = "one sequence has no more" if steps == bench.most_profiled_steps else f"one step is {events} events"
        notes.append(f"{steps} steps were recorded instead of {wanted_steps}, because {why}.")
    _check_room(folder, steps * events * _BYTES_PER_EVENT)
    bench.before_profile(steps)
    recorded = _run(bench, steps, reporter)
    trace = folder / "trace.json"
    recorded.export_chrome_trace(str(trace))
    tokens = sum(bench.produced(steps)) // bench.work.batch if bench.kind == "decode" else steps
    return Recording(trace, steps, tokens, reporter.durations_ns[bench.kind], tuple(notes))


def _run(bench: Workbench, steps: int, reporter: StepReporter | None) -> profile:
    """Run `steps` steps under the profiler, each inside a step mark that ends when the device is done."""
    device = bench.prepared.device
    on_gpu = device.type == "cuda"
    watch = stopwatch_for(device)
    context = bench.context
    # torch.profiler.profile, the wrapper around this class, would import the compiler at its start (two seconds).
    with (
        module_scopes(bench.prepared.model),
        _draft_scopes(bench.prepared.draft),
        profile(use_device="cuda" if on_gpu else None, record_shapes=True) as recorded,
    ):
        for number in range(steps):
            with record_function(f"{STEP_MARK}{number}"):
                watch.start()
                bench.single()
                watch.lap()
                if on_gpu:
                    torch.cuda.synchronize(device)
    if reporter is not None:
        tokens = bench.produced(steps)
        contexts = [context] * steps
        if bench.kind == "decode":
            growth = [count // bench.work.batch for count in tokens[:-1]]
            contexts = list(itertools.accumulate(growth, initial=context))
        reporter.report(bench.kind, watch, tokens=tokens, contexts=contexts)
    return recorded


def _draft_scopes(draft: PreparedModel | None) -> AbstractContextManager[None]:
    """Scopes of the model that guesses, so that its kernels are told apart from those of the measured model."""
    return nullcontext() if draft is None else module_scopes(draft.model, DRAFT_SCOPE)


def _count_events(recorded: profile) -> int:
    """Events of a recording, without making Python objects of them."""
    assert recorded.kineto_results is not None
    return max(1, len(recorded.kineto_results.events()))


def _check_room(folder: Path, needed_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise OSError(
            errno.ENOSPC,
            f"the trace needs about {needed_bytes / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free",
            str(folder),
        )


def overhead(profiled_ns: list[int], unprofiled_ns: list[int]) -> float:
    """Median profiled step time over median unprofiled step time.

    Args:
        profiled_ns: Durations under the profiler.
        unprofiled_ns: Durations of the same kind of step without it.
    """
    return statistics.median(profiled_ns) / statistics.median(unprofiled_ns)
