"""Takes commands one after another, carries them out, and ends with its client."""

import asyncio
import collections
import importlib.metadata
import os
import sys
import threading
import uuid
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import msgspec

from gptscope.profiling import channel, processes
from gptscope.profiling.engine.asks import Question, answer, doing
from gptscope.profiling.engine.experiment import ExperimentRun
from gptscope.profiling.engine.limits import Limits
from gptscope.profiling.engine.outbox import Outbox
from gptscope.profiling.engine.worker_handle import Children, WorkerOptions
from gptscope.profiling.records import (
    AskCapabilities,
    Bye,
    Calibrate,
    Cancel,
    ExperimentFinished,
    Failure,
    FetchModel,
    FineTune,
    Hello,
    InspectModel,
    MeasurePeaks,
    SaveModel,
    Shutdown,
    StartExperiment,
)

MOST_WAITING = 64
_PARENT_CHECK_S = 0.5
_FLUSH_S = 1.0
_END_S = 3.0


@dataclass(slots=True)
class _Job:
    """One command to carry out."""

    work: Callable[[], Coroutine[Any, Any, None]]
    cancelled: Callable[[], None]
    """Says what has to be said when it is cancelled before or while it runs."""
    experiment: ExperimentRun | None = None


class Engine:
    """One connection's engine.

    Args:
        stream: Where frames go.
        worker_command: How a worker is started.
        limits: How long workers may be silent.
    """

    def __init__(self, stream: BinaryIO, worker_command: Sequence[str], limits: Limits) -> None:
        self._loop = asyncio.get_running_loop()
        self._children = Children()
        self._options = WorkerOptions(worker_command, dict(os.environ), self._children)
        self._limits = limits
        self._outbox = Outbox(stream, self._end_soon)
        self._waiting: collections.deque[_Job] = collections.deque()
        self._job: _Job | None = None
        self._task: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._said_goodbye = False

    async def serve(self) -> None:
        """Work until the client says `Shutdown` or goes away."""
        self._outbox.put(Hello(role="engine", pid=os.getpid(), gptscope_version=_version()))
        threading.Thread(target=self._read_commands, name="commands", daemon=True).start()
        watch = asyncio.create_task(self._watch_parent())
        await self._over.wait()
        watch.cancel()
        self._waiting.clear()
        self._cancel_current()
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=_FLUSH_S)
        self._children.kill_all()
        if self._said_goodbye:
            self._outbox.put(Bye())
        await self._outbox.close(_FLUSH_S)

    # ----------------------------------------------------------------------------------------------------- commands

    def _read_commands(self) -> None:
        """On a thread of its own, so that the client's end is noticed at once whatever the loop does."""
        try:
            for header, _ in channel.read_frames(0):
                self._loop.call_soon_threadsafe(self._receive, header)
        except OSError:
            pass
        finally:
            self._children.kill_all()
            processes.end_this_process_after(_END_S)
            try:
                self._loop.call_soon_threadsafe(self._end_soon)
            except RuntimeError:  # the loop has ended already
                return

    async def _watch_parent(self) -> None:
        """Notice a client that died while something else keeps our stdin open."""
        parent = processes.parent_id()
        while processes.parent_id() == parent:  # noqa: ASYNC110 - no system tells this as an event
            await asyncio.sleep(_PARENT_CHECK_S)
        self._end_soon()

    def _end_soon(self) -> None:
        self._over.set()

    def _receive(self, header: bytes) -> None:
        try:
            command = channel.decode_command(header)
        except channel.ChannelError as error:
            self._outbox.put(Failure(kind="usage", message=str(error)))
            self._finish_unread(header)
            return
        match command:
            case Shutdown():
                self._said_goodbye = True
                self._end_soon()
            case Cancel():
                self._cancel_all()
            case StartExperiment():
                self._start_experiment(command)
            case AskCapabilities() | MeasurePeaks() | InspectModel() | FetchModel() | SaveModel():
                self._queue(self._question(command))
            case FineTune() | Calibrate():
                self._queue(self._question(command))
            case _:
                name = type(command).__name__
                self._outbox.put(Failure(kind="usage", message=f"{name} is a command for workers, not for the engine."))

    def _finish_unread(self, header: bytes) -> None:
        """A client that waits for the end of an experiment which could not be read gets that end."""
        try:
            experiment_id = msgspec.json.decode(header)["experiment_id"]
        except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
            return
        if isinstance(experiment_id, str):
            self._outbox.put(ExperimentFinished(experiment_id=experiment_id, outcome="failed"))

    def _start_experiment(self, command: StartExperiment) -> None:
        jobs = [self._job, *self._waiting] if self._job is not None else list(self._waiting)
        if any(job.experiment is not None for job in jobs):
            message = "Another experiment is still running; cancel it or wait for its end, then start this one again."
            self._outbox.put(Failure(kind="usage", message=message))
            self._outbox.put(ExperimentFinished(experiment_id=command.experiment_id, outcome="failed"))
            return
        run_ids = [uuid.uuid4().hex for _ in command.experiment.variants]
        experiment = ExperimentRun(command, run_ids, self._outbox, self._options, self._limits)

        def cancelled() -> None:
            self._outbox.put(ExperimentFinished(experiment_id=command.experiment_id, outcome="cancelled"))

        self._queue(_Job(experiment.run, cancelled, experiment))

    def _question(self, question: Question) -> _Job:
        async def work() -> None:
            await answer(question, self._outbox, self._options, self._limits)

        def cancelled() -> None:
            self._outbox.put(Failure(kind="cancelled", message=f"Cancelled while {doing(question)}."))

        return _Job(work, cancelled)

    # --------------------------------------------------------------------------------------------------------- jobs

    def _queue(self, job: _Job) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._outbox.put(Failure(kind="usage", message="Too many requests wait already; this one is dropped."))
            return
        self._waiting.append(job)
        self._start_next()

    def _start_next(self) -> None:
        if self._task is None and self._waiting and not self._over.is_set():
            self._job = self._waiting.popleft()
            self._task = asyncio.create_task(self._job.work())
            self._task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        job, self._job, self._task = self._job, None, None
        if task.cancelled():
            if job is not None:
                job.cancelled()
        elif (error := task.exception()) is not None:
            message = f"The engine made an error ({type(error).__name__}: {error})."
            self._outbox.put(Failure(kind="internal", message=message))
        self._start_next()

    def _cancel_all(self) -> None:
        """Stop what runs and what waits."""
        waiting = list(self._waiting)
        self._waiting.clear()
        self._cancel_current()
        for job in waiting:
            job.cancelled()

    def _cancel_current(self) -> None:
        if self._task is None or self._job is None:
            return
        if self._job.experiment is None or not self._job.experiment.ending:
            self._task.cancel()


def _version() -> str:
    try:
        return importlib.metadata.version("gptscope")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def default_worker_command() -> list[str]:
    """The real worker, with this interpreter."""
    return [sys.executable, "-P", "-m", "gptscope.profiling.worker"]
