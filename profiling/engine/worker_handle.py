"""One worker process as the engine sees it: start, ask, and be told in a sentence when it ends before its time."""

import asyncio
import collections
import contextlib
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gptscope.profiling import channel, processes, temp_folders
from gptscope.profiling.machine import facts
from gptscope.profiling.records import Bye, Command, CommandDone, Failure, FailureKind, Leave, Notice, WorkerRecord

STDERR_LINES = 100
_LINE_CHARACTERS = 2000
_NOISE = "USDT:"  # torch's profiler prints these at every start
_FAILURE_GRACE_S = 5.0
_END_S = 2.0
_DRAIN_S = 0.5

OnRecord = Callable[[WorkerRecord, bytes, bytes], Awaitable[None]]
"""Takes a record, its header and its payload; while it waits, nothing more is read from the worker."""


class WorkerError(Exception):
    """A command was not carried out. `failure` says why; `told` is True when the worker itself has already sent it."""

    def __init__(self, failure: Failure, *, told: bool) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.told = told


class Children:
    """The workers that live now. Any thread may kill them all, also while the engine's loop is busy."""

    def __init__(self) -> None:
        self._pids: set[int] = set()
        self._lock = threading.Lock()

    def add(self, pid: int) -> None:
        with self._lock:
            self._pids.add(pid)

    def discard(self, pid: int) -> None:
        with self._lock:
            self._pids.discard(pid)

    def pids(self) -> tuple[int, ...]:
        with self._lock:
            return tuple(self._pids)

    def kill_all(self) -> None:
        """Kill every worker with all it started, and remove what it left in the temporary folder."""
        for pid in self.pids():
            processes.kill_tree(pid)
            temp_folders.remove_folders_of(pid)


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker is started."""

    command: Sequence[str]
    environment: Mapping[str, str]
    children: Children


class WorkerHandle:
    """One worker. It does one command at a time; `ask` returns when it is done.

    Args:
        label: What the worker is for, in sentences: `The worker of BF16, all, static KV`.
        on_record: Gets every record but `CommandDone` and `Bye`, also those that arrive after the worker was killed.
        run_id: Put into failures.
    """

    def __init__(self, label: str, on_record: OnRecord, run_id: str | None = None) -> None:
        self.label = label
        self.run_id = run_id
        self._on_record = on_record
        self._process: asyncio.subprocess.Process | None = None
        self._oom = processes.OomWatch()
        self._stderr: collections.deque[str] = collections.deque(maxlen=STDERR_LINES)
        self._done: asyncio.Future[None] | None = None
        self._failure: Failure | None = None
        self._death: Failure | None = None
        self._goodbye = asyncio.Event()
        """It has said `Bye`, or has ended."""
        self._ended = asyncio.Event()
        self._expected_end = False
        self._muted = False
        self._last_sign = 0.0
        self._reading: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while the process lives."""
        return self._process.pid if self._process is not None and not self._ended.is_set() else None

    @property
    def usable(self) -> bool:
        """Started, living, and idle."""
        return self.pid is not None and self._done is None and not self._expected_end

    async def start(self, options: WorkerOptions) -> None:
        """Start the process.

        Raises:
            WorkerError: The system cannot start it.
        """
        try:
            self._process = await asyncio.create_subprocess_exec(
                *options.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=dict(options.environment),
                limit=4 * channel.READ_BYTES,
                **processes.new_session_options(),
            )
        except OSError as error:
            self._ended.set()
            message = f"{self.label} could not be started: {error}."
            raise WorkerError(Failure(kind="internal", message=message, run_id=self.run_id), told=False) from error
        options.children.add(self._process.pid)
        self._reading = asyncio.create_task(self._read(self._process, options.children))

    async def ask(self, command: Command, *, silence_s: float, doing: str) -> None:
        """Send a command and wait until the worker has carried it out.

        Args:
            command: What to do.
            silence_s: The worker is killed after so long without any sign of life.
            doing: For sentences: `while it was {doing}`.

        Raises:
            WorkerError: It could not, has ended, or was silent for too long.
        """
        assert self._process is not None, "started first"
        assert self._done is None, "one command at a time"
        if self._death is not None:
            raise WorkerError(self._death, told=False)
        self._done = asyncio.get_running_loop().create_future()
        self._failure, self._last_sign = None, time.monotonic()
        try:
            self._send(command)
            await self._wait_until_done(silence_s, doing)
        finally:
            self._done = None
        if self._failure is not None:
            raise WorkerError(self._failure, told=True)

    async def _wait_until_done(self, silence_s: float, doing: str) -> None:
        assert self._done is not None
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            while not self._done.done() and not ended.done():
                limit = silence_s if self._failure is None else min(silence_s, _FAILURE_GRACE_S)
                remaining = self._last_sign + limit - time.monotonic()
                if remaining <= 0:
                    await self.kill()
                    if self._failure is None:
                        raise WorkerError(self._silent(silence_s, doing), told=False)
                    return
                await asyncio.wait((self._done, ended), timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
        if not self._done.done() and self._failure is None:
            raise WorkerError(self._died(doing), told=False)

    def _silent(self, silence_s: float, doing: str) -> Failure:
        message = f"{self.label} was ended: it gave no sign of life for {silence_s:g} s while it was {doing}."
        return Failure(kind="timeout", message=message, detail=self._stderr_tail(), run_id=self.run_id)

    def _died(self, doing: str) -> Failure:
        if self._death is None:  # it said goodbye
            message = f"{self.label} left while it was {doing}."
            return Failure(kind="worker_died", message=message, detail=self._stderr_tail(), run_id=self.run_id)
        message = f"While it was {doing}, {_lower_first(self._death.message)}"
        return msgspec.structs.replace(self._death, message=message)

    async def leave(self, patience_s: float = _END_S) -> None:
        """Let the worker say goodbye, then end it: to tear down its libraries would take it seconds."""
        if self.usable:
            self._send(Leave())
            self._expected_end = True
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._goodbye.wait(), patience_s)
        await self.kill()

    async def kill(self) -> None:
        """End the worker and everything it started, now; what it had sent before is still handed on."""
        self._expected_end = True
        if self._process is None or self._ended.is_set():
            return
        processes.kill_tree(self._process.pid)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), _DRAIN_S)
        self._muted = True

    def _send(self, command: Command) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(channel.encode(command))  # a worker that is gone is noticed by the reader

    async def _read(self, process: asyncio.subprocess.Process, children: Children) -> None:
        """Read until the worker's end, then say how it ended."""
        assert process.stdout is not None
        stderr = asyncio.create_task(self._read_stderr(process))
        reader = channel.FrameReader()
        try:
            while data := await process.stdout.read(channel.READ_BYTES):
                self._last_sign = time.monotonic()
                for header, payload in reader.feed(data):
                    await self._take(header, payload)
                    self._last_sign = time.monotonic()  # a slow client is not the worker's silence
        except Exception as error:  # noqa: BLE001 - an error of ours while handing a record on
            message = f"{self.label} was ended because the engine could not handle what it sent ({error!r})."
            self._death = Failure(kind="internal", message=message, detail=traceback.format_exc(), run_id=self.run_id)
            processes.kill_tree(process.pid)
        finally:
            code = await self._await_exit(process)
            processes.kill_group(process.pid)
            children.discard(process.pid)
            temp_folders.remove_folders_of(process.pid)
            await asyncio.wait((stderr,), timeout=_DRAIN_S)
            stderr.cancel()
            if not self._expected_end and self._death is None:
                self._death = self._describe_death(code)
            self._ended.set()
            self._goodbye.set()

    async def _await_exit(self, process: asyncio.subprocess.Process) -> int | None:
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(process.wait(), _END_S)
        processes.kill_tree(process.pid)  # it closed its output but lives on
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(process.wait(), _END_S)
        return None

    async def _take(self, header: bytes, payload: bytes) -> None:
        try:
            record = channel.decode_record(header)
        except channel.ChannelError as error:
            record = Notice(message=str(error), level="warning", run_id=self.run_id)
            header, payload = channel.encode_header(record), b""
        if isinstance(record, CommandDone):
            if self._done is not None and not self._done.done():
                self._done.set_result(None)
        elif isinstance(record, Bye):
            self._expected_end = True
            self._goodbye.set()
        elif not self._muted:
            if isinstance(record, Failure):
                self._failure = record
            await self._on_record(record, header, payload)

    async def _read_stderr(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        rest = b""
        while data := await process.stderr.read(channel.READ_BYTES):
            *lines, rest = (rest + data).replace(b"\r", b"\n").split(b"\n")
            self._keep_lines(lines)
            rest = rest[-_LINE_CHARACTERS:]
        self._keep_lines([rest])

    def _keep_lines(self, lines: Sequence[bytes]) -> None:
        for line in lines[-STDERR_LINES * 10 :]:
            text = line[-_LINE_CHARACTERS:].decode("utf-8", "replace").rstrip()
            if text and not text.startswith(_NOISE):
                self._stderr.append(text)

    def _stderr_tail(self) -> str:
        return "\n".join(self._stderr)

    def _describe_death(self, code: int | None) -> Failure:
        no_memory = code == -9 and self._oom.happened()
        kind: FailureKind = "memory" if no_memory else "worker_died"
        advice = " Take a smaller model, batch or context, or close other programs." if no_memory else ""
        return Failure(
            kind=kind,
            message=f"{self.label} {processes.describe_exit(code, out_of_memory=no_memory)}.{advice}",
            detail=self._stderr_tail(),
            run_id=self.run_id,
        )


def worker_environment(base: Mapping[str, str], threads: int | None) -> dict[str, str]:
    """Environment of a worker that computes with so many threads; None: one per physical core.

    Graph compilation stays in the worker's own process, so that no compile pool outlives it.
    """
    count = str(threads if threads is not None else facts.physical_cores())
    return {
        **base,
        "OMP_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
    }


def _lower_first(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
