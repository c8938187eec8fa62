"""Cuts the text of a trace into what stands before its events, pieces of whole events, and what stands after them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import msgspec

from gptscope.profiling.trace.events import BROKEN, Event, decode_events, decode_loose_events
from gptscope.profiling.trace.health import HealthReport, TraceError
from gptscope.profiling.trace.loose import usual_event
from gptscope.profiling.trace.repair import place_of_event, walk_events

EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_HEAD_LIMIT = 16 << 20
_REST_LIMIT = 16 << 20
"""An event larger than this is no event."""
_TAIL_LIMIT = 16 << 20
_CLOSING_TRIES = 64
_BOUNDARY_TRIES = 4096
"""Braces looked at from the end of a block; objects nested deeper wait for the next block."""
_BETWEEN = b" \t\r\n,"
"""What may stand between two events."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some whole events, one after another."""

    events: list[Event]
    text: bytes
    """What they were decoded from, as a JSON list; empty when they were decoded one by one."""
    offset: int
    """Where they stand in the uncompressed text of the file."""
    size: int
    raw: bytes = b""
    """The text itself where events were decoded one by one."""


class EventStream:
    """Iterates over the pieces of a trace; afterwards `head` and `tail` hold the text around the events.

    Memory stays at a few blocks: pieces are cut where one event ends and the next begins (`}`, `,`, `{`), so each
    decodes by itself. A piece that does not decode is walked event by event.

    Args:
        blocks: The text.
        name: Of the file, for messages.
        health: Where to note what was mended.
        start: The text begins with an event of the list, at this offset of the file; None: with what stands before it.
    """

    def __init__(self, blocks: Iterable[bytes], name: str, health: HealthReport, start: int | None = None) -> None:
        self._blocks = iter(blocks)
        self._name, self._health = name, health
        self._inside = start is not None
        self.ended = False
        """The list of events was closed."""
        self.offset = start or 0
        """Where what was not yet decoded begins in the uncompressed text."""
        self.head, self.tail = b"", b""
        self._tail_cut = False
        self.tail_offset = 0
        """Where the tail begins in the uncompressed text."""

    def resumed(self, blocks: Iterable[bytes], offset: int, *, ended: bool) -> "EventStream":
        """A stream that goes on from a place where an event begins, or where the list of events has ended."""
        stream = EventStream(blocks, self._name, self._health, offset)
        stream.head, stream.ended = self.head, ended
        return stream

    def __iter__(self) -> Iterator[Piece]:
        rest = b"" if self._inside else self._find_events()
        enough = 0
        for fresh in self._blocks:
            if self.ended:
                self._keep_tail(fresh)
                continue
            if len(rest) + len(fresh) < enough:
                rest += fresh
                continue
            block = fresh
            cut = _last_boundary(block)
            if cut is None:  # what an event needs to end may lie in the text before
                block, rest = rest + block, b""
                cut = _last_boundary(block)
            if cut is None:
                if len(block) <= _REST_LIMIT:
                    rest = block
                    continue
                cut = len(block)  # a long tail, or one event after another without a comma: look at each
            piece, unread = self._decode(rest, block, cut)
            rest = self._after(unread + block[cut:])
            # Looking at a long unfinished event again with every block would take quadratic time.
            enough = 0 if piece.events else min(2 * len(rest), _REST_LIMIT)
            if len(rest) > _REST_LIMIT:
                raise TraceError(f"{self._name} holds an event of more than {_REST_LIMIT >> 20} MiB; it is not opened.")
            if piece.events:
                yield piece
        if not self.ended:
            yield self._decode_last(rest)

    def _after(self, text: bytes) -> bytes:
        """What the next piece begins with; once the list of events has ended, all text is tail."""
        if not self.ended:
            return text
        self._keep_tail(text)
        return b""

    def _find_events(self) -> bytes:
        """Read until the list of events begins; return what was read of it."""
        text = b""
        for block in self._blocks:
            text += block
            stripped = text.lstrip()
            if stripped.startswith(b"["):
                inside = stripped[1:].lstrip()
                if inside and not inside.startswith((b"{", b"]")):
                    raise TraceError(_refusal(self._name, text))
                start = text.index(b"[") + 1
                self.head, self.offset = text[:start], start
                return text[start:]
            if stripped and not stripped.startswith(b"{"):
                raise TraceError(_refusal(self._name, text))
            found = EVENTS_KEY.search(text)
            if found is not None:
                self.head, self.offset = text[: found.end()], found.end()
                return text[found.end() :]
            if len(text) > _HEAD_LIMIT:
                break
        for note in self._health.notes():
            if note.kind == "truncated":
                raise TraceError(f"{self._name} cannot be opened: {note.message}, before any event.")
        raise TraceError(_refusal(self._name, text))

    def _decode(self, rest: bytes, block: bytes, cut: int) -> tuple[Piece, bytes]:
        """The events of `rest` and the first `cut` bytes of `block`, and what of it has to wait for more text."""
        offset = self.offset
        end = cut
        while end and block[end - 1] in _BETWEEN:
            end -= 1
        text = b"".join((b"[", rest, memoryview(block)[:end], b"]"))  # copied once: it is most of the file
        try:
            events = self._decode_whole(text)
        except BROKEN:
            piece = rest + block[:cut]
            walk = walk_events(piece, last=False, offset=offset, health=self._health)
            self.ended = walk.ended
            self.offset += walk.consumed
            return Piece(walk.events, b"", offset, walk.consumed, piece), piece[walk.consumed :]
        size = len(rest) + cut
        self.offset += size
        return Piece(events, text, offset, size), b""

    def _decode_whole(self, text: bytes) -> list[Event]:
        """Events of a list that is good JSON; `DecodeError` when it is not, or not of objects."""
        try:
            return decode_events(text)
        except msgspec.ValidationError:
            place = partial(self._place, text)
            return [
                usual_event(loose, partial(place, number), self._health)
                for number, loose in enumerate(decode_loose_events(text))
            ]

    def _place(self, text: bytes, number: int) -> int:
        """Where an event of the list that is decoded now begins in the file."""
        return self.offset - 1 + place_of_event(text, number)  # the list's bracket is not in the file

    def _decode_last(self, rest: bytes) -> Piece:
        """The events before the end of the file; the list's closing bracket is in here, or nowhere."""
        offset = self.offset
        position = len(rest)
        for _ in range(_CLOSING_TRIES):
            position = rest.rfind(b"]", 0, position)
            if position < 0:
                break
            text = b"[" + rest[:position].strip(_BETWEEN) + b"]"
            try:
                # Only the list's own closing bracket makes what lies before it a valid list of events.
                events = self._decode_whole(text)
            except BROKEN:
                continue
            self.ended = True
            self.tail, self.tail_offset = rest[position + 1 :], offset + position + 1
            return Piece(events, text, offset, position)
        walk = walk_events(rest, last=True, offset=offset, health=self._health)
        self.ended = walk.ended
        self.tail, self.tail_offset = rest[walk.consumed :], offset + walk.consumed
        if not walk.ended:
            where = offset + len(rest)
            self._health.add("truncated", "the list of events is not closed", byte_offset=where)
        return Piece(walk.events, b"", offset, walk.consumed, rest)

    def _keep_tail(self, text: bytes) -> None:
        if not self.tail:
            self.tail_offset = self.offset
        room = _TAIL_LIMIT - len(self.tail)
        self.tail += text[:room]
        if len(text) > room and not self._tail_cut:
            self._tail_cut = True
            self._health.add("metadata", f"only {_TAIL_LIMIT >> 20} MiB after the events were read")


