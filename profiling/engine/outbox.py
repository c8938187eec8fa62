"""Ordered frames towards the client, written by a thread, so that a slow client never stops the engine's loop."""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import BinaryIO

from gptscope.profiling import channel
from gptscope.profiling.records import Record

HIGH_WATER_BYTES = 8 << 20
_JOIN_BYTES = 1 << 20


class Outbox:
    """Everything the engine says, in the order it is said.

    `put` never waits, `send` and `send_frame` wait while more than `HIGH_WATER_BYTES` are unwritten, which stops the
    reading of workers and so, at last, the workers: memory stays bounded.
    """

    def __init__(self, stream: BinaryIO, on_broken: Callable[[], None]) -> None:
        """Start the writing thread.

        Args:
            stream: Where frames go.
            on_broken: Called once in the loop when the client no longer reads.
        """
        self._stream = stream
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._unwritten = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._broken = False
        self._ended = asyncio.Event()
        threading.Thread(target=self._write_all, name="outbox", daemon=True).start()

    def put(self, record: Record, payload: bytes = b"") -> None:
        """Queue one record without waiting."""
        self._queue_bytes(channel.encode(record, payload))

    async def send(self, record: Record, payload: bytes = b"") -> None:
        """Queue one record, then wait for room."""
        self.put(record, payload)
        await self._has_room.wait()

    async def send_frame(self, header: bytes, payload: bytes) -> None:
        """Queue one frame as a worker sent it, then wait for room."""
        self._queue_bytes(channel.frame(header, payload))
        await self._has_room.wait()

    async def close(self, patience_s: float) -> None:
        """Write what is queued, for at most `patience_s`."""
        self._queue.put(None)
        try:
            await asyncio.wait_for(self._ended.wait(), patience_s)
        except TimeoutError:
            return

    def _queue_bytes(self, data: bytes) -> None:
        if self._broken:
            return
        self._unwritten += len(data)
        if self._unwritten > HIGH_WATER_BYTES:
            self._has_room.clear()
        self._queue.put(data)

    def _write_all(self) -> None:
        last = False
        while not last:
            pieces, size = [], 0
            item = self._queue.get()
            while item is not None:
                pieces.append(item)
                size += len(item)
                if size >= _JOIN_BYTES or self._queue.empty():
                    break
                item = self._queue.get()
            last = item is None
            try:
                self._stream.write(b"".join(pieces))
                self._stream.flush()
            except (OSError, ValueError):
                self._tell_loop(self._break)
                break
            self._tell_loop(self._wrote, size)
        self._tell_loop(self._ended.set)

    def _tell_loop(self, function: Callable[..., None], *arguments: int) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop has ended before us
            return

    def _wrote(self, size: int) -> None:
        self._unwritten -= size
        if self._unwritten <= HIGH_WATER_BYTES:
            self._has_room.set()

    def _break(self) -> None:
        self._broken = True
        self._has_room.set()
        self._on_broken()
