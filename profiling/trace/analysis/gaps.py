"""Idle gaps of devices, with what the host did meanwhile: why the device had nothing to do."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.analysis.steps import data_loading_rows
from gptscope.profiling.trace.intervals import Cover, time_order
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
_CODES = {cause: code for code, cause in enumerate(CAUSES)}
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
    code: npt.NDArray[np.int8]
    """Position of its cause in `CAUSES`."""

    @property
    def cause(self) -> list[str]:
        """Why each one was."""
        names = list(CAUSES)
        return [names[code] for code in self.code.tolist()]


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
    if not linked.devices:
        none = np.empty(0, dtype=np.int64)
        return GapTable(none, none, none, none, none.astype(np.int8))
    parts = [_gaps_of(linked, device) for device in linked.devices]
    device_of, begin, stop, next_row, launch = (np.concatenate(column) for column in zip(*parts, strict=True))
    del parts
    return GapTable(device_of, begin, stop - begin, next_row, _causes(linked, begin, stop, launch))


def _gaps_of(linked: Linked, device: int) -> tuple[Int64, ...]:
    """Device, beginning, end, next work and its launch of each gap of a device."""
    trace = linked.trace
    here = np.flatnonzero(trace.device[linked.work] == device)
    here = here[time_order(trace.start_ns[linked.work[here]])]
    rows = linked.work[here]
    start, reached = trace.start_ns[rows], np.maximum.accumulate(trace.ends(rows))
    after = np.flatnonzero(start[1:] > reached[:-1]) + 1
    return np.full(after.size, device), reached[after - 1], start[after], rows[after], linked.launch[here[after]]


def gap_sums(linked: Linked) -> list[GapSums]:
    """Rows by device and falling time; they add up to the device's idle time between its first and last work."""
    gaps = idle_gaps(linked)
    table = []
    for device in linked.devices:
        of_device = gaps.device == device
        for code, (cause, meaning) in enumerate(CAUSES.items()):
            places = np.flatnonzero(of_device & (gaps.code == code))
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


def _causes(linked: Linked, begin: Int64, stop: Int64, launch: Int64) -> npt.NDArray[np.int8]:
    trace = linked.trace
    code = np.full(begin.size, _CODES[DEVICE], dtype=np.int8)
    code[launch < 0] = _CODES[UNKNOWN]
    late = np.flatnonzero((launch >= 0) & (trace.ends(launch) > begin))
    # What the host did between the device's last work and the launch of the next.
    begin, stop, launched = begin[late], stop[late], trace.start_ns[launch[late]]
    until = np.clip(launched, begin, stop)
    window = np.maximum(until - begin, 1)
    sync = _cover(linked, synchronising(linked) & ~trace.unfinished)
    host = _cover(linked, (trace.operators() | trace.launches()) & ~trace.unfinished)
    loading = Cover.of_rows(trace, data_loading_rows(linked))
    # A wait that ends shortly after the device did: everything after it is its consequence.
    waited = _inside(sync, begin) | (sync.within(begin, until) > _MOST * window)
    loaded = loading.within(begin, until) > _MOST * window
    working = host.within(begin, stop) > 0.1 * np.maximum(stop - begin, 1)
    of_late = np.full(late.size, _CODES[HOST_WAIT], dtype=np.int8)
    for cause, found in ((LAUNCH_BOUND, working), (SYNCHRONISATION, waited), (DATA_LOADING, loaded)):
        of_late[found] = _CODES[cause]  # the last one found counts
    code[late] = of_late
    return code


def _cover(linked: Linked, chosen: Bools) -> Cover:
    return Cover.of_rows(linked.trace, np.flatnonzero(chosen))


def _inside(cover: Cover, time_ns: Int64) -> Bools:
    """Whether each moment lies inside the union."""
    if not cover.start_ns.size:
        return np.zeros(time_ns.size, dtype=bool)
    index = np.searchsorted(cover.start_ns, time_ns, side="right") - 1
    return (index >= 0) & (time_ns < cover.end_ns[np.maximum(index, 0)])
