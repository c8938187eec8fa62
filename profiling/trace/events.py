"""The fields of a trace event that are used, decoded by msgspec; everything else in an event is skipped over."""

from typing import Any

import msgspec

Number = int | float | str | None
"""Times and ids as tools write them: numbers, or numbers in quotes."""


class Args(msgspec.Struct, gc=False):
    """What Kineto writes into `args`. Old traces spell some keys in lower case."""

    external_id: Any = msgspec.field(name="External id", default=None)
    old_external_id: Any = msgspec.field(name="external id", default=None)
    correlation: Any = None
    sequence: Any = msgspec.field(name="Sequence number", default=None)
    forward_thread: Any = msgspec.field(name="Fwd thread id", default=None)
    device: Any = None
    stream: Any = None
    moved_bytes: Any = msgspec.field(name="bytes", default=None)
    shapes: msgspec.Raw = msgspec.field(name="Input Dims", default=msgspec.Raw())
    types: msgspec.Raw = msgspec.field(name="Input type", default=msgspec.Raw())
    values: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=msgspec.Raw())


class Event(msgspec.Struct, gc=False):
    """One event. Times are in microseconds."""

    ph: str = ""
    name: str = ""
    cat: str = ""
    ts: Number = None
    dur: Number = None
    pid: Any = None
    tid: Any = None
    args: Args | None = None


class EventWithDigits(Event, gc=False):
    """The same with times as they are written, for times that a double cannot hold to the nanosecond."""

    ts: msgspec.Raw = msgspec.Raw()  # type: ignore[assignment]
    dur: msgspec.Raw = msgspec.Raw()  # type: ignore[assignment]


class BareEvent(msgspec.Struct, gc=False):
    """An event whose `args` are not an object, or hold something unusable."""

    ph: Any = ""
    name: Any = ""
    cat: Any = ""
    ts: Any = None
    dur: Any = None
    pid: Any = None
    tid: Any = None


decode_events = msgspec.json.Decoder(list[Event]).decode
decode_digits = msgspec.json.Decoder(list[EventWithDigits]).decode
_decode_one = msgspec.json.Decoder(EventWithDigits).decode
decode_bare = msgspec.json.Decoder(BareEvent).decode


def written(time: msgspec.Raw) -> str | None:
    """A time as it stands in the file, None when there is none."""
    return bytes(time).decode("ascii", "replace") or None


def decode_event(text: bytes) -> Event:
    """One event by itself, with its times as they are written."""
    one = _decode_one(text)
    return Event(
        ph=one.ph,
        name=one.name,
        cat=one.cat,
        ts=written(one.ts),
        dur=written(one.dur),
        pid=one.pid,
        tid=one.tid,
        args=one.args,
    )


def event_from_bare(bare: BareEvent) -> Event:
    """An event without args; values of the wrong kind become text or nothing."""
    times = [value if isinstance(value, int | float | str) else None for value in (bare.ts, bare.dur)]
    name = bare.name if isinstance(bare.name, str) else str(bare.name)
    return Event(
        ph=bare.ph if isinstance(bare.ph, str) else "",
        name=name,
        cat=bare.cat if isinstance(bare.cat, str) else "",
        ts=times[0],
        dur=times[1],
        pid=bare.pid,
        tid=bare.tid,
    )
