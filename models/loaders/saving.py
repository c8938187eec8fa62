"""Saving a model as a Hugging Face folder: config and tokenizer of where it came from, new weights."""

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from gptscope.models.config import GPTConfig
from gptscope.models.gpt import GPT
from gptscope.models.loaders.base import ModelError, Tokenizer, no_progress
from gptscope.models.loaders.config_writing import config_fields, shape_fields
from gptscope.models.loaders.families import FAMILIES, find_family, read_config
from gptscope.models.loaders.registry import find_source
from gptscope.models.loaders.settings import Settings, read_json
from gptscope.models.loaders.tokenizer import WrappedTokenizer
from gptscope.models.loaders.weights import Stored, whole

_STORED_BYTES = 4
"""Per parameter: FP32."""
_FOLDERS = ("bundled", "hf_folder", "hf_hub")
"""Kinds of sources that have a config and a tokenizer to copy."""

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


def check_source(source: str) -> None:
    """Refuse a model that cannot be saved, before any time is spent.

    Raises:
        ModelError: Its family's `config.json` is unknown here, and it has none of its own.
    """
    description = find_source(source).describe(source)
    if description.source not in _FOLDERS:
        config_fields(description.config, ())


def check_shape(source: str, config: GPTConfig) -> None:
    """Refuse a pruned shape that the format cannot say, before any time is spent.

    Raises:
        ModelError: See `save_folder`.
    """
    origin = _origin(source)
    fields = config_fields(config, ()) if origin is None else read_json(origin / "config.json")
    _shaped(fields, config)


def check_target(folder: Path) -> None:
    """Refuse a folder that cannot take a model, before any time is spent.

    Raises:
        ModelError: It holds files already, or is none, or its parent does not exist or cannot be written.
    """
    try:
        if folder.is_dir() and any(folder.iterdir()):
            raise ModelError(f"{folder} is not empty. Give a new folder, so that nothing is overwritten.")
        if folder.exists() and not folder.is_dir():
            raise ModelError(f"{folder} is a file. Give a new folder.")
        if not folder.parent.is_dir():
            raise ModelError(f"The folder {folder.parent} does not exist. Make it first.")
        _beside(folder).cleanup()  # the only sure way to know
    except OSError as error:
        raise ModelError(f"{folder} cannot be made: {error.strerror or error}. Give another folder.") from error


def check_room(folder: Path, config: GPTConfig) -> None:
    """Refuse a disk that is too full for a model, before any time is spent.

    Raises:
        ModelError: It is; the message has the numbers.
    """
    needed, free = config.parameter_count * _STORED_BYTES, shutil.disk_usage(folder.parent).free
    if needed > free:
        raise ModelError(
            f"The saved model takes {needed / 1e9:.2f} GB, but the disk of {folder} has only {free / 1e9:.2f} GB free."
        )


def _beside(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """On the same disk, so that it can be renamed."""
    return tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-")


def save_folder(model: GPT, tokenizer: Tokenizer | None, source: str, folder: Path) -> None:
    """Write the model in FP32, whole or not at all.

    Args:
        model: With the shape of its source, or with fewer heads and MLP channels than that.
        tokenizer: Saved when the source is no Hugging Face folder that has one.
        source: Where the model was loaded from.
        folder: The target, see `check_target`.

    Raises:
        ModelError: As `check_source` and `check_target`, or the format cannot say the model's shape.
    """
    check_target(folder)
    folder = folder.resolve()  # a link to an empty folder stays one
    origin = _origin(source)
    with _beside(folder) as temporary:
        part = Path(temporary) / "model"
        part.mkdir()
        if origin is not None:
            for name in _KEPT:
                if (origin / name).is_file():
                    shutil.copyfile(origin / name, part / name)
            _say_fp32(part / "config.json")
            _say_shape(part / "config.json", model.config)
        else:
            _write_files(model.config, tokenizer, part)
        state = {name: value.detach() for name, value in model.state_dict().items()}
        plan = FAMILIES[model.config.family].plan(model.config, ())
        stored = {one.name: _stored(one, state) for one in plan}
        save_file(stored, str(part / "model.safetensors"), metadata={"format": "pt"})
        if folder.is_dir():
            folder.rmdir()
        part.rename(folder)


def _origin(source: str) -> Path | None:
    """The Hugging Face folder behind a source; None when it is something else."""
    if find_source(source).describe(source).source not in _FOLDERS:
        return None
    path = find_source(source).fetch(source, no_progress)
    return path if path.is_dir() else None


def _write_files(config: GPTConfig, tokenizer: Tokenizer | None, folder: Path) -> None:
    """Config and tokenizer of a model that came from a single file."""
    fields = config_fields(config, () if tokenizer is None else tokenizer.eos_ids)
    (folder / "config.json").write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
    if not _says(fields, config):
        raise ModelError(f"This {config.family} model has a choice that a Hugging Face config cannot say.")
    if isinstance(tokenizer, WrappedTokenizer) and tokenizer.fast is not None:
        (folder / "tokenizer.json").write_text(tokenizer.fast.to_str(), encoding="utf-8")
        named = {"tokenizer_class": "PreTrainedTokenizerFast"}
        (folder / "tokenizer_config.json").write_text(json.dumps(named) + "\n", encoding="utf-8")


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


def _say_shape(path: Path, config: GPTConfig) -> None:
    """Write heads and widths of a pruned model into the config of the model that it was."""
    fields = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(_shaped(fields, config), indent=2) + "\n", encoding="utf-8")


def _shaped(fields: dict[str, Any], config: GPTConfig) -> dict[str, Any]:
    """The fields with this shape.

    Raises:
        ModelError: The family's config has no field for it.
    """
    if _says(fields, config):
        return fields
    fields = {**fields, **shape_fields(config)}
    if not _says(fields, config):
        raise ModelError(
            f"A {config.family} config.json cannot say that layers of width {config.d_model} have {config.n_head} "
            f"heads of {config.d_head}: transformers divides the width by the heads. Prune only MLP channels of this "
            "model (structured.heads=0)."
        )
    return fields


def _says(fields: Mapping[str, Any], config: GPTConfig) -> bool:
    """Whether our reader makes exactly this shape of these fields."""
    settings = Settings(Path("config.json"), fields)
    try:
        return read_config(find_family(settings), settings) == config
    except ModelError:
        return False
