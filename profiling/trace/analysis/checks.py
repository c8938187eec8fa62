"""The health of a trace: what reading it found, and what is missing or suspicious in what it holds."""

import numpy as np

from gptscope.profiling.trace.analysis.launches import LaunchSums, launch_sums
from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.health import HealthKind, HealthNote
from gptscope.profiling.trace.intervals import by_stream, overlaps_on_streams
from gptscope.profiling.trace.steps import step_marks
from gptscope.profiling.trace.table import STEP_PREFIX, Int64

_LEAST_NS = 1_000_000
"""Shorter ones may overlap by design."""
_LONG = 20
"""A kernel that lasts so many times the distance to the next one of its stream is suspect."""


def health_notes(linked: Linked, launches: LaunchSums | None = None) -> list[HealthNote]:
    """What reading found first, then what is missing, then what is suspicious. Empty when all is well.

    Args:
        linked: The trace.
        launches: From `launch_sums`, when it is at hand.
    """
    sums = launch_sums(linked) if launches is None else launches
    return [*linked.trace.health, *_missing(linked, sums), *_suspicious(linked, sums)]


def _note(kind: HealthKind, message: str, count: int = 1) -> HealthNote:
    return HealthNote(kind=kind, message=message, count=count)


def _missing(linked: Linked, launches: LaunchSums) -> list[HealthNote]:
    trace = linked.trace
    notes = []
    properties = trace.metadata.get("deviceProperties")
    if not linked.has_device and (properties or trace.launches().any()):
        notes.append(
            _note(
                "missing",
                "no GPU activity recorded although there is a device: record with ProfilerActivity.CUDA, and only one"
                " profiler at a time",
            )
        )
    if linked.has_device and not trace.operators().any():
        notes.append(_note("missing", "no operators recorded: kernels have no owner; record ProfilerActivity.CPU too"))
    if linked.operators.size and not (trace.shapes != 0).any():
        notes.append(
            _note("missing", "no input shapes recorded, so bytes and FLOPs are unknown; use record_shapes=True")
        )
    if linked.operators.size and not linked.windows.marked:
        notes.append(_note("missing", "no steps marked; the whole trace is taken as one. Call profiler.step()"))
    if launches.launched_before:
        message = "pieces of device work without a recorded launch: launched before the recording began"
        notes.append(_note("missing", message, launches.launched_before))
    return notes


def _suspicious(linked: Linked, launches: LaunchSums) -> list[HealthNote]:
    trace = linked.trace
    notes = []
    overlaps = overlaps_on_streams(trace)
    if overlaps:
        message = "kernels begin before the one before them on their stream has ended (programmatic dependent launch)"
        notes.append(_note("suspicious", f"{message}; busy time counts them once", overlaps))
    raw, cut = suspect_times(linked)
    if raw.size:
        message = (
            "kernels last far beyond the next one's beginning on their stream;"
            f" their time is {raw.sum() / 1e3:.3f} us as recorded, {cut.sum() / 1e3:.3f} us cut at the next one"
        )
        notes.append(_note("suspicious", message, int(raw.size)))
    if launches.negative_delays:
        message = "kernels seem to begin before their launch: the clocks of host and device differ"
        notes.append(_note("suspicious", message, launches.negative_delays))
    marks = step_marks(trace)
    left_open = int(trace.unfinished[marks].sum())
    if left_open:
        notes.append(_note("suspicious", "the recording ended inside a step; it is kept", left_open))
    others = int((trace.named_like(STEP_PREFIX) & ~trace.in_categories("gpu_user_annotation")).sum()) - marks.size
    if others:
        message = "steps that other processes mark too (merged ranks); those of one process count"
        notes.append(_note("ignored", message, others))
    return notes


def suspect_times(linked: Linked) -> tuple[Int64, Int64]:
    """Durations of kernels that end far past the beginning of the next one of their stream: recorded, and cut there."""
    trace, work = linked.trace, linked.work
    rows, same = by_stream(trace, work)
    distance, duration = np.diff(trace.start_ns[rows]), trace.duration_ns[rows][:-1]
    long = same & (duration > _LONG * np.maximum(distance, 1)) & (duration > _LEAST_NS)
    return duration[long], distance[long]
