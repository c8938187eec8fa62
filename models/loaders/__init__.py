"""Where models come from: one source = one file, found by the text a person types.

`bundled`, `preset:NAME`, a catalogue name, a Hugging Face folder, a `.gguf` file, a nanoGPT `ckpt.pt`, or a hub id
`org/name`. Files are never trusted: pickles are read with `weights_only`, code in a model folder is never run, and
every name, shape and setting is checked against the architecture before memory is taken.
"""

from pathlib import Path

import torch

from gptscope.models.loaders.base import (
    LoadedModel,
    LoadRequest,
    ModelDescription,
    ModelError,
    OfflineError,
    ProgressFn,
    Tokenizer,
    no_progress,
)
from gptscope.models.loaders.catalogue import CATALOGUE, CatalogueEntry
from gptscope.models.loaders.registry import find_source

__all__ = [
    "CATALOGUE",
    "CatalogueEntry",
    "LoadedModel",
    "ModelDescription",
    "ModelError",
    "OfflineError",
    "ProgressFn",
    "Tokenizer",
    "describe_model",
    "fetch_model",
    "load_model",
    "no_progress",
]


def describe_model(source: str) -> ModelDescription:
    """Read what a model is from headers and config; the weights are never loaded.

    Raises:
        ModelError: The model is missing, damaged or unsupported.
        OfflineError: It is not on this machine and its place cannot be reached.
    """
    return find_source(source).describe(source)


def load_model(
    source: str,
    *,
    dtype: torch.dtype = torch.float32,
    seed: int = 1234,
    progress: ProgressFn = no_progress,
) -> LoadedModel:
    """Load a model on the CPU, in evaluation mode.

    Args:
        source: What the user typed.
        dtype: Type of the loaded weights. Each stored value is rounded once, directly to it, so the result equals
            loading in FP32 and casting, with half the memory for a 16-bit type.
        seed: Seed of random weights (presets).
        progress: Called as tensors are read, or bytes fetched.

    Raises:
        ModelError: The model is missing, damaged or unsupported.
        OfflineError: It is not on this machine and its place cannot be reached.
    """
    return find_source(source).load(source, LoadRequest(dtype=dtype, seed=seed, progress=progress))


def fetch_model(source: str, progress: ProgressFn = no_progress) -> Path:
    """Bring a model's files to this machine, if they are not here yet, and return where they are.

    Raises:
        ModelError: There is nothing to fetch (presets), or what came is damaged.
        OfflineError: The place it comes from cannot be reached.
    """
    return find_source(source).fetch(source, progress)
