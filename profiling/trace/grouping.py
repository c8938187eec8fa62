"""Sums by group, with exact whole numbers."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
_DENSE = 8
"""A code whose range is at most so many times its length is counted in a table instead of sorted."""
_MOST_CODES = 2**62


@dataclass(frozen=True, slots=True)
class Groups:
    """Which group every entry belongs to."""

    first: Int64
    """One entry of each group: its first."""
    of: Int64
    """Group of every entry."""

    @property
    def count(self) -> int:
        """How many groups."""
        return int(self.first.size)

    def sizes(self) -> Int64:
        """Entries of each group."""
        return np.bincount(self.of, minlength=self.count)

    def sums(self, values: npt.NDArray[np.signedinteger]) -> Int64:
        """Sum of each group."""
        total = np.zeros(self.count, dtype=np.int64)
        np.add.at(total, self.of, values)
        return total

    def least(self, values: npt.NDArray[np.signedinteger]) -> Int64:
        """Smallest of each group."""
        low = np.full(self.count, np.iinfo(np.int64).max, dtype=np.int64)
        np.minimum.at(low, self.of, values)
        return low

    def most(self, values: npt.NDArray[np.signedinteger]) -> Int64:
        """Largest of each group."""
        high = np.full(self.count, np.iinfo(np.int64).min, dtype=np.int64)
        np.maximum.at(high, self.of, values)
        return high


def group_by(*columns: npt.NDArray[np.signedinteger]) -> Groups:
    """Group entries that are equal in all columns."""
    if not columns[0].size:
        empty = np.empty(0, dtype=np.int64)
        return Groups(empty, empty)
    code, span = _numbered(columns[0])
    for column in columns[1:]:
        part, own = _numbered(column)
        if own == 1:
            continue
        if span * own >= _MOST_CODES:
            (code, span), (part, own) = _dense(code), _dense(part)
        code *= own
        code += part
        span *= own
    if span > _DENSE * code.size + 1024:
        low = int(code.min())
        code -= low
        span = int(code.max()) + 1
    if span > _DENSE * code.size + 1024:
        _, first, of = np.unique(code, return_index=True, return_inverse=True)
        return Groups(first, of)
    first_seen = np.full(span, -1, dtype=np.int64)
    first_seen[code[::-1]] = np.arange(code.size - 1, -1, -1)
    used = np.flatnonzero(first_seen >= 0)
    number = np.zeros(span, dtype=np.int64)
    number[used] = np.arange(used.size)
    return Groups(first_seen[used], number[code])


def _numbered(column: npt.NDArray[np.signedinteger]) -> tuple[Int64, int]:
    """A new array with the numbers of a column from 0 up, and how many there may be."""
    low, high = int(column.min()), int(column.max())
    if high - low >= _MOST_CODES:
        return _dense(column)
    return np.subtract(column, low, dtype=np.int64), high - low + 1


def _dense(column: npt.NDArray[np.signedinteger]) -> tuple[Int64, int]:
    """The same without any number that does not occur, so that a product of two fits."""
    numbers, of = np.unique(column, return_inverse=True)
    return of.astype(np.int64), numbers.size


def heaviest(groups: Groups, kind: npt.NDArray[np.signedinteger], weight: Int64) -> npt.NDArray[np.signedinteger]:
    """For each group the kind that has most weight in it."""
    if not groups.count:
        return kind[:0]
    fine = group_by(groups.of, kind)
    total = fine.sums(weight)
    group, of_kind = groups.of[fine.first], kind[fine.first]
    order = np.lexsort((total, group))
    last = np.flatnonzero(np.append(group[order][1:] != group[order][:-1], [True]))
    return of_kind[order[last]]
