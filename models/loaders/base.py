"""What every source of models shares: errors, results, and the questions a source answers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from gptscope.models.config import GPTConfig
from gptscope.models.gpt import GPT

ProgressFn = Callable[[float, float, str, str], None]
"""Called with done, total (0 = unknown), unit (`bytes` or `tensors`), and a note for people."""


def no_progress(_done: float, _total: float, _unit: str, _note: str) -> None:
    """Tell nobody."""


class ModelError(ValueError):
    """A model is missing, damaged, foreign or unsupported; the message says what, why and what to do."""


class OfflineError(ModelError):
    """A model would have to be fetched, and the place it is fetched from cannot be reached."""


class Tokenizer(Protocol):
    """Text to token ids and back."""

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """Ids that end a text; empty when the model does not say."""

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`, with the begin-of-text token where the model was trained with one.

        Raises:
            ModelError: The text needs a token that the model has no embedding for.
        """

    def decode(self, ids: list[int]) -> str:
        """Text of token ids, special tokens spelled out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescription:
    """What a model is, known from its headers alone."""

    name: str
    source: str
    """Kind of source: `bundled`, `preset`, `hf_folder`, `hf_hub`, `gguf` or `nanogpt`."""
    config: GPTConfig
    random_weights: bool
    has_tokenizer: bool
    weight_file_bytes: int
    """Size of the weight files; 0 for presets, which have none."""
    notes: tuple[str, ...] = ()
    weight_format: str = ""
    """How the weights are stored, e.g. `BF16` or `Q4_1, Q8_0, F32`; empty when unknown before fetching."""
    fetch_bytes: int | None = None
    """What must be downloaded before it can be loaded; None when it is on this machine."""


@dataclass(slots=True, kw_only=True)
class LoadedModel:
    """A model ready to run on the CPU, in evaluation mode."""

    model: GPT
    tokenizer: Tokenizer | None
    description: ModelDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """How to load: wanted type of the weights, seed of random ones, whom to tell."""

    dtype: torch.dtype = torch.float32
    seed: int = 1234
    progress: ProgressFn = no_progress


class Source(Protocol):
    """One place models come from. All knowledge about it lives in its own file."""

    def accepts(self, source: str) -> bool:
        """True when this is the source that `source` means."""

    def describe(self, source: str) -> ModelDescription:
        """Read headers and config, never the weights."""

    def load(self, source: str, request: LoadRequest) -> LoadedModel:
        """Read the weights."""

    def fetch(self, source: str, progress: ProgressFn) -> Path:
        """Bring the files to this machine if they are not here yet; return where they are."""
