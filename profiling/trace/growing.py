"""Columns that grow piece by piece, in as few bytes as their numbers need, and numbers for texts."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.health import HealthReport

MOST_NAME = 32768
"""Longer names and texts are cut: no name is so long, and a file full of them would fill the memory."""
_TYPES = tuple((kind, np.iinfo(kind).min, np.iinfo(kind).max) for kind in (np.int8, np.int16, np.int32))


class Interner(dict[Any, int]):
    """Gives every distinct value a number, in order of appearance: `interner[value]`."""

    def __init__(self, *first: Any) -> None:
        super().__init__()
        self.values_in_order: list[Any] = []
        for value in first:
            self[value]

    def __missing__(self, value: Any) -> int:
        number = self[value] = len(self.values_in_order)
        self.values_in_order.append(value)
        return number

    def numbers(self, values: Iterable[Any], count: int, type_: type = np.int32) -> npt.NDArray[Any]:
        """Numbers of many values."""
        return np.fromiter(map(self.__getitem__, values), dtype=type_, count=count)


class NameInterner(Interner):
    """The same for names, which are cut when they are absurdly long."""

    def __init__(self, health: HealthReport) -> None:
        super().__init__()
        self._health = health

    def __missing__(self, value: Any) -> int:
        if len(value) > MOST_NAME:
            self._health.add("repaired", f"a name has more than {MOST_NAME} characters; the rest is left out")
            return self[value[:MOST_NAME]]
        return super().__missing__(value)


class Columns:
    """Named columns of whole numbers, all of one length."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[npt.NDArray[Any]]] = {}
        self.nbytes = 0

    def append(self, name: str, values: npt.NDArray[Any]) -> None:
        """Add numbers as they are."""
        self._pieces.setdefault(name, []).append(values)
        self.nbytes += values.nbytes

    def append_narrow(self, name: str, values: list[int], missing: int) -> None:
        """Add numbers in the narrowest type; a run of missing ones costs a byte each.

        Raises:
            OverflowError: One does not fit into 64 bits.
        """
        if values.count(missing) == len(values):
            self.append(name, np.full(len(values), missing, dtype=np.int8))
        else:
            self.append(name, narrow(np.array(values, dtype=np.int64)))

    def take(self, name: str, keep: npt.NDArray[np.bool_] | None = None, *, type_: type | None = None) -> Any:
        """Join a column and forget its pieces; empty when nothing was added.

        Args:
            name: Of the column.
            keep: Which numbers stay.
            type_: Type of the result; by default the widest among the pieces.
        """
        pieces = self._pieces.pop(name, [])
        if not pieces:
            return np.empty(0, dtype=type_ or np.int64)
        widest = np.dtype(type_) if type_ is not None else max((p.dtype for p in pieces), key=lambda d: d.itemsize)
        size = sum(p.size for p in pieces)
        joined = np.empty(size, dtype=widest)
        position = 0
        pieces.reverse()
        while pieces:  # a piece is let go as soon as it is copied, so that memory holds a column once
            piece = pieces.pop()
            joined[position : position + piece.size] = piece
            position += piece.size
        return joined if keep is None else joined[keep]

    def peek(self, name: str) -> list[npt.NDArray[Any]]:
        """The pieces so far."""
        return self._pieces.get(name, [])


def narrow(values: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """The same numbers in the narrowest type that holds them."""
    if not values.size:
        return values
    low, high = int(values.min()), int(values.max())
    for kind, lowest, highest in _TYPES:
        if lowest <= low and high <= highest:
            return values.astype(kind)
    return values
