"""Runs one experiment through the engine: shows progress, keeps records, stops within a second when asked to."""

import contextlib
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import TypeVar

from gptscope.app.cli.failing import USAGE, CommandError
from gptscope.app.cli.keeping import Keeping
from gptscope.app.cli.progress import ProgressView
from gptscope.app.cli.trace_output import TraceOutput
from gptscope.profiling.client import EngineClient
from gptscope.profiling.experiment import Experiment, variant_name
from gptscope.profiling.records import (
    Command,
    ExperimentFinished,
    ExperimentStarted,
    Failure,
    Message,
    Notice,
    Progress,
    Record,
    StartExperiment,
    StepSamples,
    TraceChunk,
)

STOP_S = 3.0
"""An engine that has not ended its work this long after a stop is killed; it takes less than one second."""
Answer = TypeVar("Answer", bound=Message)


@dataclass
class Outcome:
    """What came of an experiment."""

    experiment: Experiment
    records: list[Record] = field(default_factory=list)
    """Everything but progress and pieces of traces."""
    run_ids: tuple[str, ...] = ()
    stopped: bool = False
    """By the user."""
    problems: tuple[str, ...] = ()
    """What could not be kept or written."""

    @property
    def failures(self) -> list[Failure]:
        """Failures in the order they came."""
        return [record for record in self.records if isinstance(record, Failure)]

    @property
    def measured(self) -> bool:
        """Whether there is a measured step of any variant."""
        return any(isinstance(record, StepSamples) and record.phase == "measure" for record in self.records)

    @property
    def finished(self) -> str:
        """How the experiment ended: `done`, `cancelled`, `failed`; `interrupted` when the engine never said."""
        ends = [record.outcome for record in self.records if isinstance(record, ExperimentFinished)]
        return ends[-1] if ends else "interrupted"


def new_experiment_id() -> str:
    """Readable, sorted by time, unique: `20261130-054412-3fa9c1`."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:6]}"


@contextlib.contextmanager
def stopping(on_stop: Callable[[], None]) -> Iterator[threading.Event]:
    """While inside, Ctrl+C and SIGTERM call `on_stop` once, on a thread; a second one raises `KeyboardInterrupt`."""
    stopped = threading.Event()

    def handle(_signal: int, _frame: FrameType | None) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()
        # A signal may arrive while the main thread holds a lock that `on_stop` needs.
        threading.Thread(target=on_stop, name="stop", daemon=True).start()

    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _start(client: EngineClient) -> None:
    try:
        client.start()
    except OSError as error:
        raise CommandError(f"The engine could not be started: {error.strerror or error}.") from error


def _records(client: EngineClient, stopped: threading.Event) -> Iterator[tuple[Record, bytes]]:
    """Records until the engine ends; after a stop, no longer than `STOP_S`."""
    stopped_at: float | None = None
    while True:
        with contextlib.suppress(TimeoutError):
            for item in client.records(timeout=STOP_S):
                yield item
                if stopped.is_set():
                    stopped_at = stopped_at or time.monotonic()
                    if time.monotonic() - stopped_at > STOP_S:
                        return
            return
        if stopped.is_set():
            return


def run_experiment(
    experiment: Experiment, *, keeping: Keeping, view: ProgressView, trace: TraceOutput | None = None
) -> Outcome:
    """Run it to its end, or until the user stops it.

    Raises:
        CommandError: the engine could not be started.
    """
    outcome = Outcome(experiment)
    client = EngineClient()
    for notice in keeping.notices:
        view.say(notice, warning=True)
    try:
        _start(client)
        with stopping(client.cancel) as stopped:
            client.send(StartExperiment(experiment=experiment, experiment_id=new_experiment_id()))
            for record, payload in _records(client, stopped):
                keeping.add(record, payload)
                if isinstance(record, TraceChunk):
                    if trace is not None:
                        trace.add(record, payload)
                    continue
                _show(record, outcome, view, trace)
                if isinstance(record, ExperimentFinished):
                    break
            outcome.stopped = stopped.is_set()
    finally:
        view.close()
        client.close()
        outcome.problems = keeping.finish()
        if trace is not None:
            trace.finish()
    return outcome


def _show(record: Record, outcome: Outcome, view: ProgressView, trace: TraceOutput | None) -> None:
    if isinstance(record, Progress):
        view.update(record, _who(outcome, record.run_id))
        return
    outcome.records.append(record)
    if isinstance(record, ExperimentStarted):
        outcome.run_ids = record.run_ids
        if trace is not None:
            trace.set_runs(record.run_ids)
    elif isinstance(record, Notice) and (record.level == "info" or record.run_id is None):
        who = _who(outcome, record.run_id)  # a run's warnings stand in its report
        view.say(f"{who}: {record.message}" if who else record.message, warning=record.level == "warning")


def _who(outcome: Outcome, run_id: str | None) -> str:
    """The variant's name, when there are several."""
    if run_id not in outcome.run_ids or len(outcome.run_ids) < 2:
        return ""
    return variant_name(outcome.experiment.variants[outcome.run_ids.index(run_id)])


def failure_error(failure: Failure) -> CommandError:
    """A failure as the command line tells it."""
    return CommandError(failure.message, code=USAGE if failure.kind == "usage" else 1, detail=failure.detail)


def ask(command: Command, kind: type[Answer], view: ProgressView) -> Answer:
    """Send one command that is answered by one record, showing progress on the way.

    Raises:
        CommandError: the engine answered with a failure, ended, or the user stopped it.
    """
    client = EngineClient()
    try:
        _start(client)
        with stopping(client.cancel) as stopped:
            client.send(command)
            for record, _ in _records(client, stopped):
                if isinstance(record, kind):
                    return record
                if isinstance(record, Failure):
                    raise failure_error(record)
                if isinstance(record, Progress):
                    view.update(record, "")
                elif isinstance(record, Notice):
                    view.say(record.message, warning=record.level == "warning")
            if stopped.is_set():
                raise CommandError("Stopped.")
    finally:
        view.close()
        client.close()
    raise CommandError("The engine ended without an answer. --debug shows what it said.")
