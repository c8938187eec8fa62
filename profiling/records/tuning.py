"""Calibration and fine-tuning: the questions and their answers."""

from typing import Literal

import msgspec

from gptscope.profiling.experiment import DEFAULT_SEED, OptionValue
from gptscope.profiling.records.message import Message


class Calibrate(Message, frozen=True):
    """Measure how large a model's activations get; answer with `Progress`…, `Calibrated` or `Failure`."""

    model: str
    recipe: str
    """Which will use the ranges, such as `int8-static`."""
    text: str = ""
    """A text file; empty: the calibration text that comes with gptscope."""
    out: str = ""
    """The file to write; empty: one in the user's data folder."""
    threads: int | None = None


class Calibrated(Message, frozen=True):
    """Answer to `Calibrate`: the ranges of a model's activations are in a file."""

    model: str
    recipe: str
    source: str
    """The text, for people."""
    tokens: int
    inputs: int
    """Inputs of layers whose ranges were measured."""
    path: str


class FineTune(Message, frozen=True):
    """Train a model for a recipe and save it; answer with `Progress`…, `FineTuned` or `Failure`.

    `qat` trains all linear layers, `targeted` only the `layers` ones whose quantization changes the prediction most.
    Both see the recipe's rounding in every forward pass (fake quantization with straight-through gradients). After a
    `pruning` the recipe may be `fp32`; then `targeted` means the parts whose pruning changes the prediction most.
    """

    model: str
    folder: str
    """Where to save; must not exist or be empty."""
    mode: Literal["qat", "targeted"] = "qat"
    recipe: str = "int8-static"
    options: dict[str, OptionValue] = msgspec.field(default_factory=dict)
    """Of the recipe."""
    pruning: str = "none"
    """Done before training; what it removed stays removed."""
    pruning_options: dict[str, OptionValue] = msgspec.field(default_factory=dict)
    steps: int = 200
    lr: float = 2e-5
    layers: int = 3
    goal: Literal["original", "text"] = "original"
    """What is learnt: to predict as the unquantized and unpruned model did, or the text itself."""
    text: str | None = None
    """A text file on the machine that trains; None: the text that comes with gptscope."""
    batch: int = 8
    context: int = 128
    seed: int = DEFAULT_SEED
    threads: int | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` saying which number is impossible and what to give instead."""
        for name, least in (("steps", 1), ("layers", 1), ("batch", 1), ("context", 2)):
            value = getattr(self, name)
            if value < least:
                raise ValueError(f"{name} is {value}, but it must be {least} or more.")
        if not 0.0 < self.lr <= 1.0:
            raise ValueError(f"The learning rate is {self.lr:g}, but it must be above 0 and at most 1; 2e-5 is usual.")


class TextScore(msgspec.Struct, frozen=True, kw_only=True):
    """How well a model predicts a text."""

    perplexity: float | None
    error: float | None
    """Standard error."""


class FineTuned(Message, frozen=True):
    """Answer to `FineTune`: what was trained, and what it brought."""

    request: FineTune
    folder: str
    """Where the model is now, as a Hugging Face folder."""
    trained: tuple[str, ...]
    """Paths of the linear layers that were trained."""
    losses: tuple[float, ...]
    """Of each step, before its update."""
    seconds: float
    """The training alone."""
    tokens: int
    """Of the evaluation text that the scores are about."""
    original: TextScore
    """The model as it was, neither quantized nor pruned."""
    quantized_before: TextScore
    """With the recipe and the pruning, before training."""
    quantized_after: TextScore
    after: TextScore
    """The trained model, not quantized."""
    change: TextScore
    """Perplexity of the quantized model after minus before, its error from the same pieces of text."""
    text: str
    """What it was trained on."""
