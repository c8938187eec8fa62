"""Trains the same variant again with another seed, so that a difference of losses can be told from the luck of one."""

from dataclasses import dataclass

import torch

from gptscope.models.levers import LeverContext
from gptscope.models.loaders import Tokenizer, load_model
from gptscope.models.precision import RECIPES
from gptscope.models.prepare import prepare
from gptscope.models.training import TrainStep
from gptscope.profiling.experiment import Workload
from gptscope.profiling.records import SeedLosses, TrainSeed
from gptscope.profiling.worker.calibration import calibration_for
from gptscope.profiling.worker.output import Output
from gptscope.profiling.worker.steps import TrainBench
from gptscope.profiling.worker.texts import TokenSource


@dataclass(frozen=True, slots=True)
class SeedTrainer:
    """What is left of a measured variant when its model is given up: all that makes it again."""

    run_id: str
    source: str
    """Where the weights come from."""
    context: LeverContext
    device: torch.device
    work: Workload
    tokenizer: Tokenizer | None

    def train(self, command: TrainSeed, output: Output) -> None:
        """Train as the measured run did, from the beginning, and send the losses.

        The seed decides the order of the data and, for a preset, the weights at the start.
        """
        note = f"seed {command.number} of {command.seeds}"
        output.progress("load", 0, 0, note=f"reading {self.source} for {note}")
        torch.manual_seed(command.seed)
        dtype = RECIPES[self.context.precision].weight_dtype(training=True)
        loaded = load_model(self.source, dtype=dtype, seed=command.seed)
        prepared = prepare(loaded.model, self.context, self.device, calibration_for(self.context, loaded, self.source))
        tokens = TokenSource(self.tokenizer, prepared.config.vocab_size, command.seed)
        step = TrainStep(prepared)
        steps = TrainBench.warm_up_steps + self.work.steps
        losses = torch.empty(steps)
        for number in range(steps):
            output.progress("train", number, steps, "steps", note)
            losses[number] = step(tokens.training_batch(number, self.work.batch, self.work.context))
        output.progress("train", steps, steps, "steps", note)
        output.emit(SeedLosses(run_id=self.run_id, seed=command.seed, loss=tuple(losses.tolist())))
