"""Writes records into the library on a thread of its own, in batches, so that recording never slows a client down.

Each batch is one transaction of the write-ahead log: a process that is killed loses at most `BATCH_S` of records, and
the file stays whole. The records of the current experiment are also held in memory until they are written, so a full
disk or a locked file costs nothing if it is mended before the run ends.
"""

import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

from gptscope.profiling.records import Record, TraceChunk
from gptscope.profiling.store import opening, trace_files
from gptscope.profiling.store.entries import LibraryError
from gptscope.profiling.store.stream import RecordStream

BATCH_S = 0.2
RETRY_S = 2.0


class Recorder:
    """Keeps every record it is given, in order. One per engine connection.

    Attributes:
        problems: Sentences about what could not be kept (yet), oldest first.
        holding: Why records wait in memory now; empty while they can be written.
    """

    def __init__(self, folder: Path, on_problem: Callable[[str], None] = lambda _sentence: None) -> None:
        """Start the thread.

        Args:
            folder: The library's folder; open it with `Library` first, which makes, migrates and checks it.
            on_problem: Called from the recorder's thread with each new sentence of `problems`.
        """
        self._folder = folder
        self._on_problem = on_problem
        self._queue: queue.SimpleQueue[tuple[Record, bytes] | threading.Event] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._stream = RecordStream(folder)
        self._next_try = 0.0
        self.problems: tuple[str, ...] = ()
        self.holding = ""
        self._thread = threading.Thread(target=self._loop, name="library", daemon=True)
        self._thread.start()

    def add(self, record: Record, payload: bytes = b"") -> None:
        """Take one record (with a trace piece's bytes). Returns at once and never fails."""
        self._queue.put((record, payload))

    def close(self, timeout_s: float = 30.0) -> bool:
        """Write what is left, mark unfinished runs as interrupted, end the thread. True when everything was kept."""
        self._closing.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._tell(f"The library {self._folder} did not answer; the last records were not kept.")
        return not self._thread.is_alive() and self._stream.is_written()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything added so far was tried to be written; False after the time-out."""
        turn = threading.Event()
        self._queue.put(turn)
        return turn.wait(timeout_s)

    # --------------------------------------------------------------------------------------- the thread's own side

    def _loop(self) -> None:
        while not self._closing.wait(BATCH_S):
            waiting = self._take_all()
            if time.monotonic() >= self._next_try:
                self._write()
            for turn in waiting:
                turn.set()
        waiting = self._take_all()
        self._stream.interrupt_open_runs()
        self._write()
        self._stream.close()
        if not self._stream.is_written():
            kept = "None of this run's records were" if self._stream.is_new() else "The last records were not"
            self._tell(f"{kept} kept in the library {self._folder}.")
        for turn in waiting:
            turn.set()

    def _take_all(self) -> list[threading.Event]:
        """Move everything from the queue into the stream; returns who waits for it to be written."""
        waiting: list[threading.Event] = []
        while True:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return waiting
            if isinstance(item, threading.Event):
                waiting.append(item)
                continue
            record, payload = item
            if isinstance(record, TraceChunk):
                self._keep_trace_piece(record, payload)
            else:
                self._stream.take(record)

    def _keep_trace_piece(self, record: TraceChunk, payload: bytes) -> None:
        if record.run_id in self._stream.lost_traces:
            return
        try:
            trace_files.append(self._folder, record.run_id, record.offset, payload, last=record.last)
        except (OSError, ValueError) as error:
            self._stream.lost_traces.add(record.run_id)
            trace_files.remove(self._folder, record.run_id)
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._tell(f"The trace of run {record.run_id} was not kept: {reason}. Its numbers and tables are.")

    def _write(self) -> None:
        try:
            self._stream.write()
            self.holding = ""
        except sqlite3.Error as error:
            if opening.is_damage(error) and self._begin_anew():
                return
            self._hold(opening.describe(error, self._folder / opening.FILE_NAME))
        except (LibraryError, OSError) as error:
            self._hold(str(error))

    def _begin_anew(self) -> bool:
        """Set the damaged file aside and write this experiment, which is still in memory, into a new one."""
        try:
            self._stream.close()
            opened = opening.open_file(self._folder)
            if not opened.notices:  # the damage is where the check at opening does not look
                opened.connection.close()
                self._tell(opening.set_aside(self._folder / opening.FILE_NAME))
                opening.open_file(self._folder).connection.close()
            else:
                opened.connection.close()
                self._tell(" ".join(opened.notices))
            self._stream.rewind()
            self._stream.write()
        except (sqlite3.Error, LibraryError, OSError):
            return False
        return True

    def _hold(self, sentence: str) -> None:
        self._next_try = time.monotonic() + RETRY_S
        ending = "" if sentence.endswith(".") else "."
        self.holding = f"{sentence}{ending}"
        self._tell(f"{sentence}{ending} The run goes on; its records wait in memory.")

    def _tell(self, sentence: str) -> None:
        if sentence not in self.problems:
            self.problems += (sentence,)
            self._on_problem(sentence)
