"""All analyses of a trace in one value, for people, for programs and for comparisons."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gptscope.profiling.trace.analysis.advice import Advice, advise
from gptscope.profiling.trace.analysis.checks import health_notes
from gptscope.profiling.trace.analysis.communication import CollectiveSums, collective_sums
from gptscope.profiling.trace.analysis.copies import CopySums, copy_sums
from gptscope.profiling.trace.analysis.gaps import GapSums, gap_sums
from gptscope.profiling.trace.analysis.kernels import CategorySums, KernelSums, category_sums, kernel_sums
from gptscope.profiling.trace.analysis.launches import GraphSums, LaunchSums, graph_sums, launch_sums
from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.analysis.memory import DeviceMemory, device_memory
from gptscope.profiling.trace.analysis.modules import ModuleSums, module_sums
from gptscope.profiling.trace.analysis.operators import OperatorSums, operator_sums
from gptscope.profiling.trace.analysis.roofline import RooflinePoint, roofline_points
from gptscope.profiling.trace.analysis.steps import StepTimes, step_times
from gptscope.profiling.trace.analysis.tensor_cores import TensorCoreUse, tensor_core_use
from gptscope.profiling.trace.analysis.utilisation import DeviceUse, device_use, host_busy_ns
from gptscope.profiling.trace.grouping import group_by
from gptscope.profiling.trace.health import HealthNote
from gptscope.profiling.trace.points import Counters
from gptscope.profiling.trace.table import Int64


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """What a trace says. Times are exact nanoseconds; kernels are operators where there is no device."""

    events: int
    """Of every kind; of a range those with a time that lie in it at least partly."""
    timed_events: int
    """Those with a duration."""
    rank: int
    span_ns: int
    has_device: bool
    host_busy_ns: int
    devices: list[DeviceUse]
    steps: list[StepTimes]
    categories: list[CategorySums]
    kernels: list[KernelSums]
    operators: list[OperatorSums]
    modules: list[ModuleSums]
    gaps: list[GapSums]
    launches: LaunchSums
    graphs: list[GraphSums]
    copies: list[CopySums]
    collectives: list[CollectiveSums]
    memory: list[DeviceMemory]
    tensor_cores: TensorCoreUse
    roofline: list[RooflinePoint]
    health: list[HealthNote]
    advice: list[Advice]


def summarise(linked: Linked) -> TraceSummary:
    """Make all tables."""
    kernels = kernel_sums(linked)
    categories, gaps, devices = category_sums(linked), gap_sums(linked), device_use(linked)
    launches = launch_sums(linked)
    start, end = linked.span_ns
    events, timed_events = _counts(linked)
    return TraceSummary(
        events=events,
        timed_events=timed_events,
        rank=linked.trace.rank,
        span_ns=end - start,
        has_device=linked.has_device,
        host_busy_ns=host_busy_ns(linked),
        devices=devices,
        steps=step_times(linked),
        categories=categories,
        kernels=kernels,
        operators=operator_sums(linked),
        modules=module_sums(linked),
        gaps=gaps,
        launches=launches,
        graphs=graph_sums(linked),
        copies=copy_sums(linked),
        collectives=collective_sums(linked),
        memory=device_memory(linked),
        tensor_cores=tensor_core_use(linked),
        roofline=roofline_points(kernels),
        health=health_notes(linked, launches),
        advice=advise(linked, categories, gaps, devices),
    )


def _counts(linked: Linked) -> tuple[int, int]:
    """Events of every kind, and those with a duration."""
    trace, limits = linked.trace, linked.range_ns
    if limits is None:
        return sum(trace.phases.values()), len(trace)
    timed = int(linked.touched(np.arange(len(trace))).sum())
    moments = (trace.instants.time_ns, trace.flows.time_ns, _counter_times(trace.counters))
    return timed + sum(int(((time >= limits[0]) & (time < limits[1])).sum()) for time in moments), timed


def _counter_times(counters: Counters) -> Int64:
    """When each event of a counter lies; one with several values stands there as several samples."""
    events: dict[tuple[Any, str], int] = {}
    event_of = [events.setdefault((pid, name), len(events)) for pid, name, _ in counters.series]
    return counters.time_ns[group_by(np.array(event_of, dtype=np.int32)[counters.serie], counters.time_ns).first]
