"""What was wrong with a trace, so that nothing is dropped or mended silently."""

from collections.abc import Callable, Iterable
from copy import copy
from typing import Literal

import msgspec

HealthKind = Literal[
    "truncated",  # the file ends before the trace does
    "repaired",  # broken JSON, mended
    "skipped",  # broken beyond mending, left out
    "put_aside",  # outside the trace's time, left out
    "unfinished",  # no usable duration: drawn to the end, kept out of sums
    "ignored",  # a kind of event this reader does not use
    "metadata",  # the part around the events could not be read
    "empty",
    "missing",  # not recorded, so some tables cannot be made
    "suspicious",  # recorded, but hardly true
]


class TraceError(ValueError):
    """The file is no trace, or cannot be read; the message says what it seems to be and what to do."""


class HealthNote(msgspec.Struct, kw_only=True):
    """One kind of finding, with how often and where first."""

    kind: HealthKind
    message: str
    count: int = 1
    byte_offset: int | None = None
    """Of the first one, in the uncompressed text."""


class HealthReport:
    """Collects findings; equal ones are counted together."""

    def __init__(self) -> None:
        self._notes: dict[tuple[str, str], HealthNote] = {}

    def add(
        self, kind: HealthKind, message: str, *, count: int = 1, byte_offset: int | Callable[[], int] | None = None
    ) -> None:
        """Note a finding; where it lies may be a function, which is only asked for the first one."""
        known = self._notes.get((kind, message))
        if known is None:
            where = byte_offset() if callable(byte_offset) else byte_offset
            self._notes[kind, message] = HealthNote(kind=kind, message=message, count=count, byte_offset=where)
        else:
            known.count += count

    def absorb(self, later: Iterable[HealthNote]) -> None:
        """Add the findings of another report, which come after all of these."""
        for note in later:
            self.add(note.kind, note.message, count=note.count, byte_offset=note.byte_offset)

    def notes(self) -> list[HealthNote]:
        """All findings so far in the order in which they first came."""
        return [copy(note) for note in self._notes.values()]
