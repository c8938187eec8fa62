"""Commands from the client to the engine; those about tuning are in `tuning`."""

from typing import Literal

import msgspec

from gptscope.profiling.experiment import DEFAULT_SEED, Experiment, OptionValue
from gptscope.profiling.records.message import Message


class StartExperiment(Message, frozen=True):
    """Run this. One experiment at a time per engine."""

    experiment: Experiment
    experiment_id: str


class Cancel(Message, frozen=True):
    """Stop what is running within a second; what was measured is kept."""


class AskCapabilities(Message, frozen=True):
    """Answer with `Capabilities`."""

    device: Literal["auto", "cpu", "cuda"] = "auto"


class MeasurePeaks(Message, frozen=True):
    """Answer with `Peaks`; `fresh` ignores kept ones."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: int | None = None
    fresh: bool = False


class InspectModel(Message, frozen=True):
    """Answer with `ModelInspected` or `Failure`."""

    model: str


class FetchModel(Message, frozen=True):
    """Download a catalogue entry or hub model into the cache; answer with `Progress`…, `ModelFetched` or `Failure`."""

    model: str


class SaveModel(Message, frozen=True):
    """Write a model, pruned or not, as a Hugging Face folder; answer with `Progress`…, `ModelSaved` or `Failure`."""

    model: str
    folder: str
    """Must not exist or be empty."""
    pruning: str = "none"
    options: dict[str, OptionValue] = msgspec.field(default_factory=dict)
    """Of the pruning."""
    seed: int = DEFAULT_SEED
    """Of a preset's random weights."""


class Shutdown(Message, frozen=True):
    """End after saying `Bye`."""
