"""Who lies inside whom on each track, found with sorted arrays instead of a stack; tracks with crossings get lanes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.table import Int64

Places = npt.NDArray[np.int32]
"""Positions of rows; no trace has more than two thousand million."""
_SPACE = 2**62
_ROWS = 1 << 16
_MOST_LEVELS = 10_000
"""More are not looked at level by level."""


@dataclass(frozen=True, slots=True)
class NestedRows:
    """Rows in order, outer before inner; `parent` and `depth` are parallel to `order`."""

    order: Places
    """Positions of the rows that were given, track by track, by beginning, longer ones first."""
    parent: Places
    """Position in `order` of the innermost row around each, -1 for none."""
    depth: Places
    crossing: bool
    """Some rows begin inside another one and end after it."""


def nest_rows(track: npt.NDArray[np.signedinteger], start_ns: Int64, duration_ns: Int64) -> NestedRows:
    """Find the enclosing row of every row. A row that begins when another ends is not inside it.

    A row of no length has none inside it. A row that ends after the one around it counts as inside all the same.
    """
    size = start_ns.size
    if not size:
        empty = np.empty(0, dtype=np.int32)
        return NestedRows(empty, empty, empty, crossing=False)
    begin_key, end_key = _keys(track, start_ns, start_ns + duration_ns)
    order = _ordered(begin_key, duration_ns)
    begins = begin_key[order]
    del begin_key  # a trace of millions of rows fills memory with every column
    ends = end_key[order]
    del end_key
    long = duration_ns[order] > 0
    depth = np.cumsum(long, dtype=np.int32)
    depth -= long
    depth -= np.searchsorted(np.sort(ends[long]), begins, side="right").astype(np.int32)
    if int(depth.max()) > _MOST_LEVELS:
        return _deep(order, begins, ends, long)
    parent = _parents(depth, long)
    inside = np.flatnonzero(parent >= 0)
    crossing = inside[ends[inside] > ends[parent[inside]]]
    of_order = track[order]
    for one in np.unique(of_order[crossing]):
        places = np.flatnonzero(of_order == one)  # one run, because tracks lie one after another
        found, depth[places] = _parents_with_stack(begins[places], ends[places], long[places])
        parent[places] = np.where(found >= 0, found + places[0], -1)
    return NestedRows(order, parent, depth, crossing.size > 0)


def _deep(order: Places, begins: Int64, ends: Int64, long: npt.NDArray[np.bool_]) -> NestedRows:
    """The same, row by row: no program nests so deeply, but a damaged file does."""
    parent, depth = _parents_with_stack(begins, ends, long)  # times of tracks lie one after another on one axis
    inside = np.flatnonzero(parent >= 0)
    return NestedRows(order, parent, depth, bool((ends[inside] > ends[parent[inside]]).any()))


def nearest(stops: npt.NDArray[np.bool_], parent: Places) -> Places:
    """For every position the nearest stop at or above it along `parent`, -1 for none."""
    size = parent.size
    up = np.empty(size + 1, dtype=np.int32)  # with a place above the topmost
    up[:size] = parent
    up[up < 0] = size
    up[size] = size
    np.copyto(up[:size], np.arange(size, dtype=np.int32), where=stops)
    while True:
        further = up[up]
        if np.array_equal(further, up):
            up[up == size] = -1
            return up[:size]
        up = further


def above(stops: npt.NDArray[np.bool_], parent: Places) -> Places:
    """For every position the nearest stop strictly above it, -1 for none."""
    found = nearest(stops, parent)
    return np.where(parent >= 0, found[parent], np.int32(-1))


def _keys(track: npt.NDArray[np.signedinteger], start_ns: Int64, end_ns: Int64) -> tuple[Int64, Int64]:
    """Times of all tracks on one axis, one track after another."""
    first = int(start_ns.min())
    span = int(end_ns.max()) - first + 1
    tracks, number = np.unique(track, return_inverse=True)
    if span * len(tracks) < _SPACE:
        shift = number.astype(np.int64) * span - first
        return start_ns + shift, end_ns + shift
    moments, ranks = np.unique(np.concatenate((start_ns, end_ns)), return_inverse=True)
    shift = number.astype(np.int64) * (moments.size + 1)
    return ranks[: start_ns.size] + shift, ranks[start_ns.size :] + shift


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


def _parents(depth: Places, long: npt.NDArray[np.bool_]) -> Places:
    """The nearest row before each that lies one level higher; rows of no length are no parents."""
    parent = np.full(depth.size, -1, dtype=np.int32)
    # Level by level: places of equal depth stay in order, and small numbers are sorted in one pass.
    deepest = int(depth.max())
    by_depth = np.argsort(depth.astype(np.int16) if deepest < 2**15 else depth, kind="stable").astype(np.int32)
    bounds = np.searchsorted(depth[by_depth], np.arange(deepest + 2))
    outer = by_depth[:0]
    for level in range(deepest + 1):
        places = by_depth[bounds[level] : bounds[level + 1]]
        if outer.size and places.size:
            found = np.searchsorted(outer, places) - 1
            parent[places] = np.where(found >= 0, outer[np.maximum(found, 0)], -1)
        outer = places[long[places]]
    return parent


def _parents_with_stack(begins: Int64, ends: Int64, long: npt.NDArray[np.bool_]) -> tuple[Places, Places]:
    """The same for rows that cross: one that outlasts the row around it is cut to it while others are placed."""
    parents, depths = np.full(begins.size, -1, dtype=np.int32), np.zeros(begins.size, dtype=np.int32)
    open_ends: list[int] = []
    open_rows: list[int] = []
    for first in range(0, begins.size, _ROWS):  # as numbers of Python they take five times the memory
        block = slice(first, first + _ROWS)
        found: list[int] = []
        levels: list[int] = []
        rows = zip(begins[block].tolist(), ends[block].tolist(), long[block].tolist(), strict=True)
        for row, (begin, end, is_long) in enumerate(rows, first):
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
                open_rows.pop()
            found.append(open_rows[-1] if open_rows else -1)
            levels.append(len(open_rows))
            if is_long:
                open_ends.append(min(end, open_ends[-1]) if open_ends else end)
                open_rows.append(row)
        parents[block], depths[block] = found, levels
    return parents, depths
