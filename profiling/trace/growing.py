"""Columns that grow piece by piece, in as few bytes as their numbers need, and numbers for texts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.events import Event
from gptscope.profiling.trace.health import HealthReport

MOST_NAME = 32768
"""Longer names and texts are cut: no name is so long, and a file full of them would fill the memory."""
Positions = npt.NDArray[np.int64]
"""Of events in their piece."""
_MOST_DIGITS = 18
_BLOCK = 1 << 16
"""Numbers in a block of a growing column."""
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

    def absorb(self, other: "Interner") -> npt.NDArray[np.int32]:
        """Take the values of another one; for each of its numbers the number here."""
        return self.numbers(other.values_in_order, len(other.values_in_order))


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


class TrackInterner(Interner):
    """The same for tracks; old traces write one thread's id now as a number, now as the same digits in quotes."""

    def __missing__(self, value: Any) -> int:
        usual = tuple(_as_number(one) for one in value)
        if all(a is b for a, b in zip(usual, value, strict=True)):
            return super().__missing__(value)
        number = self[value] = self[usual]
        return number


def _as_number(value: Any) -> Any:
    """Digits in quotes as the number that they are; anything else stays."""
    if isinstance(value, str) and len(value) <= _MOST_DIGITS and value.isascii() and value.isdecimal():
        return int(value) if value == "0" or value[0] != "0" else value
    return value


class _Column:
    """One growing column: large blocks, filled one after another, so that memory is not left in small holes."""

    def __init__(self) -> None:
        self.blocks: list[npt.NDArray[Any]] = []
        self.filled = 0
        """Of the last block."""

    def append(self, values: npt.NDArray[Any]) -> None:
        if not self.blocks or not np.can_cast(values.dtype, self.blocks[-1].dtype, casting="safe"):
            self._start(values.dtype)
        while values.size:
            block = self.blocks[-1]
            room = block.size - self.filled
            part = values[:room]
            block[self.filled : self.filled + part.size] = part
            self.filled += part.size
            values = values[room:]
            if values.size:
                self._start(block.dtype)

    def _start(self, kind: np.dtype[Any]) -> None:
        if self.blocks:
            self.blocks[-1] = self.blocks[-1][: self.filled]
        self.blocks.append(np.empty(_BLOCK, dtype=kind))
        self.filled = 0

    @property
    def parts(self) -> list[npt.NDArray[Any]]:
        """The blocks without their empty end."""
        return [*self.blocks[:-1], self.blocks[-1][: self.filled]] if self.blocks else []


class Columns:
    """Named columns of whole numbers, all of one length."""

    def __init__(self) -> None:
        self._columns: dict[str, _Column] = {}
        self.nbytes = 0

    def append(self, name: str, values: npt.NDArray[Any]) -> None:
        """Add numbers as they are."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = _Column()
        column.append(values)
        self.nbytes += values.nbytes

    def append_narrow(self, name: str, values: list[int], missing: int) -> None:
        """Add numbers in a narrow type; a run of missing ones costs a byte each.

        Raises:
            OverflowError: One does not fit into 64 bits.
        """
        if values.count(missing) == len(values):
            self.append(name, np.full(len(values), missing, dtype=np.int8))
            return
        try:
            self.append(name, np.array(values, dtype=np.int32))
        except OverflowError:
            self.append(name, np.array(values, dtype=np.int64))

    def take(self, name: str, keep: npt.NDArray[np.bool_] | None = None, *, type_: type | None = None) -> Any:
        """Join a column and forget it; empty when nothing was added.

        Args:
            name: Of the column.
            keep: Which numbers stay.
            type_: Type of the result; by default the widest that was added.
        """
        column = self._columns.pop(name, None)
        if column is None:
            return np.empty(0, dtype=type_ or np.int64)
        parts = column.parts
        column.blocks = []
        widest = np.dtype(type_) if type_ is not None else max((p.dtype for p in parts), key=lambda d: d.itemsize)
        joined = np.empty(sum(p.size for p in parts), dtype=widest)
        position = 0
        parts.reverse()
        while parts:  # a block is let go as soon as it is copied, so that memory holds a column once
            part = parts.pop()
            joined[position : position + part.size] = part
            position += part.size
        return joined if keep is None else joined[keep]

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def absorb(self, other: "Columns", meaning: Mapping[str, npt.NDArray[Any]], place: int) -> None:
        """Append all columns of another one, which is empty afterwards.

        Args:
            other: Read from the text that follows.
            meaning: Column -> for each of the other's numbers the number here; other columns stay as they are.
            place: What the other's `place` starts from here.
        """
        for name, part in other.drain():
            if name in meaning:
                self.append(name, meaning[name][part])
            else:
                self.append(name, part + np.uint32(place) if name == "place" else part)

    def drain(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Give away all blocks of all columns."""
        while self._columns:
            name, column = self._columns.popitem()
            for part in column.parts:
                yield name, part


def narrow(values: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """The same numbers in the narrowest type that holds them."""
    if not values.size:
        return values
    low, high = int(values.min()), int(values.max())
    for kind, lowest, highest in _TYPES:
        if lowest <= low and high <= highest:
            return values.astype(kind)
    return values


def hashable(value: Any) -> Any:
    """An id as a dictionary's key; lists and objects become text."""
    return _as_number(value) if isinstance(value, str | int | float | None) else str(value)


def track_numbers(tracks: Interner, rows: Sequence[Event]) -> npt.NDArray[np.int32]:
    """Numbers of the tracks (process and thread) of some events; often they all lie on one."""
    pids, tids = [e.pid for e in rows], [e.tid for e in rows]
    try:
        if pids.count(pids[0]) == tids.count(tids[0]) == len(rows):
            return np.full(len(rows), tracks[pids[0], tids[0]], dtype=np.int32)
        return tracks.numbers(zip(pids, tids, strict=True), len(rows))
    except TypeError:  # a list or an object where an id belongs
        return tracks.numbers(((hashable(e.pid), hashable(e.tid)) for e in rows), len(rows))


def numbers_from(first: int, count: int, places: Positions | None) -> npt.NDArray[np.uint32]:
    """Numbers in the file of some events of a piece that begins with number `first`."""
    if places is None:
        return np.arange(first, first + count, dtype=np.uint32)
    return (places + first).astype(np.uint32)
