"""Reads a Kineto or Chrome trace into columns, streaming: memory holds the columns and a few blocks of text."""

from pathlib import Path
from typing import Any

import msgspec

from gptscope.profiling.trace.columns import ColumnBuilder
from gptscope.profiling.trace.health import HealthReport
from gptscope.profiling.trace.source import read_blocks
from gptscope.profiling.trace.split import EventStream
from gptscope.profiling.trace.table import TraceTable


def read_kineto(path: Path | str) -> TraceTable:
    """Read a trace, gzipped or plain, whatever its name.

    A damaged trace is read as far as it goes; `TraceTable.health` says what was mended, put aside or is missing.

    Raises:
        TraceError: The file is missing, unreadable, or no trace; the message says what it seems to be.
    """
    path = Path(path)
    health = HealthReport()
    stream = EventStream(read_blocks(path, health), path.name, health)
    builder = ColumnBuilder(health)
    for text, events in stream:
        builder.add(events, text)
    return builder.build(_metadata(stream.head, stream.tail, health))


def _metadata(head: bytes, tail: bytes, health: HealthReport) -> dict[str, Any]:
    """What stands around the list of events: the text before and after it, put together without the events."""
    if head.strip() == b"[":
        return {}
    text = head + b"]" + tail
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        if not any(note.kind == "truncated" for note in health.notes()):
            health.add("metadata", f"the part around the events is not valid JSON ({error})")
        return {}
    if not isinstance(value, dict):
        return {}
    return {key: item for key, item in value.items() if key != "traceEvents"}
