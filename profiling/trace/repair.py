"""The slow path: one event after another, for a piece of a trace that does not decode as a whole.

Finds each event's extent by its brackets, mends what is broken inside it, and reports where.
"""

import contextlib
import json
import re
from dataclasses import dataclass
from typing import Any

import msgspec

from gptscope.profiling.trace.events import (
    BROKEN,
    Event,
    LooseEvent,
    decode_loose_event,
    decode_one_args,
    decode_one_times,
    written,
)
from gptscope.profiling.trace.health import HealthNote, HealthReport
from gptscope.profiling.trace.loose import usual_event

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]"]', re.DOTALL)
_SPACE = b" \t\r\n,"
_EVENT_START = re.compile(rb'\}\s*,?\s*(?P<event>\{\s*"(?:ph|cat|name|pid|tid|ts|dur|id|bp|s|args)"\s*:)')
"""The end of one object and what may be the beginning of an event."""
_MOST_STARTS = 256
_MOST_MENDED = 4
"""Of those, as many are mended on trial, which takes long."""
_NEAR = 1 << 16
"""Bytes in which the next event is looked for: garbage of megabytes would be searched again and again."""
_BAD_ESCAPE = re.compile(r'\\(?:u(?![0-9a-fA-F]{4})|(?!["\\/bfnrtu]))')
_BARE_WORD = re.compile(
    r"(?<=[:\[,])(\s*)(?:-?(?:nan|inf(?:inity)?)|N/A|NA|None|undefined)(?=\s*[,}\]])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Walk:
    """What one walk over a buffer found."""

    events: list[Event]
    consumed: int
    """Bytes that need not be seen again."""
    ended: bool
    """The list of events was closed; what follows is the trace's tail."""


def walk_events(buffer: bytes, *, last: bool, offset: int, health: HealthReport) -> Walk:
    """Decode events from the start of `buffer` (inside the list of events) until it ends.

    Args:
        buffer: Text that starts between two events.
        last: Nothing follows: an event that is not complete is reported and left out.
        offset: Of the buffer in the uncompressed file, for the report.
        health: Takes the findings.
    """
    events: list[Event] = []
    position = 0
    while True:
        position = _skip(buffer, position)
        if position >= len(buffer):
            break
        if buffer[position : position + 1] == b"]":
            return Walk(events, position + 1, ended=True)
        found = _find_event(buffer, position)
        if found is None:
            if last:
                health.add("truncated", "the file ends inside an event", byte_offset=offset + position)
                position = len(buffer)
            break
        if found.readable is None:
            health.add("skipped", "an event is not valid JSON", byte_offset=offset + position)
        else:
            health.absorb(msgspec.structs.replace(note, byte_offset=offset + position) for note in found.notes)
            events.append(_usual(*found.readable, offset + position, health))
        position = found.end
    return Walk(events, min(position, len(buffer)), ended=False)


def place_of_event(text: bytes, number: int) -> int:
    """Where an event begins in the text of a list of events."""
    position = _skip(text, 1)
    for _ in range(number):
        position = _skip(text, _extent(text, position) or len(text))
    return position


Readable = tuple[LooseEvent, bytes]
"""An event, and the text that it was read from: mended where it had to be."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What stands at one place of the list of events."""

    end: int
    """Where to read on."""
    readable: Readable | None
    """None: it is broken beyond mending."""
    notes: list[HealthNote]
    """What was mended."""


def _find_event(buffer: bytes, position: int) -> _Found | None:
    """The event that begins at a place; None when its end is not in the buffer.

    An event ends where its brackets close, but a stray quote or bracket may hide that. So where another event can be
    read, the one before has ended, whatever its brackets say.
    """
    start = _EVENT_START.search(buffer, position + 1, position + _NEAR)
    if start is not None:
        found = _read(buffer, position, start.start() + 1)
        if found.readable is not None:
            return found
    for number in range(_MOST_STARTS):
        if start is None:
            break
        following = _EVENT_START.search(buffer, start.end(), start.end() + _NEAR)
        if _is_event(buffer, start.start("event"), following, mending=number < _MOST_MENDED):
            end = _extent(buffer[position : start.start() + 1], 0)
            found = _read(buffer, position, position + end if end is not None else start.start() + 1)
            return found if found.readable is not None else _Found(start.start("event"), None, [])
        start = following
    end = _extent(buffer, position)
    return None if end is None else _read(buffer, position, end)


def _is_event(buffer: bytes, start: int, following: re.Match[bytes] | None, *, mending: bool) -> bool:
    """Whether an event stands at a place, perhaps a mended one, which ends where the following one may begin."""
    if following is None:
        end = _extent(buffer[start : start + _NEAR], 0)
        following_at = None if end is None else start + end
    else:
        following_at = following.start() + 1
    if following_at is None:
        return False
    readable = _read(buffer, start, following_at, mending=mending).readable
    return readable is not None and isinstance(readable[0].ph, str) and len(readable[0].ph) == 1


def _read(buffer: bytes, start: int, end: int, *, mending: bool = True) -> _Found:
    """What some text says as an event, mended where that helps."""
    text = buffer[start:end]
    with contextlib.suppress(*BROKEN):  # also where a number is larger than any double
        return _Found(end, (decode_loose_event(text), text), [])
    health = HealthReport()
    mended = mend(text, 0, health) if mending else None
    if mended is not None:
        with contextlib.suppress(*BROKEN):  # it is no object
            return _Found(end, (decode_loose_event(mended), mended), health.notes())
    return _Found(end, None, [])


def _skip(buffer: bytes, position: int) -> int:
    while position < len(buffer) and buffer[position] in _SPACE:
        position += 1
    return position


def _extent(buffer: bytes, start: int) -> int | None:
    """End of the value that starts at `start`; None when its closing bracket is not in the buffer."""
    depth = 0
    for token in _TOKEN.finditer(buffer, start):
        first = buffer[token.start()]
        if token.group() == b'"':  # a text that does not end in this buffer
            return None
        if first in b"{[":
            depth += 1
        elif first in b"}]":
            depth -= 1
            if depth < 0 and first == ord("]"):
                return token.start()  # it closes the list of events; what lies before it is no event
            if depth <= 0:
                return token.end()
    return None


def _usual(loose: LooseEvent, text: bytes, offset: int, health: HealthReport) -> Event:
    event = usual_event(loose, offset, health)
    times = decode_one_times(text)  # as they are written: a double does not hold all of them
    for field in ("ts", "dur"):
        if isinstance(getattr(event, field), int | float):
            setattr(event, field, written(getattr(times, field)))
    return event


def args_one_by_one(buffer: bytes) -> list[Any]:
    """Arguments of the events that `walk_events` finds in a buffer, in its order."""
    found: list[Any] = []
    position = 0
    while (position := _skip(buffer, position)) < len(buffer) and buffer[position : position + 1] != b"]":
        event = _find_event(buffer, position)
        if event is None:
            break
        if event.readable is not None:
            found.append(_args_of(event.readable[1]))
        position = event.end
    return found


def _args_of(text: bytes) -> Any:
    """Arguments of one event, mended where they are broken in fields that reading the trace skips over."""
    try:
        return decode_one_args(text).args
    except BROKEN:
        mended = mend(text, 0, HealthReport())
    try:
        return None if mended is None else decode_one_args(mended).args
    except BROKEN:
        return None


def mend(text: bytes, offset: int, health: HealthReport) -> bytes | None:
    """Valid JSON for one broken value, or None."""
    readable = text.decode("utf-8", errors="replace")
    if "\ufffd" in readable and b"\xef\xbf\xbd" not in text:
        health.add("repaired", "text is not valid UTF-8", byte_offset=offset)
    try:
        value = json.loads(readable, strict=False)
        if any(ord(character) < 32 for character in readable.replace("\n", "").replace("\t", "").replace("\r", "")):
            health.add("repaired", "a control character stands inside a text", byte_offset=offset)
    except (ValueError, RecursionError):
        escaped = _BAD_ESCAPE.sub(lambda match: "\\" + match.group(0), readable)
        if escaped != readable:
            health.add("repaired", "a backslash does not start a valid escape", byte_offset=offset)
        numbered = _BARE_WORD.sub(r"\1null", escaped)
        if numbered != escaped:
            health.add("repaired", "a number is nan, inf or N/A", byte_offset=offset)
        try:
            value = json.loads(numbered, strict=False)
        except (ValueError, RecursionError):
            return None
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        health.add("repaired", "half of a surrogate pair stands for no character", byte_offset=offset)
        return msgspec.json.encode(_whole_characters(value))
    except (RecursionError, ValueError):
        return None


def _whole_characters(value: Any) -> Any:
    """The same value with a question mark for every half of a surrogate pair."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_whole_characters(one) for one in value]
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(one) for key, one in value.items()}
    return value
