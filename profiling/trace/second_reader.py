"""Reads the second half of a large plain trace on another processor while this process reads the first.

The text is cut between two events, so each half can be read by itself, and the columns of the second are appended to
those of the first. Where the other process meets damage, this one reads on from there; where ids are no numbers it
reads the whole half. So what is repaired and reported does not depend on how many processes read.
"""

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from gptscope.profiling import handover
from gptscope.profiling.processes import end_with_stdin, protect_stdout
from gptscope.profiling.trace.columns import ColumnBuilder
from gptscope.profiling.trace.health import HealthNote, HealthReport
from gptscope.profiling.trace.source import BLOCK_BYTES, TraceText
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

FileId = tuple[int, int]
"""Device and number of an open file: another one after it was replaced."""


@dataclass(frozen=True)
class SecondHalf:
    """What the other process read."""

    file: FileId
    builder: ColumnBuilder
    notes: list[HealthNote]
    ended: bool
    """The list of events was closed; else the first process reads on where this one met something unusual."""
    offset: int
    """Where what was read ends."""


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

    def after(self, stream: EventStream, text: TraceText, waiting: Callable[[], None]) -> SecondHalf | None:
        """What follows the text that a stream has decoded so far; None when that is to be read here.

        Args:
            stream: Of the first half.
            text: What it reads.
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
        if half is None or text.file is None or half.file != file_id(text.file):  # replaced while it was opened
            return None
        return half

    def _receive(self) -> None:
        assert self._process.stdout is not None
        # Whatever goes wrong there, from a full memory to a killed process, the half can be read here instead.
        with contextlib.suppress(Exception):
            self._half = handover.parse(self._process.stdout.read())


def read_half(path: Path, begins: int) -> SecondHalf | None:
    """Read from an event on, as far as all is usual; None when there are ids that only one builder can number."""
    health = HealthReport()
    builder = ColumnBuilder(health)
    with path.open("rb") as file:
        file.seek(begins)
        stream = EventStream(iter(lambda: file.read(BLOCK_BYTES), b""), path.name, health, begins)
        offset, notes = begins, health.notes()
        for piece in stream:
            if not piece.text:  # it has to be mended, or the file ends too early
                break
            builder.add(piece.events, piece.text, piece.offset, piece.size)
            if builder.has_odd_ids:
                return None
            offset, notes = piece.offset + piece.size, health.notes()
        ended = stream.ended and bool(piece.text)
        return SecondHalf(
            file=file_id(file),
            builder=builder,
            notes=notes,
            ended=ended,
            offset=stream.tail_offset if ended else offset,
        )


def file_id(file: BinaryIO) -> FileId:
    """Which file an open one is."""
    about = os.fstat(file.fileno())
    return about.st_dev, about.st_ino


def main() -> None:
    """The other process: read and hand over through stdout."""
    out = protect_stdout()
    end_with_stdin()
    handover.write(read_half(Path(sys.argv[1]), int(sys.argv[2])), out)
    out.flush()
    os._exit(0)  # at once, as the first process waits for the end
