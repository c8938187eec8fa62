"""One experiment from its start to its last record: load, measure alternating, profile, evaluate, leave."""

import asyncio
import os
import time
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from gptscope.profiling import processes
from gptscope.profiling.engine import scheduling
from gptscope.profiling.engine.limits import Limits
from gptscope.profiling.engine.outbox import Outbox
from gptscope.profiling.engine.seed_stage import train_seeds
from gptscope.profiling.engine.variant_run import Outcome, SliceTimes, VariantRun
from gptscope.profiling.engine.worker_handle import WorkerError, WorkerOptions
from gptscope.profiling.machine import facts
from gptscope.profiling.records import (
    ExperimentFinished,
    ExperimentStarted,
    Failure,
    LoadVariant,
    MeasurePeaks,
    Notice,
    Peaks,
    Progress,
    RecordProfile,
    RunSlice,
    SliceDone,
    StartExperiment,
    Telemetry,
    WarmUp,
)
from gptscope.profiling.telemetry.nvidia import NvidiaSource, open_nvidia
from gptscope.profiling.telemetry.sampler import Sampler, Watched

if TYPE_CHECKING:
    from gptscope.profiling.engine.evaluation_stage import EvaluationStage


class ExperimentRun:
    """Runs one experiment. Cancel it by cancelling the task that runs `run`, unless `ending`.

    Args:
        start: What to run.
        run_ids: One name for each variant.
        outbox: Where records go.
        options: How workers are started.
        limits: How long a worker may be silent.
    """

    def __init__(
        self,
        start: StartExperiment,
        run_ids: Sequence[str],
        outbox: Outbox,
        options: WorkerOptions,
        limits: Limits,
    ) -> None:
        self._start = start
        self._experiment = start.experiment
        self._outbox, self._options, self._limits = outbox, options, limits
        self._loop = asyncio.get_running_loop()
        self._sampler = Sampler((os.getpid(), os.getppid()), self._open_gpu, self._emit_telemetry)
        started_ns = time.perf_counter_ns()
        self._runs = [
            VariantRun(index, run_id, variant, outbox, started_ns)
            for index, (run_id, variant) in enumerate(zip(run_ids, start.experiment.variants, strict=True))
        ]
        measure = start.experiment.measure
        self._slices = scheduling.slice_steps(start.experiment.workload) if measure else ()
        self._repeats = scheduling.repeat_budget(len(self._runs), len(self._slices))
        self._slices_done = 0
        self._peaks: dict[int | None, Peaks | None] = {}
        """By number of threads; None: they could not be measured."""
        self._evaluation: EvaluationStage | None = None
        self.ending = False
        """The last records are being written; too late to cancel."""

    async def run(self) -> None:
        """Do it all. Whatever happens, every run and the experiment get their last record."""
        self._outbox.put(
            ExperimentStarted(
                experiment_id=self._start.experiment_id,
                experiment=self._experiment,
                run_ids=tuple(run.run_id for run in self._runs),
                started_unix_ns=time.time_ns(),
            )
        )
        self._sampler.start()
        leftover: Outcome = "done"
        limit_s = self._experiment.time_limit_s
        try:
            async with asyncio.timeout(limit_s) as limit:
                await self._work()
        except asyncio.CancelledError:
            self.ending = True
            leftover = "cancelled"
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
        except Exception as error:  # noqa: BLE001 - told to the client, and the engine lives on
            leftover = "failed"
            if limit.expired():
                message = f"The experiment was stopped at its time limit of {limit_s:g} s; what was measured is kept."
                self._outbox.put(Failure(kind="timeout", message=message))
            else:
                message = f"The engine made an error ({type(error).__name__}: {error}); what was measured is kept."
                self._outbox.put(Failure(kind="internal", message=message, detail=traceback.format_exc()))
        self.ending = True
        await self._end(leftover)

    def _open_gpu(self) -> NvidiaSource | str:
        return "The experiment computes on the CPU." if self._experiment.device == "cpu" else open_nvidia()

    def _emit_telemetry(self, sample: Telemetry) -> None:
        """Called on the sampler's thread."""

        def put() -> None:
            if not self.ending:
                self._outbox.put(sample)

        self._loop.call_soon_threadsafe(put)

    async def _end(self, leftover: Outcome) -> None:
        self._sampler.stop()
        await asyncio.gather(*(run.end_worker(kill=True) for run in self._runs))
        if self._evaluation is not None:
            self._evaluation.close()
        for run in self._runs:
            run.finish(leftover)
        failed = any(run.outcome == "failed" for run in self._runs)
        outcome: Outcome = "cancelled" if leftover == "cancelled" else "failed" if failed else leftover
        self._outbox.put(ExperimentFinished(experiment_id=self._start.experiment_id, outcome=outcome))

    async def _work(self) -> None:
        loaded: list[VariantRun] = []
        for run in self._runs:
            await self._start_ahead(run.index)
            if loaded and len(loaded) == 1 and not self._rest_fits(loaded[0]):
                await self._work_in_rounds(loaded[0])
                return
            if run.alive and await self._load(run):
                loaded.append(run)
        for run in loaded:
            await self._measure_peaks(run)
        await self._measure_together(loaded)
        for run in loaded:
            if run.alive:
                await self._profile(run)
        if self._experiment.quality:
            await self._evaluate().together()
        await train_seeds(self._experiment, loaded, self._limits)
        await self._leave(*(run for run in loaded if run.alive))

    async def _work_in_rounds(self, loaded: VariantRun) -> None:
        """Memory holds one worker only: alternate between whole loadings."""
        message = (
            "Memory cannot hold all variants at once, so they are loaded and measured in alternating rounds; "
            "drifts of the machine's speed between rounds are not cancelled as well as by neighbouring slices."
        )
        await self._outbox.send(Notice(message=message, level="warning"))
        await asyncio.gather(*(run.end_worker(kill=True) for run in self._runs if run is not loaded))
        for visit in scheduling.rounds(len(self._runs), len(self._slices)):
            run = self._runs[visit.variant]
            if not run.alive or (run.pid is None and not await self._load(run)):
                continue
            await self._measure_peaks(run)
            for pair in visit.slices:
                if run.alive:
                    await self._measure_with_repeats(pair, [run])
            if visit.last and run.alive:
                await self._profile(run)
            if self._experiment.quality and run.alive:
                await self._evaluate().alone(run, last_visit=visit.last)
            if visit.last:
                await train_seeds(self._experiment, [run], self._limits)
            if visit.last and run.alive:
                await self._leave(run)
            else:
                await run.end_worker(kill=False, patience_s=self._limits.leave_s)

    # ------------------------------------------------------------------------------------------------------ loading

    async def _load(self, run: VariantRun) -> bool:
        """Load and warm up one variant."""
        limits = self._limits
        command = LoadVariant(
            run_id=run.run_id,
            experiment_id=self._start.experiment_id,
            experiment=self._experiment,
            variant_index=run.index,
        )
        try:
            await run.start_worker(self._options)
            self._watch(run)
            note = "importing libraries"
            await self._outbox.send(Progress(phase="start", done=0, total=0, note=note, run_id=run.run_id))
            await run.ask(command, silence_s=limits.load_s, doing="loading the model")
            if self._experiment.measure:
                await run.ask(WarmUp(), silence_s=limits.warm_up_s, doing="warming up")
        except WorkerError as error:
            await run.fail(error)
            kind = error.failure.kind
            # The next worker would only say the same again; of usage only the first one, which judges all variants.
            if kind in ("model", "offline") or (kind == "usage" and run.index == 0):
                await asyncio.gather(*(one.end_worker(kill=True) for one in self._runs[run.index + 1 :]))
                for one in self._runs[run.index + 1 :]:
                    one.finish("failed")
            return False
        return True

    async def _start_ahead(self, first: int) -> None:
        """Start one worker per core, beginning with `first`: imports take longest and can be done side by side."""
        for run in self._runs[first : first + facts.physical_cores()]:
            if run.alive:
                try:
                    await run.start_worker(self._options)
                except WorkerError as error:
                    await run.fail(error)

    async def _measure_peaks(self, run: VariantRun) -> None:
        """Get this machine's ceilings for the variant's threads, kept ones if there are any, while all is quiet."""
        threads = run.variant.threads
        if not (self._experiment.peaks and self._experiment.measure) or run.told.peaks is not None or not run.alive:
            return
        if threads in self._peaks:  # every run says its own, so that each can be read alone
            known = self._peaks[threads]
            if known is not None:
                run.told.peaks = msgspec.structs.replace(known, run_id=run.run_id)
                await self._outbox.send(run.told.peaks)
            return
        self._peaks[threads] = None
        self._watch(run)
        command = MeasurePeaks(device=self._experiment.device, threads=threads)
        run.failures_are_notices = True
        try:
            await run.try_ask(command, silence_s=self._limits.peaks_s, doing="measuring this machine's peaks")
            self._peaks[threads] = run.told.peaks
        except WorkerError as error:
            await run.fail(error)
        run.failures_are_notices = False

    def _rest_fits(self, loaded: VariantRun) -> bool:
        """Whether the variants that come after the first loaded one fit into memory beside it."""
        others = [run for run in self._runs[loaded.index + 1 :] if run.alive]
        use = processes.memory_use(loaded.pid) if loaded.pid is not None else None
        if use is None or loaded.told.model is None:
            return True
        parameters = loaded.told.model.parameters
        measured = scheduling.MemoryUse(*use)
        needs = [scheduling.estimated_use(measured, loaded.variant, run.variant, parameters) for run in others]
        if not scheduling.fits_together(facts.memory_available_bytes(), needs):
            return False
        device_bytes, free = loaded.told.device_bytes, self._sampler.free_gpu_bytes()
        if device_bytes is None or free is None:
            return True
        on_device = scheduling.MemoryUse(device_bytes, device_bytes)
        needs = [scheduling.estimated_use(on_device, loaded.variant, run.variant, parameters) for run in others]
        return scheduling.fits_together(free, needs)

    # ---------------------------------------------------------------------------------------------------- measuring

    async def _measure_together(self, runs: Sequence[VariantRun]) -> None:
        for pair, order in enumerate(scheduling.alternation(len(runs), len(self._slices))):
            if not any(run.alive for run in runs):  # there may be a million slices left
                return
            await self._measure_with_repeats(pair, [runs[position] for position in order])

    async def _measure_with_repeats(self, pair: int, order: Sequence[VariantRun]) -> None:
        """Measure neighbouring slices, then repeat those that something disturbed."""
        disturbed = [run for run in order if run.alive and await self._measure_slice(run, pair, attempt=0)]
        self._slices_done += len(order)
        if not order:  # nothing could be loaded
            return
        total = len(self._runs) * len(self._slices)
        await self._outbox.send(Progress(phase="measure", done=self._slices_done, total=total, unit="slices"))
        for run in disturbed:
            again = True
            while again and run.alive and (attempt := self._repeats.take(run.index, pair)) is not None:
                again = await self._measure_slice(run, pair, attempt)

    async def _measure_slice(self, run: VariantRun, pair: int, attempt: int) -> bool:
        """Measure one slice; return whether it was disturbed."""
        run.told.slice = SliceTimes()
        begun = time.perf_counter()
        start = self._sampler.begin_slice(self._watched(run, in_slice=True))
        command = RunSlice(slice=pair, steps=self._slices[pair])
        try:
            await run.ask(command, silence_s=self._limits.slice_s, doing="measuring")
        except WorkerError as error:
            await run.fail(error)
            return False
        wall_s = time.perf_counter() - begun
        disturbed = await asyncio.to_thread(self._sampler.end_slice, start, self._watched(run))
        seconds = run.told.slice.seconds()
        await self._outbox.send(
            SliceDone(
                run_id=run.run_id,
                slice=pair,
                attempt=attempt,
                pair=pair,
                seconds=wall_s if seconds is None else seconds,
                disturbed=disturbed,
            )
        )
        return disturbed is not None

    async def _profile(self, run: VariantRun) -> None:
        steps = scheduling.profile_steps(self._experiment.profile_steps, self._experiment.workload)
        if steps <= 0 or not self._experiment.measure:
            return
        self._watch(run)
        try:
            await run.try_ask(RecordProfile(steps=steps), silence_s=self._limits.profile_s, doing="profiling")
        except WorkerError as error:
            await run.fail(error)

    def _evaluate(self) -> "EvaluationStage":
        """The stage that compares outputs. It needs numpy, which would double the time an engine takes to start."""
        if self._evaluation is None:
            from gptscope.profiling.engine.evaluation_stage import EvaluationStage

            self._evaluation = EvaluationStage(self._experiment, self._runs, self._outbox, self._limits)
        return self._evaluation

    async def _leave(self, *runs: VariantRun) -> None:
        """All is done for these runs: let their workers go."""
        await asyncio.gather(*(run.end_worker(kill=False, patience_s=self._limits.leave_s) for run in runs))
        for run in runs:
            run.finish("done")

    def _watch(self, run: VariantRun) -> None:
        self._sampler.watch(self._watched(run))

    def _watched(self, run: VariantRun, *, in_slice: bool = False) -> Watched:
        workers = tuple(pid for one in self._runs if (pid := one.pid) is not None)
        return Watched(run_id=run.run_id, measured=run.pid, workers=workers, in_slice=in_slice)
