"""Reads the second half of a large plain trace on another processor while this process reads the first.

The text is cut between two events, so each half can be read by itself, and the columns of the second are appended to
those of the first. Where anything is unusual (damage, ids that are no numbers), the second half is thrown away and this
process reads on, so that what is repaired and reported does not depend on how many processes read.
"""

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from gptscope.profiling import handover
from gptscope.profiling.processes import end_with_stdin, protect_stdout
from gptscope.profiling.trace.columns import ColumnBuilder
from gptscope.profiling.trace.health import HealthNote, HealthReport
from gptscope.profiling.trace.source import BLOCK_BYTES
from gptscope.profiling.trace.split import EventStream

_WORTH_BYTES = 96 << 20
"""Smaller files are read sooner than a second process pays for itself."""
_START_BYTES = 56 << 20
"""What this process reads in the time that the other one takes to start and to hand over."""
_LOOK_BYTES = 1 << 20
_BOUNDARY = re.compile(rb"\}\s*,\s*\{")
_PIPE_BYTES = 1 << 20
_POLL_S = 0.05
_PATIENCE_S = 10.0


@dataclass(frozen=True)
class SecondHalf:
    """What the other process read."""

    builder: ColumnBuilder
    tail: bytes
    """The text after the events."""
    tail_offset: int
    notes: list[HealthNote]


def find_cut(path: Path) -> int | None:
    """Offset where the second half of a file seems to begin; None when one process reads it as fast."""
    if _processors() < 2:
        return None
    try:
        size = path.stat().st_size if path.is_file() else 0
        if size < _WORTH_BYTES:
            return None
        with path.open("rb") as file:
            if file.read(1) not in {b"{", b"["}:  # packed, or with a byte order mark
                return None
            start = file.seek((size + min(_START_BYTES, size // 4)) // 2)
            found = _BOUNDARY.search(file.read(_LOOK_BYTES))
    except OSError:  # reported where the file is read
        return None
    return None if found is None else start + found.end() - 1


def _processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class SecondReader:
    """The other process, from entering a `with` block until its half is handed over or the block is left.

    It does not run for files that are better read in one go.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.begins: int | None = None
        """Offset of the first event that it reads; None when it does not, or no longer, run."""
        self._half: SecondHalf | None = None

    def __enter__(self) -> Self:
        begins = find_cut(self.path)
        if begins is None:
            return self
        command = [sys.executable, "-P", "-c", f"from {__name__} import main; main()", str(self.path), str(begins)]
        self._started_s = time.monotonic()
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, pipesize=_PIPE_BYTES
            )
        except OSError:  # no process or memory left for it
            return self
        self._thread = threading.Thread(target=self._receive, name="second-half", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # no thread left for it
            self._close()
        else:
            self.begins = begins
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.begins is not None:
            self._end()

    def _end(self) -> None:
        self.begins = None
        self._process.kill()
        self._thread.join()
        self._close()

    def _close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    @property
    def cut(self) -> int | None:
        """Where a block of the first half's text has to end: the first byte of the second shows that an event ended."""
        return None if self.begins is None else self.begins + 1

    def bytes_read(self, here: int, size: int) -> int:
        """How much of a file of `size` bytes both processes have read when this one has read `here`: about as fast."""
        return here if self.begins is None else min(size, here * size // self.begins)

    def after(self, stream: EventStream, waiting: Callable[[], None]) -> SecondHalf | None:
        """What follows the text that a stream has decoded so far; None when that is to be read here.

        Args:
            stream: Of the first half.
            waiting: Called again and again until the other process is done; what it raises is passed on.
        """
        if self.begins is None or stream.offset < self.begins:
            return None
        half = None
        if stream.offset == self.begins and not stream.ended:  # else the cut was no end of an event
            now_s = time.monotonic()
            patience_s = _PATIENCE_S + now_s - self._started_s  # as long again, as halves are about equal
            while self._thread.is_alive() and time.monotonic() < now_s + patience_s:
                self._thread.join(_POLL_S)
                waiting()
            half, self._half = self._half, None
        self._end()
        return half

    def _receive(self) -> None:
        assert self._process.stdout is not None
        # Whatever goes wrong there, from a full memory to a killed process, the half can be read here instead.
        with contextlib.suppress(Exception):
            self._half = handover.parse(self._process.stdout.read())


def read_half(path: Path, begins: int) -> SecondHalf | None:
    """Read from an event on; None when something is unusual."""
    health = HealthReport()
    builder = ColumnBuilder(health)
    stream = EventStream(_blocks(path, begins), path.name, health, begins)
    for piece in stream:
        if piece.raw:
            return None
        builder.add(piece.events, piece.text, piece.offset, piece.size)
    if not stream.ended or builder.has_odd_ids:
        return None
    return SecondHalf(builder, stream.tail, stream.tail_offset, health.notes())


def _blocks(path: Path, begins: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(begins)
        while block := file.read(BLOCK_BYTES):
            yield block


def main() -> None:
    """The other process: read and hand over through stdout."""
    out = protect_stdout()
    end_with_stdin()
    handover.write(read_half(Path(sys.argv[1]), int(sys.argv[2])), out)
    out.flush()
    os._exit(0)  # at once, as the first process waits for the end
