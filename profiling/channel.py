"""Frames over a pair of pipes: magic, header length, payload length, JSON header, raw payload.

The same bytes go between worker, engine and client, locally or through `ssh`. A reader looks for the magic, so a login
shell or a library that prints into the stream costs nothing but the bytes it printed.

A header is one message of `gptscope.profiling.records` as JSON. JSON has no NaN and no infinity, but losses of a
broken precision are exactly that, so these three are written as the texts `nan`, `inf` and `-inf` and read back.
"""

import contextlib
import functools
import math
import os
import struct
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from gptscope.profiling.records import Command, Message, WorkerRecord

MAGIC = b"GSF1"
MAX_PAYLOAD_BYTES = 1 << 20
MAX_HEADER_BYTES = 8 << 20
READ_BYTES = 1 << 18
NOISE_BYTES = 4096
_LENGTHS = struct.Struct("<II")
_PREFIX_BYTES = len(MAGIC) + _LENGTHS.size

Frame = tuple[bytes, bytes]
"""Header (JSON) and payload."""

_encoder = msgspec.json.Encoder()


@functools.cache
def _decoder(kind: Any, *, strict: bool) -> "msgspec.json.Decoder[Any]":
    """Made when first needed, for it takes a while; a lenient one turns the texts nan, inf and -inf into floats."""
    return msgspec.json.Decoder(kind, strict=strict)


class ChannelError(ValueError):
    """A frame that cannot be sent, or whose header this version of gptscope cannot read."""


def _plain(value: Any) -> Any:
    """Builtin values with what JSON cannot hold replaced: infinities and NaN by name, lone surrogates by code."""
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def encode_header(message: Message) -> bytes:
    """One message as JSON. Non-finite numbers survive; see the module's text."""
    try:
        header = _encoder.encode(message)
    except UnicodeEncodeError:  # a file name that is not UTF-8
        return _encoder.encode(_plain(msgspec.to_builtins(message)))
    if b"null" in header:  # None, or a number that msgspec cannot write
        return _encoder.encode(_plain(msgspec.to_builtins(message)))
    return header


def decode_record(header: bytes) -> WorkerRecord:
    """The record in a header.

    Raises:
        ChannelError: The header is no record that this version knows.
    """
    record: WorkerRecord = _decode(header, WorkerRecord, "record")
    return record


def decode_command(header: bytes) -> Command:
    """The command in a header.

    Raises:
        ChannelError: The header is no command that this version knows, or asks for something impossible.
    """
    command: Command = _decode(header, Command, "command")
    return command


def _decode(header: bytes, kind: Any, what: str) -> Any:
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        return _decoder(kind, strict=True).decode(header)
    try:
        return _decoder(kind, strict=False).decode(header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ChannelError(_unreadable(what, header, error)) from error


def _unreadable(what: str, header: bytes, error: Exception) -> str:
    start = header[:80].decode("utf-8", "replace")
    return f"This {what} cannot be read ({error}). Both sides need the same version of gptscope. It begins: {start}"


def frame(header: bytes, payload: bytes = b"") -> bytes:
    """The bytes of one frame.

    Raises:
        ChannelError: Header or payload is larger than a reader accepts; send bulk data in pieces.
    """
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise ChannelError(f"A payload of {len(payload)} bytes does not fit into one frame of {MAX_PAYLOAD_BYTES}.")
    if len(header) > MAX_HEADER_BYTES:
        raise ChannelError(f"A header of {len(header)} bytes does not fit into one frame of {MAX_HEADER_BYTES}.")
    return b"".join((MAGIC, _LENGTHS.pack(len(header), len(payload)), header, payload))


def encode(message: Message, payload: bytes = b"") -> bytes:
    """The frame of one message with an optional payload of at most `MAX_PAYLOAD_BYTES`."""
    return frame(encode_header(message), payload)


class FrameReader:
    """Turns bytes, however they are cut, into frames; skips what is no frame.

    Holds at most one unfinished frame plus what was fed last. A false magic (no sane lengths, no JSON object behind it)
    costs four bytes of progress, so nothing loops and a real frame inside the mistaken one is still found.

    Attributes:
        dropped_bytes: How many bytes were no part of a frame.
        noise: The last of those bytes, for messages (what a shell printed before it failed).
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.dropped_bytes = 0
        self.noise = b""

    @property
    def waiting_bytes(self) -> int:
        """Bytes kept for a frame that is not complete."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[Frame]:
        """Take the next bytes of the stream; return the frames they complete, in order."""
        buffer = self._buffer
        buffer += data
        frames: list[Frame] = []
        position = 0  # everything before it is used up
        while True:
            found = buffer.find(MAGIC, position)
            if found < 0:
                keep = _partial_magic(buffer, position)
                self._drop(position, len(buffer) - keep)
                position = len(buffer) - keep
                break
            self._drop(position, found)
            position = found
            end = self._frame_end(position)
            if end is None:
                break
            if end < 0:
                self._drop(position, position + len(MAGIC))
                position += len(MAGIC)
                continue
            frames.append(self._cut(position, end))
            position = end
        del buffer[:position]
        return frames

    def _frame_end(self, start: int) -> int | None:
        """Where the frame at `start` ends; None: not all there yet; -1: it is no frame."""
        buffer = self._buffer
        if len(buffer) < start + _PREFIX_BYTES:
            return None
        header_bytes, payload_bytes = _LENGTHS.unpack_from(buffer, start + len(MAGIC))
        if not 2 <= header_bytes <= MAX_HEADER_BYTES or payload_bytes > MAX_PAYLOAD_BYTES:
            return -1
        header_start = start + _PREFIX_BYTES
        header_end = header_start + header_bytes
        if len(buffer) > header_start and buffer[header_start] != ord("{"):
            return -1
        if len(buffer) >= header_end and buffer[header_end - 1] != ord("}"):
            return -1
        end: int = header_end + payload_bytes
        return end if len(buffer) >= end else None

    def _cut(self, start: int, end: int) -> Frame:
        header_bytes, _ = _LENGTHS.unpack_from(self._buffer, start + len(MAGIC))
        header_start = start + _PREFIX_BYTES
        with memoryview(self._buffer) as view:
            return bytes(view[header_start : header_start + header_bytes]), bytes(
                view[header_start + header_bytes : end]
            )

    def _drop(self, start: int, end: int) -> None:
        if end > start:
            self.dropped_bytes += end - start
            tail = bytes(self._buffer[max(start, end - NOISE_BYTES) : end])
            self.noise = (self.noise + tail)[-NOISE_BYTES:]


def _partial_magic(buffer: bytearray, start: int) -> int:
    """How many bytes at the end of `buffer`, not before `start`, could be the beginning of a magic."""
    for length in range(min(len(MAGIC) - 1, len(buffer) - start), 0, -1):
        if buffer.endswith(MAGIC[:length]):
            return length
    return 0


class FrameWriter:
    """Sends messages over a binary stream, each at once and whole; any thread may send."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, message: Message, payload: bytes = b"") -> None:
        """Write one frame and flush it.

        Raises:
            ChannelError: The frame is too large.
            OSError: The other side is gone.
        """
        data = encode(message, payload)
        with self._lock:
            self._stream.write(data)
            self._stream.flush()


def read_frames(descriptor: int) -> Iterator[Frame]:
    """Frames from a file descriptor, waiting for each; ends when the other side closes it."""
    reader = FrameReader()
    while data := os.read(descriptor, READ_BYTES):
        yield from reader.feed(data)
