"""Reads a Kineto or Chrome trace into columns, streaming: memory holds the columns and a few blocks of text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from gptscope.profiling.trace.columns import ColumnBuilder
from gptscope.profiling.trace.events import BROKEN
from gptscope.profiling.trace.health import HealthReport, TraceError
from gptscope.profiling.trace.own_exports import on_own_threads
from gptscope.profiling.trace.repair import mend
from gptscope.profiling.trace.second_reader import SecondHalf, SecondReader
from gptscope.profiling.trace.source import TraceText
from gptscope.profiling.trace.split import EVENTS_KEY, EventStream
from gptscope.profiling.trace.table import Trace

Progress = Callable[[int, int], None]
"""Bytes of the file that were read, and its size."""


def open_trace(path: Path | str, progress: Progress | None = None) -> Trace:
    """Read a trace, gzipped, zipped or plain, whatever its name.

    A damaged trace is read as far as it goes; `Trace.health` says what was mended, put aside or is missing.

    Args:
        path: The file.
        progress: Called between pieces with the bytes of the file that were read and its size; what it raises stops
            the reading and is passed on.

    Raises:
        TraceError: The file is missing, unreadable, or no trace; the message says what it seems to be.
    """
    path = Path(path)
    health = HealthReport()
    builder = ColumnBuilder(health)
    with TraceText(path, health) as text, SecondReader(path) as second:
        tell = _rising(progress)
        stream = EventStream(text.blocks(second.cut), path.name, health)
        half = _read(stream, text, builder, second, tell)
        if half is not None:
            builder.absorb(half.builder)
            health.absorb(half.notes)
            stream = stream.resumed(text.blocks_from(half.offset), half.offset, ended=half.ended)
            _read(stream, text, builder, second, tell)
    if set(builder.phases) == {""}:
        raise TraceError(f'{path.name} is a list of objects without "ph", so they are not trace events.')
    return on_own_threads(builder.build(_metadata(stream, health), text))


def _read(
    stream: EventStream, text: TraceText, builder: ColumnBuilder, second: SecondReader, tell: Progress
) -> SecondHalf | None:
    """Read a stream to its end, or to where another process has read what follows."""
    for piece in stream:
        builder.add(piece.events, piece.text, piece.offset, piece.size, piece.raw)
        text.check_memory(builder.nbytes)

        def waiting() -> None:
            tell(second.bytes_read(text.bytes_read, text.size), text.size)

        waiting()
        half = second.after(stream, text, waiting)
        if half is not None:
            return half
    return None


def _rising(progress: Progress | None) -> Progress:
    """Progress that never goes back: what another process read may have to be read again."""
    most = 0

    def tell(done: int, size: int) -> None:
        nonlocal most
        most = max(most, done)
        if progress is not None:
            progress(most, size)

    return tell


def _metadata(stream: EventStream, health: HealthReport) -> dict[str, Any]:
    """What stands around the list of events: the text before and after it, put together without the events."""
    others = len(EVENTS_KEY.findall(stream.tail))
    if others:
        health.add("ignored", "another list of events in the same file; only the first one is opened", count=others)
    if stream.head.strip() == b"[":
        return {}
    text = stream.head + b"]" + stream.tail
    try:
        value = msgspec.json.decode(text)
    except BROKEN as error:
        if any(note.kind == "truncated" for note in health.notes()):
            return {}
        in_tail = _valid_so_far(stream.head)
        mended = mend(text, stream.tail_offset if in_tail else 0, health)
        if mended is None:
            health.add("metadata", f"the part around the events is not valid JSON ({error})")
            mended = _closed(stream.head) if in_tail else b"{}"
        value = msgspec.json.decode(mended)
    if not isinstance(value, dict):
        return {}
    return {key: item for key, item in value.items() if key != "traceEvents"}


def _valid_so_far(head: bytes) -> bool:
    """Whether the text before the events is good JSON when the events are left out."""
    try:
        msgspec.json.decode(_closed(head))
    except BROKEN:
        return False
    return True


def _closed(head: bytes) -> bytes:
    """The text before the events as if nothing came after them."""
    return head + b"]" + b"}" * max(1, head.count(b"{") - head.count(b"}"))
