"""Trainings with further seeds: those that the measured run would have done."""

import pytest

from gptscope.profiling.records import Progress, SeedLosses, StepSamples, TrainSeed
from gptscope.profiling.worker.commands import Commands
from gptscope.profiling.worker.failures import RequestError
from gptscope.profiling.worker.reporting import StepReporter

STEPS = 4


@pytest.fixture
def commands(kit):
    """A worker's commands with a tiny model loaded for training, and its output."""
    output = kit.collected()
    made = Commands(output, {})
    made.do(kit.load(kind="train", batch=2, context=16, steps=STEPS, seed=7))
    return made, output


def train(commands, seed: int) -> tuple[float, ...]:
    made, output = commands
    made.do(TrainSeed(seed=seed, number=2, seeds=3))
    return output.of(SeedLosses)[-1].loss


def test_the_measured_seed_gives_the_measured_losses(commands):
    made, output = commands
    variant = made._loaded()
    variant.bench.run(StepReporter(output, "r", "measure"), 3 + STEPS)
    measured = [loss for one in output.of(StepSamples) for loss in one.loss]
    assert list(train(commands, 7)) == measured
    assert len(measured) == 3 + STEPS


def test_another_seed_is_another_training_that_repeats(commands):
    first, second = train(commands, 8), train(commands, 9)
    assert all(abs(a - b) > 1e-6 for a, b in zip(first, second, strict=True)), "other weights, other data"
    assert train(commands, 8) == first


def test_progress_says_which_seed_and_the_measured_model_is_given_up(commands):
    made, output = commands
    train(commands, 8)
    told = [one for one in output.of(Progress) if one.phase == "train"]
    assert (told[-1].done, told[-1].total, told[-1].note) == (3 + STEPS, 3 + STEPS, "seed 2 of 3")
    with pytest.raises(RequestError, match="No model is loaded"):
        made._loaded()
