"""One variant's run inside an experiment: its worker, what that worker has told, and how the run ends."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from gptscope.profiling.engine.outbox import Outbox
from gptscope.profiling.engine.worker_handle import WorkerError, WorkerHandle, WorkerOptions, worker_environment
from gptscope.profiling.experiment import Variant, variant_name
from gptscope.profiling.records import (
    Command,
    Compiled,
    Failure,
    ForcedGaps,
    GreedyTokens,
    Logits,
    MemoryPeak,
    ModelInfo,
    ModelLoaded,
    Notice,
    Peaks,
    RunFinished,
    RunStarted,
    StepSamples,
    WorkerRecord,
)

Outcome = Literal["done", "cancelled", "failed"]


@dataclass(slots=True)
class SliceTimes:
    """Span of the steps of one attempt at one slice, on the worker's clock."""

    first_ns: int | None = None
    last_ns: int = 0

    def add(self, samples: StepSamples) -> None:
        """Widen the span by these steps."""
        ends = [start + length for start, length in zip(samples.start_ns, samples.duration_ns, strict=True)]
        if ends:
            first = min(samples.start_ns)
            self.first_ns = first if self.first_ns is None else min(self.first_ns, first)
            self.last_ns = max(self.last_ns, *ends)

    def seconds(self) -> float | None:
        """Length of the span; None without steps."""
        return None if self.first_ns is None else (self.last_ns - self.first_ns) / 1e9


@dataclass(slots=True)
class Told:
    """What the engine itself needs of a worker's records."""

    model: ModelInfo | None = None
    device_bytes: int | None = None
    peaks: Peaks | None = None
    first_measured_ns: int | None = None
    slice: SliceTimes = field(default_factory=SliceTimes)

    def note(self, record: WorkerRecord) -> None:
        """Keep what is needed of one record."""
        match record:
            case ModelLoaded():
                self.model = record.model
            case Peaks():
                self.peaks = record
            case MemoryPeak():
                self.device_bytes = record.device_bytes
            case StepSamples(phase="measure"):
                self.slice.add(record)
                if self.first_measured_ns is None and record.start_ns:
                    self.first_measured_ns = min(record.start_ns)
            case _:
                pass


_ONCE = (RunStarted, ModelLoaded, Compiled)


class VariantRun:
    """Starts, asks and ends the worker of one variant, and hands its records on.

    Args:
        index: Position in the experiment.
        run_id: The run's name in all records.
        variant: Its levers.
        outbox: Where records go.
        started_ns: When the experiment began, `time.perf_counter_ns`.
    """

    def __init__(self, index: int, run_id: str, variant: Variant, outbox: Outbox, started_ns: int) -> None:
        self.index, self.run_id, self.variant = index, run_id, variant
        self.name = variant_name(variant)
        self.told = Told()
        self.outcome: Outcome | None = None
        self.incomplete = False
        """Something after the measurement failed, but the worker goes on."""
        self.failures_are_notices = False
        """What is being done is not needed for the run: tell its failure, but let the run count as done."""
        self.worker: WorkerHandle | None = None
        self.on_logits: Callable[[Logits, bytes], None] | None = None
        self.on_greedy: Callable[[GreedyTokens], None] | None = None
        self.on_gaps: Callable[[ForcedGaps], None] | None = None
        self._outbox = outbox
        self._started_ns = started_ns
        self._announced: set[type[WorkerRecord]] = set()

    @property
    def alive(self) -> bool:
        """It has not ended, well or badly."""
        return self.outcome is None

    @property
    def pid(self) -> int | None:
        """The worker's process id while it lives."""
        return self.worker.pid if self.worker is not None else None

    async def start_worker(self, options: WorkerOptions) -> None:
        """Start the process if none runs, with this variant's threads.

        Raises:
            WorkerError: The system cannot start it.
        """
        if self.pid is None:
            environment = worker_environment(options.environment, self.variant.threads)
            self.worker = WorkerHandle(f"The worker of “{self.name}”", self._take, self.run_id)
            await self.worker.start(WorkerOptions(options.command, environment, options.children))

    async def ask(self, command: Command, *, silence_s: float, doing: str) -> None:
        """Let the worker carry out one command.

        Raises:
            WorkerError: See `WorkerHandle.ask`.
        """
        assert self.worker is not None, "started first"
        await self.worker.ask(command, silence_s=silence_s, doing=doing)

    async def try_ask(self, command: Command, *, silence_s: float, doing: str) -> bool:
        """Like `ask`, but a worker that only reports a failure goes on, and the run is marked incomplete.

        Returns:
            Whether it was carried out.

        Raises:
            WorkerError: The worker is gone.
        """
        try:
            await self.ask(command, silence_s=silence_s, doing=doing)
        except WorkerError as error:
            if self.worker is None or not self.worker.usable:
                raise
            if not error.told:
                self._outbox.put(error.failure)
            self.incomplete = self.incomplete or not self.failures_are_notices
            return False
        return True

    async def fail(self, error: WorkerError) -> None:
        """Tell the failure unless the worker has, end the worker and the run."""
        if not error.told:
            self._outbox.put(error.failure)
        await self.end_worker(kill=True)
        self.finish("failed")

    async def end_worker(self, *, kill: bool, patience_s: float = 2.0) -> None:
        """Let the worker leave, or kill it; the run itself may go on with another worker."""
        if self.worker is not None:
            await (self.worker.kill() if kill else self.worker.leave(patience_s))

    def finish(self, outcome: Outcome) -> None:
        """Emit the run's last record, once."""
        if self.outcome is not None:
            return
        self.outcome = "failed" if outcome == "done" and self.incomplete else outcome
        first = self.told.first_measured_ns
        self._outbox.put(
            RunFinished(
                run_id=self.run_id,
                outcome=self.outcome,
                finished_unix_ns=time.time_ns(),
                first_step_s=None if first is None else (first - self._started_ns) / 1e9,
            )
        )

    async def _take(self, record: WorkerRecord, header: bytes, payload: bytes) -> None:
        match record:
            case Logits():
                if self.on_logits is not None:
                    self.on_logits(record, payload)
                return
            case GreedyTokens():
                if self.on_greedy is not None:
                    self.on_greedy(record)
                return
            case ForcedGaps():
                if self.on_gaps is not None:
                    self.on_gaps(record)
                return
            case Failure() if self.failures_are_notices:
                await self._outbox.send(Notice(message=record.message, level="warning", run_id=self.run_id))
                return
            case _:
                self.told.note(record)
        if isinstance(record, _ONCE):  # a variant that is loaded again has said this before
            if type(record) in self._announced:
                return
            self._announced.add(type(record))
        await self._outbox.send_frame(header, payload)
