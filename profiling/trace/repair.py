"""The slow path: one event after another, for a piece of a trace that does not decode as a whole.

Finds each event's extent by its brackets, mends what is broken inside it, and reports where.
"""

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
from gptscope.profiling.trace.health import HealthReport
from gptscope.profiling.trace.loose import usual_event

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]"]', re.DOTALL)
_SPACE = b" \t\r\n,"
_EVENT_START = re.compile(rb'\}\s*,\s*(?P<event>\{\s*"(?:ph|cat|name|pid|tid|ts|dur|id|bp|s|args)"\s*:)')
_LONG = 1 << 20
"""An event longer than this is searched for a place where another one begins."""
_MOST_STARTS = 256
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
        end = _extent(buffer, position)
        if end is None and (last or len(buffer) - position > _LONG):
            end = _next_event(buffer, position, len(buffer))
        if end is None:
            if last:
                health.add("truncated", "the file ends inside an event", byte_offset=offset + position)
                position = len(buffer)
            break
        event = _decode(buffer[position:end], offset + position, health)
        if event is not None:
            events.append(event)
        position = end if event is not None else _next_event(buffer, position, end) or end
    return Walk(events, min(position, len(buffer)), ended=False)


def place_of_event(text: bytes, number: int) -> int:
    """Where an event begins in the text of a list of events."""
    position = _skip(text, 1)
    for _ in range(number):
        position = _skip(text, _extent(text, position) or len(text))
    return position


def _next_event(buffer: bytes, position: int, end: int) -> int | None:
    """Where reading can go on after an event that is broken beyond its end, such as by a stray quote.

    That is the next place before `end` where an event seems to begin and one can be read.
    """
    for number, found in enumerate(_EVENT_START.finditer(buffer, position + 1)):
        start = found.start("event")
        if start >= end or number == _MOST_STARTS:
            return None
        extent = _extent(buffer[start : start + _LONG], 0)
        if extent is not None and _is_event(buffer[start : start + extent]):
            return start
    return None


def _is_event(text: bytes) -> bool:
    try:
        phase = decode_loose_event(text).ph
    except BROKEN:
        return False
    return isinstance(phase, str) and len(phase) == 1


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


def _decode(text: bytes, offset: int, health: HealthReport) -> Event | None:
    mended = _readable(text, offset, health)
    if mended is None:
        return None
    loose, text = mended
    event = usual_event(loose, offset, health)
    times = decode_one_times(text)  # as they are written: a double does not hold all of them
    for field in ("ts", "dur"):
        if isinstance(getattr(event, field), int | float):
            setattr(event, field, written(getattr(times, field)))
    return event


def _readable(text: bytes, offset: int, health: HealthReport) -> tuple[LooseEvent, bytes] | None:
    """One event, mended when it must be, and the text that it was read from."""
    try:
        return decode_loose_event(text), text
    except BROKEN:
        pass  # also where a number is larger than any double
    mended = mend(text, offset, health)
    if mended is None:
        health.add("skipped", "an event is not valid JSON", byte_offset=offset)
        return None
    try:
        return decode_loose_event(mended), mended
    except BROKEN:
        health.add("skipped", "an event is not a JSON object", byte_offset=offset)
        return None


def args_one_by_one(buffer: bytes) -> list[Any]:
    """Arguments of the events that `walk_events` finds in a buffer, in its order."""
    unheard = HealthReport()
    found: list[Any] = []
    position = 0
    while (position := _skip(buffer, position)) < len(buffer) and buffer[position : position + 1] != b"]":
        end = _extent(buffer, position) or _next_event(buffer, position, len(buffer))
        if end is None:
            break
        readable = _readable(buffer[position:end], 0, unheard)
        if readable is not None:
            found.append(_args_of(readable[1], unheard))
        position = end if readable is not None else _next_event(buffer, position, end) or end
    return found


def _args_of(text: bytes, health: HealthReport) -> Any:
    """Arguments of one event, mended where they are broken in fields that reading the trace skips over."""
    try:
        return decode_one_args(text).args
    except BROKEN:
        mended = mend(text, 0, health)
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
