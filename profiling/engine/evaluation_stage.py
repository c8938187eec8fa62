"""The last stage of an experiment: every candidate's output beside the baseline's, or a sentence why not."""

from collections.abc import Sequence
from pathlib import Path

from gptscope.profiling.engine.evaluation import (
    BaselineAnswers,
    EvaluationError,
    LiveBaseline,
    SpooledBaseline,
    compare,
    failure_of,
)
from gptscope.profiling.engine.limits import Limits
from gptscope.profiling.engine.outbox import Outbox
from gptscope.profiling.engine.variant_run import VariantRun
from gptscope.profiling.engine.worker_handle import WorkerError
from gptscope.profiling.experiment import Experiment
from gptscope.profiling.quality.comparison import why_not_evaluated
from gptscope.profiling.records import MapLayers, Notice, Progress, Quality

TEXT = "the evaluation text that comes with gptscope"


class EvaluationStage:
    """Compares outputs once the speeds are measured."""

    def __init__(self, experiment: Experiment, runs: Sequence[VariantRun], outbox: Outbox, limits: Limits) -> None:
        self._experiment, self._runs, self._outbox, self._limits = experiment, runs, outbox, limits
        self._text = TEXT if experiment.text is None else Path(experiment.text).name
        self._spool: SpooledBaseline | None = None
        self._asked_baseline = False
        self._told: set[str] = set()

    async def together(self) -> None:
        """All workers are loaded: ask baseline and candidates in turn."""
        baseline, *others = self._runs
        candidates = [run for run in others if run.alive]
        if candidates and self._possible(baseline):
            await self._compare(LiveBaseline(baseline, self._limits), candidates)
            for run in candidates:
                await self._map_layers(run)

    async def alone(self, run: VariantRun, *, last_visit: bool) -> None:
        """Only `run` is loaded: keep the baseline's answers in a file, compare a candidate with them."""
        baseline = self._runs[0]
        if not self._possible(baseline):
            return
        if run is baseline and not self._asked_baseline:
            self._asked_baseline = True
            spool = SpooledBaseline()
            try:
                await spool.record(run, self._limits)
            except WorkerError as error:
                await run.fail(error)
            except OSError as error:
                spool.close()
                self._outbox.put(failure_of(error, run.run_id))
                run.incomplete = True
            else:
                self._spool = spool
        elif run is not baseline and last_visit and self._spool is not None:
            await self._compare(self._spool, [run])
            await self._map_layers(run)

    def close(self) -> None:
        """Give back what the comparison held."""
        if self._spool is not None:
            self._spool.close()

    def _possible(self, baseline: VariantRun) -> bool:
        if not baseline.alive and self._spool is None:
            reason: str | None = "Output quality was not evaluated: the baseline, which it is compared with, failed."
        elif baseline.told.model is None:
            reason = None
        else:
            reason = why_not_evaluated(baseline.told.model, self._experiment.workload.kind)
        if reason is not None and reason not in self._told:
            self._told.add(reason)
            self._outbox.put(Notice(message=reason))
        return reason is None

    async def _compare(self, answers: BaselineAnswers, candidates: Sequence[VariantRun]) -> None:
        baseline = self._runs[0]
        try:
            results = await compare(answers, baseline.run_id, candidates, self._limits, self._text, self._progress)
        except WorkerError as error:
            await baseline.fail(error)
            return
        except EvaluationError as error:
            self._outbox.put(failure_of(error, baseline.run_id))
            baseline.incomplete = True
            return
        for run, result in results:
            if isinstance(result, Quality):
                await self._outbox.send(result)
            elif isinstance(result, WorkerError):
                await run.fail(result)
            else:
                self._outbox.put(failure_of(result, run.run_id))
                run.incomplete = True

    async def _map_layers(self, run: VariantRun) -> None:
        """Find out what each of a candidate's modules costs and saves, if that was asked for."""
        if not self._experiment.layer_map or not run.alive:
            return
        command = MapLayers(baseline_run_id=self._runs[0].run_id)
        try:
            await run.try_ask(command, silence_s=self._limits.evaluate_s, doing="mapping the layers")
        except WorkerError as error:
            await run.fail(error)

    def _progress(self, done: int, total: int, unit: str) -> None:
        self._outbox.put(Progress(phase="evaluate", done=done, total=total, unit=unit))
