"""Saving a model as the Hugging Face folder it came from: its config and tokenizer, new weights."""

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from gptscope.models.gpt import GPT
from gptscope.models.loaders.base import ModelError
from gptscope.models.loaders.hf_folder import read_folder
from gptscope.models.loaders.registry import find_source
from gptscope.models.loaders.weights import Stored, whole

_KEPT = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "spiece.model",
    "chat_template.jinja",
)
"""What is copied; everything else in the folder (code, other formats) is left."""


def source_folder(source: str) -> Path:
    """The Hugging Face folder behind a source.

    Raises:
        ModelError: The source is of another kind, so there is no config to save with.
    """
    kind = find_source(source).describe(source).source
    if kind not in ("bundled", "hf_folder", "hf_hub"):
        raise ModelError(
            f"{source} cannot be saved as a Hugging Face folder, because it does not come from one ({kind}). Take "
            "bundled, a folder with config.json and weights, or a model of the hub."
        )
    return find_source(source).fetch(source, lambda *_progress: None)


def check_target(folder: Path) -> None:
    """Refuse a folder that cannot take a model, before any time is spent.

    Raises:
        ModelError: It holds files already, or is none, or its parent does not exist.
    """
    if folder.is_dir() and any(folder.iterdir()):
        raise ModelError(f"{folder} is not empty. Give a new folder, so that nothing is overwritten.")
    if folder.exists() and not folder.is_dir():
        raise ModelError(f"{folder} is a file. Give a new folder.")
    if not folder.parent.is_dir():
        raise ModelError(f"The folder {folder.parent} does not exist. Make it first.")


def save_folder(model: GPT, source: str, folder: Path) -> None:
    """Write the model in FP32, whole or not at all.

    Args:
        model: With the shape of its source.
        source: Where it was loaded from; config and tokenizer are copied from there.
        folder: The target, see `check_target`.

    Raises:
        ModelError: As `source_folder` and `check_target`.
    """
    origin = source_folder(source)
    check_target(folder)
    facts = read_folder(origin)
    state = {name: value.detach() for name, value in model.state_dict().items()}
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as temporary:
        part = Path(temporary) / "model"
        part.mkdir()
        for name in _KEPT:
            if (origin / name).is_file():
                shutil.copyfile(origin / name, part / name)
        _say_fp32(part / "config.json")
        stored = {one.name: _stored(one, state) for one in facts.family.plan(facts.config, ())}
        save_file(stored, str(part / "model.safetensors"), metadata={"format": "pt"})
        if folder.is_dir():
            folder.rmdir()
        part.rename(folder)


def _stored(one: Stored, state: Mapping[str, Tensor]) -> Tensor:
    """A tensor of the file from our parameters: what loading picks out of it, put back where it was picked."""
    if len(one.parts) == 1 and one.parts[0][1] is whole:
        return state[one.parts[0][0]].float().clone().contiguous()
    size = torch.Size(one.shape).numel()
    places = torch.arange(size).view(one.shape)
    stored = torch.empty(size)
    for name, pick in one.parts:
        stored[pick(places).flatten()] = state[name].float().flatten()
    return stored.view(one.shape)


def _say_fp32(config: Path) -> None:
    fields = json.loads(config.read_text(encoding="utf-8"))
    for name in ("torch_dtype", "dtype"):
        if name in fields:
            fields[name] = "float32"
    config.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
