"""Traces of torch.profiler: read into columns, and the tables made from them."""

from gptscope.profiling.trace.health import HealthNote, TraceError
from gptscope.profiling.trace.intervals import busy_ns_per_device
from gptscope.profiling.trace.kernels import kernel_table
from gptscope.profiling.trace.operators import operator_table
from gptscope.profiling.trace.profiled import ProfiledTime, profiled_time
from gptscope.profiling.trace.reader import read_kineto
from gptscope.profiling.trace.steps import StepWindows, step_windows
from gptscope.profiling.trace.table import TraceTable

__all__ = [
    "HealthNote",
    "ProfiledTime",
    "StepWindows",
    "TraceError",
    "TraceTable",
    "busy_ns_per_device",
    "kernel_table",
    "operator_table",
    "profiled_time",
    "read_kineto",
    "step_windows",
]
