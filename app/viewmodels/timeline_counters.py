"""Counters of a trace on pixels: what the trace recorded of memory, utilisation and the like over time."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gptscope.app.viewmodels import formatting as fmt
from gptscope.profiling.trace import Trace

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class CounterLane:
    """One series of samples; a value holds until the next one. Times count from the program's beginning."""

    name: str
    note: str
    time: Floats
    value: Floats
    is_bytes: bool = False

    @property
    def top(self) -> float:
        """The largest value."""
        return float(self.value.max()) if self.value.size else 0.0

    @property
    def bottom(self) -> float:
        """The smallest value, at most zero."""
        return min(float(self.value.min()), 0.0) if self.value.size else 0.0

    def text(self, value: float) -> str:
        """A value with its unit."""
        return fmt.quantity(value, "bytes") if self.is_bytes else fmt.number(value)

    def value_at(self, time: float) -> float | None:
        """The value that holds at a moment; None before the first sample."""
        place = int(np.searchsorted(self.time, time, side="right")) - 1
        return float(self.value[place]) if place >= 0 else None


def counter_columns(lane: CounterLane, edges: Floats) -> tuple[Floats, Floats, Bools]:
    """Lowest and highest value of each pixel column, and whether there is one: every sample is in some column."""
    size = edges.size - 1
    if not lane.time.size:
        return np.zeros(size), np.zeros(size), np.zeros(size, bool)
    first = np.searchsorted(lane.time, edges[:-1], side="left")
    after = np.searchsorted(lane.time, edges[1:], side="left")
    held = np.searchsorted(lane.time, edges[:-1], side="right") - 1
    low_from = np.where(held >= 0, np.minimum(held, first), first)
    known = after > low_from
    low, high = np.zeros(size), np.zeros(size)
    if known.any():
        bounds = np.empty(2 * int(known.sum()), np.int64)
        bounds[::2], bounds[1::2] = low_from[known], after[known]
        padded = np.append(lane.value, lane.value[-1])[: int(after[known][-1]) + 1]
        low[known] = np.minimum.reduceat(padded, bounds)[::2]
        high[known] = np.maximum.reduceat(padded, bounds)[::2]
    return low, high, known


def counter_lanes(trace: Trace, origin: int) -> list[CounterLane]:
    """All counters of a trace and its allocators' totals; their times count from `origin`."""
    lanes = []
    counters = trace.counters
    order = np.lexsort((counters.time_ns, counters.serie))
    places = np.searchsorted(counters.serie[order], np.arange(len(counters.series) + 1))
    for number, (process, counter, name) in enumerate(counters.series):
        rows = order[places[number] : places[number + 1]]
        if rows.size:
            title = counter if name in {"", counter} else f"{counter}, {name}"
            time = (counters.time_ns[rows] - origin).astype(float)
            lanes.append(CounterLane(title, f"counter, process {process}", time, counters.value[rows]))
    return lanes + _memory_lanes(trace, origin)


def _memory_lanes(trace: Trace, origin: int) -> list[CounterLane]:
    memory = trace.memory
    lanes: list[CounterLane] = []
    if not len(memory):
        return lanes
    pairs = np.unique(np.stack((memory.device_type, memory.device_id)), axis=1)
    for kind, device in pairs.T.tolist():
        rows = np.flatnonzero((memory.device_type == kind) & (memory.device_id == device) & (memory.allocated >= 0))
        if rows.size:
            rows = rows[np.argsort(memory.time_ns[rows], kind="stable")]
            where = "CPU" if kind == 0 else f"GPU {device}" if kind == 1 else f"device {kind}:{device}"
            time = (memory.time_ns[rows] - origin).astype(float)
            value = memory.allocated[rows].astype(float)
            lanes.append(CounterLane(f"Memory, {where}", "allocated by torch", time, value, is_bytes=True))
    return lanes
