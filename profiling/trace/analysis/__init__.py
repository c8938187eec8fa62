"""Analyses of a trace: pure functions of a `Linked` trace, which links its events once.

linked = Linked.of(trace)                    # or Linked.of(trace, (start_ns, end_ns)) for a range
kernel_sums(linked), operator_sums(linked), module_sums(linked), step_times(linked), device_use(linked), ...
summarise(linked)                            # all of it
"""

from gptscope.profiling.trace.analysis.advice import Advice, advise
from gptscope.profiling.trace.analysis.checks import health_notes
from gptscope.profiling.trace.analysis.communication import CollectiveSums, collective_sums
from gptscope.profiling.trace.analysis.copies import CopySums, copy_sums
from gptscope.profiling.trace.analysis.diff import LEVELS, DiffRow, Level, TraceDiff, diff_traces
from gptscope.profiling.trace.analysis.gaps import CAUSES, GapSums, GapTable, gap_sums, idle_gaps
from gptscope.profiling.trace.analysis.kernels import CategorySums, KernelSums, category_sums, kernel_sums
from gptscope.profiling.trace.analysis.launches import (
    GraphSums,
    LaunchCalls,
    LaunchSums,
    graph_sums,
    launch_calls,
    launch_delays,
    launch_sums,
)
from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.analysis.memory import DeviceMemory, OperatorMemory, device_memory, operator_memory
from gptscope.profiling.trace.analysis.modules import ModuleSums, module_sums
from gptscope.profiling.trace.analysis.operators import OperatorSums, operator_sums
from gptscope.profiling.trace.analysis.roofline import RooflinePoint, roofline_points
from gptscope.profiling.trace.analysis.steps import PARTS, StepTimes, step_times
from gptscope.profiling.trace.analysis.summary import TraceSummary, summarise
from gptscope.profiling.trace.analysis.tensor_cores import (
    TensorCoreUse,
    tensor_core_use,
    tensor_cores_by_category,
)
from gptscope.profiling.trace.analysis.utilisation import DeviceUse, device_use, host_busy_ns

__all__ = [
    "CAUSES",
    "LEVELS",
    "PARTS",
    "Advice",
    "CategorySums",
    "CollectiveSums",
    "CopySums",
    "DeviceMemory",
    "DeviceUse",
    "DiffRow",
    "GapSums",
    "GapTable",
    "GraphSums",
    "KernelSums",
    "LaunchCalls",
    "LaunchSums",
    "Level",
    "Linked",
    "ModuleSums",
    "OperatorMemory",
    "OperatorSums",
    "RooflinePoint",
    "StepTimes",
    "TensorCoreUse",
    "TraceDiff",
    "TraceSummary",
    "advise",
    "category_sums",
    "collective_sums",
    "copy_sums",
    "device_memory",
    "device_use",
    "diff_traces",
    "gap_sums",
    "graph_sums",
    "health_notes",
    "host_busy_ns",
    "idle_gaps",
    "kernel_sums",
    "launch_calls",
    "launch_delays",
    "launch_sums",
    "module_sums",
    "operator_memory",
    "operator_sums",
    "roofline_points",
    "step_times",
    "summarise",
    "tensor_core_use",
    "tensor_cores_by_category",
]
