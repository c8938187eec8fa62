"""Sums of work over any range of time, found at once: by category, busy time, gaps. For selections and minimap."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.categories import CATEGORIES
from gptscope.profiling.trace.intervals import merged

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pieces:
    """Pieces of work with a category; pieces of one operator are what no operator inside it took."""

    start_ns: Int64
    end_ns: Int64
    code: npt.NDArray[np.int8]
    begins_call: npt.NDArray[np.bool_]
    """Whether the piece is the first of its call."""


@dataclass(frozen=True)
class CategoryInRange:
    """One kind of work in a range."""

    category: str
    calls: int
    """That ran in the range at least partly; on a CPU: that began in it."""
    ns: int


@dataclass(frozen=True)
class RangeSums:
    """What a range of time holds."""

    length_ns: int
    categories: tuple[CategoryInRange, ...]
    """By falling time."""
    busy_ns: int
    """Time in which anything worked."""
    gaps: int
    gap_ns: int


def work_pieces(linked: Linked, codes: npt.NDArray[np.uint8]) -> Pieces:
    """Device work; without any, the operators of all threads cut into what they do themselves.

    In traces of other programs, which have neither, it is every event that has none inside: `codes` tells.
    """
    trace = linked.trace
    if linked.has_device:
        rows = linked.work
        start = trace.start_ns[rows]
        return Pieces(start, trace.end_ns[rows], linked.work_codes, np.ones(rows.size, bool))
    if linked.operators.size:
        return _own_pieces(linked)
    rows = np.flatnonzero((codes < len(CATEGORIES)) & trace.in_statistics())
    one = np.ones(rows.size, bool)
    return Pieces(trace.start_ns[rows], trace.end_ns[rows], codes[rows].astype(np.int8), one)


def _own_pieces(linked: Linked) -> Pieces:
    """The innermost operator of each moment on each thread.

    Every beginning hands the thread to the operator, every end hands it back to the one around it.
    """
    trace, nesting = linked.trace, linked.nesting
    rows = linked.operators[trace.duration_ns[linked.operators] > 0]
    if not rows.size:
        none = np.zeros(0, np.int64)
        return Pieces(none, none, np.zeros(0, np.int8), np.zeros(0, bool))
    place = np.zeros(len(trace), np.int64)  # outer before inner
    place[nesting.order] = np.arange(nesting.order.size)
    time = np.concatenate((trace.start_ns[rows], trace.end_ns[rows]))
    owner = np.concatenate((rows, nesting.parent[rows]))
    begins = np.arange(time.size) < rows.size
    # At one moment: ends before beginnings, inner ends before outer ones, outer beginnings before inner ones.
    rank = np.concatenate((place[rows] + 1, -place[rows] - 1))
    order = np.lexsort((rank, time, np.concatenate((trace.track[rows],) * 2)))
    time, owner, begins = time[order], owner[order], begins[order]
    track = np.concatenate((trace.track[rows],) * 2)[order]
    kept = (owner[:-1] >= 0) & (track[1:] == track[:-1]) & (time[1:] > time[:-1])
    here = np.flatnonzero(kept)
    code = linked.operator_codes[owner[here]].astype(np.int8)
    return Pieces(time[here], time[here + 1], code, begins[here])


class _Overlapping:
    """Sum of the parts of many intervals that lie in any range, in the time of two look-ups.

    Sums wrap around like the arithmetic they are used in, so differences are exact.
    """

    def __init__(self, start: Int64, end: Int64) -> None:
        self.start, self.end = np.sort(start), np.sort(end)
        self._starts = np.concatenate(([0], np.cumsum(self.start)))
        self._ends = np.concatenate(([0], np.cumsum(self.end)))

    def before(self, time: Int64) -> Int64:
        """Sum of what lies before each moment."""
        begun = np.searchsorted(self.start, time, side="left")
        ended = np.searchsorted(self.end, time, side="left")
        with np.errstate(over="ignore"):
            return time * begun - self._starts[begun] - (time * ended - self._ends[ended])

    def touching(self, low: int, high: int) -> int:
        """How many intervals lie in [low, high) at least partly."""
        return int(np.searchsorted(self.start, high) - np.searchsorted(self.end, low, side="right"))


class WorkSums:
    """Answers for one trace; times count from `origin_ns`."""

    def __init__(self, pieces: Pieces, origin_ns: int) -> None:
        start, end = pieces.start_ns - origin_ns, pieces.end_ns - origin_ns
        self._kinds = {}
        self._calls = {}
        for code in np.unique(pieces.code).tolist():
            here = pieces.code == code
            self._kinds[code] = _Overlapping(start[here], end[here])
            self._calls[code] = np.sort(start[here & pieces.begins_call])
        self._whole = bool(pieces.begins_call.all())
        union_start, union_end = merged(start, end)
        self._union = _Overlapping(union_start, union_end)

    def in_range(self, low: int, high: int) -> RangeSums:
        """What lies in [low, high)."""
        edges = np.array([low, high], np.int64)
        found = []
        for code, kind in self._kinds.items():
            before = kind.before(edges)
            ns = int(before[1] - before[0])
            begun = self._calls[code]
            calls = (
                kind.touching(low, high)
                if self._whole
                else int(np.searchsorted(begun, high) - np.searchsorted(begun, low))
            )
            if calls or ns:
                found.append(CategoryInRange(CATEGORIES[code], calls, ns))
        busy = int(np.diff(self._union.before(edges))[0])
        islands = self._union.touching(low, high)
        gaps = islands + 1 if islands else 1
        if islands:
            first = int(np.searchsorted(self._union.end, low, side="right"))
            gaps -= int(self._union.start[first] <= low)
            gaps -= int(self._union.end[first + islands - 1] >= high)
        found.sort(key=lambda one: (-one.ns, one.category))
        return RangeSums(high - low, tuple(found), busy, gaps, high - low - busy)

    def shares(self, edges: Floats) -> tuple[list[int], Floats]:
        """Busy share of each pixel column by category: codes, and one row per code; columns add up to at most 1.

        Where several streams or threads work at once their shares are of all that is done there.
        """
        moments = np.rint(edges).astype(np.int64)
        width = np.maximum(np.diff(moments), 1)
        codes = sorted(self._kinds)
        if not codes:
            return [], np.zeros((0, width.size))
        parts = np.array([np.diff(self._kinds[code].before(moments)) for code in codes]) / width
        busy = np.clip(np.diff(self._union.before(moments)) / width, 0, 1)
        total = parts.sum(axis=0)
        scale = np.divide(busy, total, out=np.zeros_like(busy), where=total > 0)
        return codes, parts * scale
