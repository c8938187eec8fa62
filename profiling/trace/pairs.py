"""Pairs events that begin with events that end, as the Trace Event Format says."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
BEGIN, END = 0, 1


@dataclass(frozen=True, slots=True)
class Pairs:
    """Which ends belong together, as positions in the columns that were paired."""

    begin: Int64
    end: Int64
    """-1: it never ends."""
    stray_ends: int
    """Ends without a beginning."""


def pair_up(kind: npt.NDArray[np.int8], group: Int64, name: Int32, time_ns: Int64, unnamed: int) -> Pairs:
    """Find the end of every beginning.

    An end with a name closes the newest open beginning of that name in its group; one without a name closes the newest
    open one.

    Args:
        kind: `BEGIN` or `END`.
        group: What they can be paired within: a thread, or an id of asynchronous events.
        name: Number of each one's name.
        time_ns: When; at one moment the order of the file counts.
        unnamed: Number of the empty name.
    """
    order = np.lexsort((np.arange(time_ns.size), time_ns, group))
    begins: list[int] = []
    end_of: dict[int, int] = {}
    open_ones: list[int] = []
    by_name: dict[int, list[int]] = {}
    current, stray = None, 0
    kinds, groups, names = kind.tolist(), group.tolist(), name.tolist()
    for one in order.tolist():
        if groups[one] != current:
            current, open_ones, by_name = groups[one], [], {}
        if kinds[one] == BEGIN:
            begins.append(one)
            open_ones.append(one)
            by_name.setdefault(names[one], []).append(one)
            continue
        closed = _newest(open_ones if names[one] == unnamed else by_name.get(names[one], []), end_of)
        if closed is None:
            stray += 1
        else:
            end_of[closed] = one
    begin = np.array(begins, dtype=np.int64)
    end = np.array([end_of.get(one, -1) for one in begins], dtype=np.int64)
    return Pairs(begin, end, stray)


def _newest(candidates: list[int], closed: dict[int, int]) -> int | None:
    """Take the newest one that is still open; those that were closed through the other list are dropped."""
    while candidates:
        one = candidates.pop()
        if one not in closed:
            return one
    return None
