"""Who lies inside whom on each track, found with sorted arrays instead of a stack; tracks with crossings get lanes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.table import Bools, Int64, some_rows

Places = npt.NDArray[np.int32]
"""Positions of rows; no trace has more than two thousand million."""
_SPACE = 2**62
_ROWS = 1 << 16
_ROUND = 1000
"""A round over few rows takes as long as one over so many."""
_LEVELS = 3
"""So many may be taken off as a whole before the others climb."""
_MOST_LOOKS = 100
"""Rows that are looked at for every row; only damaged files nest so deeply that it takes more."""


@dataclass(frozen=True, slots=True)
class NestedRows:
    """Rows in order, outer before inner; `parent` and `depth` are parallel to `order`."""

    order: Places
    """Positions of the rows that were given, track by track, by beginning, longer ones first."""
    parent: Places
    """Position in `order` of the innermost row around each, -1 for none."""
    crossing: bool
    """Some rows begin inside another one and end after it."""

    @property
    def depth(self) -> Places:
        """How many rows lie around each; counted when asked for."""
        return depths(self.parent)


def nest_rows(track: npt.NDArray[np.signedinteger], start_ns: Int64, duration_ns: Int64) -> NestedRows:
    """Find the enclosing row of every row. A row that begins when another ends is not inside it.

    A row of no length has none inside it. A row that ends after the one around it counts as inside all the same.
    Tracks are numbered from 0.
    """
    if not start_ns.size:
        empty = np.empty(0, dtype=np.int32)
        return NestedRows(empty, empty, crossing=False)
    begins, ends = _keys(track, start_ns, duration_ns)
    if (begins[1:] > begins[:-1]).all():  # as one thread records them
        order = np.arange(begins.size, dtype=np.int32)
    else:
        order = _ordered(begins, duration_ns)
        begins, ends = begins[order], ends[order]
    parent = _parents(begins, ends)
    if parent is None:
        parent = _parents_with_stack(begins, ends)  # times of tracks lie one after another on one axis
        return NestedRows(order, parent, crossing=bool(_crossing(ends, parent).any()))
    crossing = order[_crossing(ends, parent)]
    if crossing.size:
        of_order = track[order]
        for one in np.unique(track[crossing]):
            places = np.flatnonzero(of_order == one)  # one run, because tracks lie one after another
            found = _parents_with_stack(begins[places], ends[places])
            parent[places] = np.where(found >= 0, found + places[0], -1)
    return NestedRows(order, parent, crossing=crossing.size > 0)


def _crossing(ends: Int64, parent: Places) -> Bools:
    """Which rows end after the row around them."""
    later = ends > ends[parent]
    later &= parent >= 0
    return later


def depths(parent: Places) -> Places:
    """How many positions lie above each along `parent`."""
    up, depth = parent.copy(), (parent >= 0).astype(np.int32)
    inner = np.flatnonzero(depth).astype(np.int32)
    while inner.size:  # every round doubles how far each one has climbed
        outer = up[inner]
        depth[inner] += depth[outer]
        outer = up[outer]
        up[inner] = outer
        inner = inner[outer >= 0]
    return depth


def nearest(stops: Bools, parent: Places) -> Places:
    """For every position the nearest stop at or above it along `parent`, -1 for none."""
    found = above(stops, parent)
    np.copyto(found, np.arange(parent.size, dtype=np.int32), where=stops)
    return found


def above(stops: Bools, parent: Places) -> Places:
    """For every position the nearest stop strictly above it, -1 for none."""
    if not stops.any():
        return np.full(parent.size, -1, dtype=np.int32)
    found, passed = parent.astype(np.int32), ~stops
    climbing = np.flatnonzero(passed[found] & (found >= 0)).astype(np.int32)
    while climbing.size:  # every round doubles how far each one has climbed
        outer = found[found[climbing]]
        found[climbing] = outer
        climbing = climbing[passed[outer] & (outer >= 0)]
    return found


def _keys(track: npt.NDArray[np.signedinteger], start_ns: Int64, duration_ns: Int64) -> tuple[Int64, Int64]:
    """Beginnings and ends of all tracks on one axis, one track after another."""
    end_ns = start_ns + duration_ns
    if track.min() == track.max():
        return start_ns, end_ns
    used = np.bincount(track) > 0
    tracks = int(used.sum())
    number = (np.cumsum(used) - 1)[track]
    first = int(start_ns.min())
    span = int(end_ns.max()) - first + 1
    if span * tracks < _SPACE:
        number *= span
        number -= first
        end_ns += number
        number += start_ns
        return number, end_ns
    moments, ranks = np.unique(np.concatenate((start_ns, end_ns)), return_inverse=True)
    number *= moments.size + 1
    return ranks[: start_ns.size] + number, ranks[start_ns.size :] + number


def _ordered(begin_key: Int64, duration_ns: Int64) -> Places:
    """By beginning, then longest first, then as in the file."""
    order = np.argsort(begin_key, kind="stable").astype(np.int32)
    begins = begin_key[order]
    same = begins[1:] == begins[:-1]
    if same.any():
        tied = np.zeros(order.size, dtype=bool)
        tied[1:] |= same
        tied[:-1] |= same
        places = np.flatnonzero(tied)
        rows = order[places]
        order[places] = rows[np.lexsort((rows, -duration_ns[rows], begin_key[rows]))]
    return order


def _parents(begins: Int64, ends: Int64) -> Places | None:
    """The nearest row before each that has not ended when it begins; None when that takes too long."""
    parent = np.full(begins.size, -1, dtype=np.int32)
    outer, inner = _outermost(np.arange(begins.size, dtype=np.int32), begins, ends)
    has_ended = ends[:-1] <= begins[1:]  # the row before
    for _ in range(_LEVELS):
        if 2 * np.count_nonzero(has_ended[inner - 1]) < inner.size:
            break
        level, inner = _outermost(inner, begins, ends)  # long rows of siblings, as inside a step: far to climb
        parent[level] = outer[np.searchsorted(outer, level) - 1]
        outer = level
    parent[inner] = inner - 1
    # Where the row before has ended, so have all that lie between it and the row that it leads to.
    ended = inner[has_ended[inner - 1]]
    left = _MOST_LOOKS * (begins.size + _ROUND)
    while ended.size:
        left -= ended.size + _ROUND
        if left < 0:
            return None
        outer = parent[parent[ended]]
        parent[ended] = outer
        ended = ended[(outer >= 0) & (ends[outer] <= begins[ended])]
    return parent


def _outermost(places: Places, begins: Int64, ends: Int64) -> tuple[Places, Places]:
    """Those that begin when all of them before have ended, and the others."""
    begin, end = some_rows(begins, places), some_rows(ends, places)
    inside = np.zeros(places.size, dtype=bool)
    np.less(begin[1:], np.maximum.accumulate(end)[:-1], out=inside[1:])
    return places[~inside], places[inside]


def _parents_with_stack(begins: Int64, ends: Int64) -> Places:
    """The same for rows that cross: one that outlasts the row around it is cut to it while others are placed."""
    parents = np.full(begins.size, -1, dtype=np.int32)
    open_ends: list[int] = []
    open_rows: list[int] = []
    for first in range(0, begins.size, _ROWS):  # as numbers of Python they take five times the memory
        block = slice(first, first + _ROWS)
        found: list[int] = []
        for row, (begin, end) in enumerate(zip(begins[block].tolist(), ends[block].tolist(), strict=True), first):
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
                open_rows.pop()
            found.append(open_rows[-1] if open_rows else -1)
            if end > begin:
                open_ends.append(min(end, open_ends[-1]) if open_ends else end)
                open_rows.append(row)
        parents[block] = found
    return parents
