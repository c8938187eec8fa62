"""The engine as a terminal program uses it: start it, send commands, read records. Threads, no event loop, no Qt.

    with EngineClient() as engine:
        for record, payload in engine.stream(StartExperiment(experiment=experiment, experiment_id="e1")):
            ...

A window uses `python_command` with its own process class and `channel.FrameReader`.
"""

import collections
import contextlib
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from gptscope.profiling import channel, processes
from gptscope.profiling.records import (
    AskCapabilities,
    Bye,
    Calibrate,
    Calibrated,
    Cancel,
    Capabilities,
    Command,
    CommandDone,
    ExperimentFinished,
    Failure,
    FetchModel,
    FineTune,
    FineTuned,
    ForcedGaps,
    GreedyTokens,
    InspectModel,
    Logits,
    MeasurePeaks,
    ModelFetched,
    ModelInspected,
    ModelSaved,
    Notice,
    Peaks,
    Record,
    SaveModel,
    Shutdown,
    StartExperiment,
)

Item = tuple[Record, bytes]
"""A record and its payload (empty for most)."""

_QUEUED_RECORDS = 64
_STDERR_LINES = 100
_END_S = 3.0
_POLL_S = 0.1


def python_command(*arguments: str) -> list[str]:
    """How to start an engine on this machine with this Python."""
    return [sys.executable, "-P", "-m", "gptscope.profiling.engine", *arguments]


def ends(command: Command, record: Record) -> bool:
    """Whether `record` is the last one that `command` brings."""
    match command:
        case StartExperiment():
            return isinstance(record, ExperimentFinished) and record.experiment_id == command.experiment_id
        case AskCapabilities():
            return isinstance(record, Capabilities | Failure)
        case MeasurePeaks():
            return isinstance(record, Peaks | Failure)
        case InspectModel():
            return isinstance(record, ModelInspected | Failure)
        case FetchModel():
            return isinstance(record, ModelFetched | Failure)
        case SaveModel():
            return isinstance(record, ModelSaved | Failure)
        case Calibrate():
            return isinstance(record, Calibrated | Failure)
        case FineTune():
            return isinstance(record, FineTuned | Failure)
        case Shutdown():
            return isinstance(record, Bye)
        case _:
            return True


class EngineClient:
    """One engine process, started by `start` or on entering a `with` block and ended, with all its workers, on leaving.

    Args:
        command: How to start the engine; None: on this machine. `["ssh", "-T", host, "exec python -P -m …"]` works too.
        environment: Its environment; None: ours.
    """

    def __init__(self, command: Sequence[str] | None = None, environment: Mapping[str, str] | None = None) -> None:
        self._command = list(command) if command is not None else python_command()
        self._environment = dict(environment) if environment is not None else None
        self._process: subprocess.Popen[bytes] | None = None
        self._items: queue.Queue[Item | None] = queue.Queue(_QUEUED_RECORDS)
        self._stderr: collections.deque[str] = collections.deque(maxlen=_STDERR_LINES)
        self._threads: list[threading.Thread] = []
        self._sending = threading.Lock()
        self._closing = False
        self._over = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The engine's process id while it lives."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start the engine.

        Raises:
            OSError: The system cannot start it.
        """
        assert self._process is None, "started once"
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environment,
            **processes.new_session_options(),
        )
        for name, target in (("engine-records", self._read_records), ("engine-stderr", self._read_stderr)):
            thread = threading.Thread(target=target, args=(self._process,), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def send(self, command: Command, payload: bytes = b"") -> None:
        """Send a command; an engine that is gone is told by `records`."""
        assert self._process is not None, "started first"
        assert self._process.stdin is not None
        data = channel.encode(command, payload)
        with self._sending, contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def cancel(self) -> None:
        """Stop what runs and what waits; their last records still come. Any thread may call it."""
        self.send(Cancel())

    def records(self, timeout: float | None = None) -> Iterator[Item]:
        """Records in their order, until the engine has ended.

        An engine that ends without `Bye` gives a `Failure` as its last record.

        Args:
            timeout: Seconds to wait for each record; None: for ever.

        Raises:
            TimeoutError: No record came for so long; reading may go on afterwards.
        """
        while not self._over:
            item = self._next(timeout)
            if item is None:
                self._over = True
            else:
                yield item

    def stream(self, command: Command, timeout: float | None = None) -> Iterator[Item]:
        """Send a command and give all records up to the one that ends it (or the engine's own end)."""
        self.send(command)
        for record, payload in self.records(timeout):
            yield record, payload
            if ends(command, record):
                return

    def ask(self, command: Command, timeout: float | None = None) -> Record:
        """Send a command and return the record that ends it; whatever comes before is dropped.

        Raises:
            TimeoutError: See `records`.
        """
        last: Record = Failure(kind="internal", message="The engine has ended, so it gives no answer.")
        for record, _ in self.stream(command, timeout):
            last = record
        return last

    def close(self) -> None:
        """End the engine and everything it started; kill what does not end. Safe to call twice."""
        process = self._process
        if process is None or self._closing:
            return
        self._closing = True
        self.send(Shutdown())
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
        if process.poll() is None:
            processes.kill_tree(process.pid)
            process.wait()
        for thread in self._threads:
            thread.join(_END_S)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()

    # ------------------------------------------------------------------------------------------------------ reading

    def _next(self, timeout: float | None) -> Item | None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:  # short waits, so that Ctrl-C is noticed on every system
            try:
                left = _POLL_S if deadline is None else min(_POLL_S, max(0.0, deadline - time.monotonic()))
                return self._items.get(timeout=left)
            except queue.Empty:
                if deadline is not None and time.monotonic() >= deadline:
                    raise TimeoutError(f"The engine sent nothing for {timeout:g} s.") from None

    def _read_records(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        reader = channel.FrameReader()
        goodbye = False
        with contextlib.suppress(OSError):
            while data := process.stdout.read1(channel.READ_BYTES):  # type: ignore[attr-defined]
                for header, payload in reader.feed(data):
                    record = _decode(header)
                    goodbye = goodbye or isinstance(record, Bye)
                    self._put((record, payload))
        if not goodbye and not self._closing:
            self._put((self._death(process, reader), b""))
        self._put(None)

    def _put(self, item: Item | None) -> None:
        """Wait for room, but not for a reader that is gone."""
        while True:
            try:
                self._items.put(item, timeout=_POLL_S)
            except queue.Full:
                if self._closing:
                    return
            else:
                return

    def _read_stderr(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        with contextlib.suppress(OSError, ValueError):
            for line in process.stderr:
                self._stderr.append(line.decode("utf-8", "replace").rstrip()[-2000:])

    def _death(self, process: subprocess.Popen[bytes], reader: channel.FrameReader) -> Failure:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
        processes.kill_group(process.pid)
        self._threads[-1].join(_POLL_S)
        noise = reader.noise.decode("utf-8", "replace").strip()
        tail = "\n".join([*self._stderr, *([noise] if noise else [])])
        how = processes.describe_exit(process.poll())
        message = f"The engine {how}. What was measured before is kept; start it again."
        return Failure(kind="worker_died", message=message, detail=tail)


def _decode(header: bytes) -> Record:
    try:
        record = channel.decode_record(header)
    except channel.ChannelError as error:
        return Notice(message=str(error), level="warning")
    assert not isinstance(record, CommandDone | Logits | GreedyTokens | ForcedGaps), "kept from clients"
    return record
