"""Idle gaps of devices, with what the host did meanwhile: why the device had nothing to do."""

from dataclasses import dataclass

import numpy as np

from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.analysis.steps import data_loading_rows
from gptscope.profiling.trace.intervals import Cover
from gptscope.profiling.trace.table import Bools, Int64

LAUNCH_BOUND = "launch-bound"
SYNCHRONISATION = "synchronisation"
DATA_LOADING = "data loading"
HOST_WAIT = "host wait"
DEVICE = "device scheduling"
UNKNOWN = "launch not recorded"
CAUSES: dict[str, str] = {
    LAUNCH_BOUND: "the host was still busy with operators and launches when the device had finished",
    SYNCHRONISATION: "the host waited for the device before it launched more",
    DATA_LOADING: "the host was loading the next batch",
    HOST_WAIT: "the host did nothing that was recorded",
    DEVICE: "the next kernel had been launched already: the device needed this long to start it, or it waited for"
    " another stream",
    UNKNOWN: "the launch of the next kernel was not recorded",
}
"""Cause -> what it means."""
_SYNC_WORDS = ("Synchronize", "StreamWait", "EventQuery", "synchronize")
_MOST = 0.5
"""Share of a gap that data loading must cover to be its cause."""


@dataclass(frozen=True, slots=True)
class GapTable:
    """Every gap between two pieces of work of one device; arrays of equal length."""

    device: Int64
    start_ns: Int64
    duration_ns: Int64
    next_row: Int64
    """The work that ended it."""
    cause: list[str]


@dataclass(frozen=True, slots=True)
class GapSums:
    """All gaps of one device with one cause."""

    device: int
    cause: str
    meaning: str
    gaps: int
    total_ns: int
    median_ns: float
    typical_ns: int
    """Half of the total lies in gaps at least this long."""
    longest_ns: int
    longest_start_ns: int
    """When the longest began."""


def synchronising(linked: Linked) -> Bools:
    """Which rows are calls in which the host waits for the device."""
    trace = linked.trace
    waits = trace.named_so(lambda name: any(word in name for word in _SYNC_WORDS))
    copies = trace.named_so(lambda name: name in {"cudaMemcpy", "hipMemcpy", "hipMemcpyWithStream"})
    return (trace.launches() & (waits | copies)) | trace.named_so(
        {"aten::item", "aten::_local_scalar_dense"}.__contains__
    )


def idle_gaps(linked: Linked) -> GapTable:
    """Find all gaps and why they were."""
    trace = linked.trace
    parts: list[tuple[Int64, Int64, Int64, Int64, Int64]] = []
    for device in linked.devices:
        here = np.flatnonzero(trace.device[linked.work] == device)
        rows = linked.work[here]
        order = np.argsort(trace.start_ns[rows], kind="stable")
        start = trace.start_ns[rows][order]
        reached = np.maximum.accumulate(trace.ends(rows)[order])
        after = np.flatnonzero(start[1:] > reached[:-1]) + 1
        first = order[after]
        launch = linked.launch[here][first]
        parts.append((np.full(after.size, device), reached[after - 1], start[after], rows[first], launch))
    if not parts:
        none = np.empty(0, dtype=np.int64)
        return GapTable(none, none, none, none, [])
    device_of, begin, stop, next_row, launch = (np.concatenate(column) for column in zip(*parts, strict=True))
    return GapTable(device_of, begin, stop - begin, next_row, _causes(linked, begin, stop, launch))


def gap_sums(linked: Linked) -> list[GapSums]:
    """Rows by device and falling time; they add up to the device's idle time between its first and last work."""
    gaps = idle_gaps(linked)
    causes = np.array(gaps.cause, dtype=object)
    table = []
    for device in np.unique(gaps.device).tolist():
        for cause, meaning in CAUSES.items():
            places = np.flatnonzero((gaps.device == device) & (causes == cause))
            if places.size:
                lengths = gaps.duration_ns[places]
                median = float(np.median(lengths))
                total, typical, most = int(lengths.sum()), _typical(lengths), int(np.argmax(lengths))
                longest, began = int(lengths[most]), int(gaps.start_ns[places[most]])
                table.append(GapSums(device, cause, meaning, lengths.size, total, median, typical, longest, began))
    return sorted(table, key=lambda r: (r.device, -r.total_ns))


def _typical(lengths: Int64) -> int:
    """The length above which half of the sum lies."""
    falling = np.sort(lengths)[::-1]
    reached = np.cumsum(falling)
    return int(falling[np.searchsorted(reached * 2, reached[-1])])


def _causes(linked: Linked, begin: Int64, stop: Int64, launch: Int64) -> list[str]:
    trace = linked.trace
    length = np.maximum(stop - begin, 1)
    known = launch >= 0
    at = np.maximum(launch, 0)
    launched = np.where(known, trace.start_ns[at], stop)
    late = known & (trace.ends(at) > begin)
    # What the host did between the device's last work and the launch of the next.
    until = np.clip(launched, begin, stop)
    window = np.maximum(until - begin, 1)
    sync_rows = np.flatnonzero(synchronising(linked) & ~trace.unfinished)
    sync = Cover(trace.start_ns[sync_rows], trace.ends(sync_rows))
    loading_rows = data_loading_rows(linked)
    loading = Cover(trace.start_ns[loading_rows], trace.ends(loading_rows))
    host_rows = np.flatnonzero((trace.operators() | trace.launches()) & ~trace.unfinished)
    host = Cover(trace.start_ns[host_rows], trace.ends(host_rows))
    # A wait that ends shortly after the device did: everything after it is its consequence.
    waited = _inside(sync, begin) | (sync.within(begin, until) > _MOST * window)
    loaded = loading.within(begin, until) > _MOST * window
    working = host.within(begin, stop) > 0.1 * length
    conditions = [~known, ~late, loaded, waited, working]
    names = [UNKNOWN, DEVICE, DATA_LOADING, SYNCHRONISATION, LAUNCH_BOUND]
    chosen = np.select(conditions, [np.full(begin.size, i) for i in range(len(names))], default=len(names))
    names.append(HOST_WAIT)
    return [names[i] for i in chosen.tolist()]


def _inside(cover: Cover, time_ns: Int64) -> Bools:
    """Whether each moment lies inside the union."""
    if not cover.start_ns.size:
        return np.zeros(time_ns.size, dtype=bool)
    index = np.searchsorted(cover.start_ns, time_ns, side="right") - 1
    return (index >= 0) & (time_ns < cover.end_ns[np.maximum(index, 0)])