def _last_boundary(text: bytes) -> int | None:
    """Position of the last `{` that follows a `}` and a comma."""
    position = len(text)
    for _ in range(_BOUNDARY_TRIES):
        position = text.rfind(b"{", 0, position)
        if position <= 0:
            return None
        before = text[max(0, position - 4096) : position].rstrip()
        if before.endswith(b",") and before[:-1].rstrip().endswith(b"}"):
            return position
    return None


def _refusal(name: str, text: bytes) -> str:
    """Say what a file that holds no events seems to be."""
    start = text[:65536].lstrip()
    if not start:
        return f"{name} is empty, so it is not a trace."
    for mark, packer in _PACKERS.items():
        if text.startswith(mark):
            return f"{name} is packed with {packer}, which is not read here; unpack it first."
    for mark, what in _OTHER_STARTS.items():
        if start.startswith(mark):
            return f"{name} is {what}, not a Kineto or Chrome trace."
    if not start.startswith((b"[", b"{")):
        return f"{name} is not JSON, so it is not a Kineto or Chrome trace."
    for mark, what in _OTHER_KINDS.items():
        if mark in start:
            return f"{name} is {what}, not a Kineto or Chrome trace."
    if start.startswith(b"["):
        return f"{name} is a list, but not of trace events."
    where = f" in its first {_HEAD_LIMIT >> 20} MiB" if len(text) > _HEAD_LIMIT else ""
    return f'{name} is JSON without "traceEvents"{where}, so it is not a Kineto or Chrome trace.'


_PACKERS: dict[bytes, str] = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"7z\xbc\xaf\x27\x1c": "7-Zip",
    b"Rar!": "RAR",
    b"\x1f\x8b": "gzip more than once",
    b"PK\x03\x04": "zip inside gzip",
}
"""First bytes -> what packs so."""
_OTHER_STARTS: dict[bytes, str] = {
    b"\xff\xfe": "UTF-16 text (save it as UTF-8)",
    b"\xfe\xff": "UTF-16 text (save it as UTF-8)",
    b"SQLite format 3": "a SQLite database, perhaps an export of Nsight Systems",
    b"\x80\x02": "a Python pickle",
    b"\x80\x03": "a Python pickle",
    b"\x80\x04": "a Python pickle, perhaps a snapshot of CUDA memory",
    b"\x80\x05": "a Python pickle",
    b"\x89PNG": "a picture",
    b"%PDF": "a PDF document",
    b"\x7fELF": "a program",
    b"<": "HTML or XML",
}
_OTHER_KINDS: dict[bytes, str] = {
    b'"rocprofiler-sdk-': "a rocprofv3 result",
    b"rocprof": "a rocprof result",
    b"-chakra": "a PyTorch execution trace (the input of Chakra)",
    b'"nodes"': "a graph of nodes, perhaps an execution trace",
}
