"""The fields of a trace event that are used, decoded by msgspec; everything else in an event is skipped over."""

from typing import Any

import msgspec

Number = int | float | str | None
"""Times as tools write them: numbers, or numbers in quotes."""


class Args(msgspec.Struct, gc=False):
    """What Kineto writes into `args`. Old traces spell some keys in lower case."""

    external_id: int = msgspec.field(name="External id", default=0)
    old_external_id: int = msgspec.field(name="external id", default=0)
    correlation: int = 0
    sequence: int = msgspec.field(name="Sequence number", default=-1)
    forward_thread: int = msgspec.field(name="Fwd thread id", default=-1)
    device: int = -1
    stream: int = -1
    moved_bytes: int = msgspec.field(name="bytes", default=-1)
    collective: str | None = msgspec.field(name="Collective name", default=None)
    memory_bytes: int = msgspec.field(name="Bytes", default=0)
    allocated: int = msgspec.field(name="Total Allocated", default=-1)
    reserved: int = msgspec.field(name="Total Reserved", default=-1)
    device_type: int = msgspec.field(name="Device Type", default=-1)
    device_id: int = msgspec.field(name="Device Id", default=-1)
    name: Any = None
    sort_index: Any = None
    labels: Any = None
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
    id: Any = None
    args: Args | None = None


class EventTimes(msgspec.Struct, gc=False):
    """Times as they are written, for those that a double cannot hold to the nanosecond."""

    ts: msgspec.Raw = msgspec.Raw()
    dur: msgspec.Raw = msgspec.Raw()


class EventArgs(msgspec.Struct):
    """All arguments of an event, for those that are shown or that only few events have."""

    ph: Any = ""
    name: Any = ""
    args: Any = None


class LooseEvent(msgspec.Struct, gc=False):
    """An event whose fields may be of any type."""

    ph: Any = ""
    name: Any = ""
    cat: Any = ""
    ts: Any = None
    dur: Any = None
    pid: Any = None
    tid: Any = None
    id: Any = None
    args: msgspec.Raw = msgspec.Raw()


class LooseArgs(msgspec.Struct, gc=False):
    """`Args` whose values may be of any type."""

    external_id: Any = msgspec.field(name="External id", default=None)
    old_external_id: Any = msgspec.field(name="external id", default=None)
    correlation: Any = None
    sequence: Any = msgspec.field(name="Sequence number", default=None)
    forward_thread: Any = msgspec.field(name="Fwd thread id", default=None)
    device: Any = None
    stream: Any = None
    moved_bytes: Any = msgspec.field(name="bytes", default=None)
    collective: Any = msgspec.field(name="Collective name", default=None)
    memory_bytes: Any = msgspec.field(name="Bytes", default=None)
    allocated: Any = msgspec.field(name="Total Allocated", default=None)
    reserved: Any = msgspec.field(name="Total Reserved", default=None)
    device_type: Any = msgspec.field(name="Device Type", default=None)
    device_id: Any = msgspec.field(name="Device Id", default=None)
    name: Any = None
    sort_index: Any = None
    labels: Any = None
    shapes: msgspec.Raw = msgspec.field(name="Input Dims", default=msgspec.Raw())
    types: msgspec.Raw = msgspec.field(name="Input type", default=msgspec.Raw())
    values: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=msgspec.Raw())


INTEGER_ARGS: dict[str, int] = {
    "external_id": 0,
    "old_external_id": 0,
    "correlation": 0,
    "sequence": -1,
    "forward_thread": -1,
    "device": -1,
    "stream": -1,
    "moved_bytes": -1,
    "memory_bytes": 0,
    "allocated": -1,
    "reserved": -1,
    "device_type": -1,
    "device_id": -1,
}
"""Fields of `Args` that are whole numbers, with what stands for a missing one."""
TEXT_ARGS = ("shapes", "types", "values")

BROKEN = (msgspec.DecodeError, RecursionError)
"""What decoding raises for text that is not good JSON of the wanted kind, or nested beyond all measure."""

decode_events = msgspec.json.Decoder(list[Event]).decode
decode_loose_events = msgspec.json.Decoder(list[LooseEvent]).decode
decode_times = msgspec.json.Decoder(list[EventTimes]).decode
decode_args = msgspec.json.Decoder(list[EventArgs]).decode
decode_loose_event = msgspec.json.Decoder(LooseEvent).decode
decode_one_times = msgspec.json.Decoder(EventTimes).decode
decode_one_args = msgspec.json.Decoder(EventArgs).decode
decode_loose_args = msgspec.json.Decoder(LooseArgs).decode


def written(time: msgspec.Raw) -> str | None:
    """A time as it stands in the file, None when there is none."""
    return bytes(time).decode("ascii", "replace") or None
