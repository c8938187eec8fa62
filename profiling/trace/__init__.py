"""Traces of profilers: read into columns, and the tables made from them.

    trace = open_trace(path)            # streams; exact; repairs; trace.health says what was wrong
    trace.start_ns, trace.duration_ns   # int64 columns, one row per event with a duration
    trace.names[trace.name[row]]        # texts are stored once, columns hold their numbers
    trace.tracks[trace.track[row]]      # (pid, tid); trace.labels has their names
    trace.args(row)                     # all arguments, read from the file when asked

Everything else is a pure function of a `Trace`.
"""

from gptscope.profiling.trace.health import HealthNote, TraceError
from gptscope.profiling.trace.intervals import busy_ns_per_device
from gptscope.profiling.trace.kernels import kernel_table
from gptscope.profiling.trace.lanes import TrackInfo, lane_of, tracks_in_order
from gptscope.profiling.trace.operators import operator_table
from gptscope.profiling.trace.points import Counters, Flows, Instants, MemoryEvents
from gptscope.profiling.trace.profiled import ProfiledTime, profiled_time
from gptscope.profiling.trace.reader import Progress, open_trace
from gptscope.profiling.trace.steps import StepWindows, step_windows
from gptscope.profiling.trace.table import Trace, Track

__all__ = [
    "Counters",
    "Flows",
    "HealthNote",
    "Instants",
    "MemoryEvents",
    "ProfiledTime",
    "Progress",
    "StepWindows",
    "Trace",
    "TraceError",
    "Track",
    "TrackInfo",
    "busy_ns_per_device",
    "kernel_table",
    "lane_of",
    "open_trace",
    "operator_table",
    "profiled_time",
    "step_windows",
    "tracks_in_order",
]
