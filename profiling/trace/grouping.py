"""Sums by group, with exact whole numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Integers = npt.NDArray[np.signedinteger[Any]]
_DENSE = 8
"""Numbers up to so many times their count are counted in a table instead of sorted."""
_MOST_CODES = 2**62
_NARROW = 2**31
_BLOCK = 1 << 16
"""Entries that are looked at together where all at once would fill fresh memory, which costs more than the sums."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Which group every entry belongs to."""

    first: Int64
    """One entry of each group: its first."""
    of: Integers
    """Group of every entry."""

    @property
    def count(self) -> int:
        """How many groups."""
        return int(self.first.size)

    def sizes(self) -> Int64:
        """Entries of each group."""
        return np.bincount(self.of, minlength=self.count)

    # Narrow values are made wide first: added to wide ones they take thirty times as long.

    def sums(self, values: Integers) -> Int64:
        """Sum of each group."""
        total = np.zeros(self.count, dtype=np.int64)
        np.add.at(total, self.of, values.astype(np.int64, copy=False))
        return total

    def least(self, values: Integers) -> Int64:
        """Smallest of each group."""
        low = np.full(self.count, np.iinfo(np.int64).max, dtype=np.int64)
        np.minimum.at(low, self.of, values.astype(np.int64, copy=False))
        return low

    def most(self, values: Integers) -> Int64:
        """Largest of each group."""
        high = np.full(self.count, np.iinfo(np.int64).min, dtype=np.int64)
        np.maximum.at(high, self.of, values.astype(np.int64, copy=False))
        return high


def blocks(size: int) -> Iterator[slice]:
    """Slices that together hold `size` entries."""
    return (slice(first, min(first + _BLOCK, size)) for first in range(0, size, _BLOCK))


def group_by(*columns: Integers) -> Groups:
    """Group entries that are equal in all columns; groups are in the order of their numbers."""
    size = columns[0].size
    if not size:
        empty = np.empty(0, dtype=np.int64)
        return Groups(empty, empty)
    code, span = _numbered(columns[0])
    for column in columns[1:]:
        part, own = _numbered(column)
        if own == 1:
            continue
        if span * own > _most_counted(size):  # combinations that do not occur are most of them
            (code, span), (part, own) = _dense(code, span), _dense(part, own)
        if span * own >= _NARROW:
            code = code.astype(np.int64, copy=False)
        code *= own
        code += part
        span *= own
    if span > _most_counted(size):
        _, first, of = np.unique(code, return_index=True, return_inverse=True)
        return Groups(first, of)
    first_seen = np.full(span, -1, dtype=np.int64)
    for block in reversed(list(blocks(size))):
        first_seen[code[block][::-1]] = np.arange(block.stop - 1, block.start - 1, -1)
    code, _ = _dense(code, span)
    return Groups(first_seen[first_seen >= 0], code)


def _most_counted(size: int) -> int:
    """Codes up to here are counted in a table instead of sorted."""
    return _DENSE * size + 1024


def _numbered(column: Integers) -> tuple[Integers, int]:
    """A new array with the numbers of a column from 0 up, as narrow as it can be, and how many there may be."""
    low, high = int(column.min()), int(column.max())
    span = high - low + 1
    if span >= _MOST_CODES:
        return _dense(column, span)
    narrow = np.int32 if span < _NARROW else np.int64
    if not low:
        return column.astype(narrow), span
    number: Integers = np.empty(column.size, dtype=narrow)
    np.subtract(column, low, out=number, dtype=np.int64, casting="unsafe")
    return number, span


def _dense(number: Integers, span: int) -> tuple[Integers, int]:
    """The same without any number that does not occur, in the same order; changes the array where it can."""
    if span > _most_counted(number.size):
        numbers, of = np.unique(number, return_inverse=True)
        return of, numbers.size
    used = np.zeros(span, dtype=bool)
    used[number] = True
    if used.all():
        return number, span
    dense = np.cumsum(used, dtype=number.dtype)
    dense -= 1
    for block in blocks(number.size):
        number[block] = dense[number[block]]
    return number, int(dense[-1]) + 1


def heaviest(groups: Groups, kind: Integers, weight: Int64) -> Integers:
    """For each group the kind that has most weight in it."""
    if not groups.count:
        return kind[:0]
    fine = group_by(groups.of, kind)
    total = fine.sums(weight)
    group, of_kind = groups.of[fine.first], kind[fine.first]
    order = np.lexsort((total, group))
    last = np.flatnonzero(np.append(group[order][1:] != group[order][:-1], [True]))
    return of_kind[order[last]]
