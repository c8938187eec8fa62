"""After the measurement: train each variant again with further seeds, untimed."""

from collections.abc import Sequence

from gptscope.profiling.engine.limits import Limits
from gptscope.profiling.engine.variant_run import VariantRun
from gptscope.profiling.engine.worker_handle import WorkerError
from gptscope.profiling.experiment import Experiment
from gptscope.profiling.records import TrainSeed


async def train_seeds(experiment: Experiment, runs: Sequence[VariantRun], limits: Limits) -> None:
    """One variant after the other, each with the same seeds; a worker gives its measured model up for it."""
    for run in runs:
        for number in range(2, experiment.seeds + 1):
            command = TrainSeed(seed=experiment.workload.seed + number - 1, number=number, seeds=experiment.seeds)
            try:
                if not run.alive or not await run.try_ask(
                    command, silence_s=limits.slice_s, doing="training with another seed"
                ):
                    break
            except WorkerError as error:
                await run.fail(error)
