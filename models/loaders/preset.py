"""Presets: known shapes with random weights. Good for speed, meaningless for quality, and labelled so."""

from pathlib import Path

import torch

from gptscope.models.config import PRESETS, GPTConfig
from gptscope.models.gpt import init_weights
from gptscope.models.loaders.base import LoadedModel, LoadRequest, ModelDescription, ModelError, ProgressFn
from gptscope.models.loaders.weights import assemble, empty_model

PREFIX = "preset:"


class PresetSource:
    """Source `preset`."""

    def accepts(self, source: str) -> bool:
        return source.startswith(PREFIX)

    def describe(self, source: str) -> ModelDescription:
        return ModelDescription(
            name=source,
            source="preset",
            config=_find(source),
            random_weights=True,
            has_tokenizer=False,
            weight_file_bytes=0,
            notes=("Random weights: good for measuring speed, meaningless for output quality.",),
        )

    def load(self, source: str, request: LoadRequest) -> LoadedModel:
        description = self.describe(source)
        request.progress(0, 1, "models", "random weights")
        shapes = {name: tensor.shape for name, tensor in empty_model(description.config).named_parameters()}
        # Ones are what norm scales start as; `init_weights` fills the matrices and zeroes the biases.
        state = {name: torch.ones(shape) if len(shape) == 1 else torch.empty(shape) for name, shape in shapes.items()}
        model = assemble(description.config, state)
        init_weights(model, request.seed)
        request.progress(1, 1, "models", "")
        return LoadedModel(model=model.to(request.dtype), tokenizer=None, description=description)

    def fetch(self, source: str, progress: ProgressFn) -> Path:
        del progress
        _find(source)
        raise ModelError(f"{source} has random weights made on the spot; there is nothing to fetch.")


def _find(source: str) -> GPTConfig:
    config = PRESETS.get(source.removeprefix(PREFIX))
    if config is None:
        raise ModelError(f"there is no {source}; the presets are {', '.join(PREFIX + name for name in PRESETS)}.")
    return config
