"""A nanoGPT checkpoint (`ckpt.pt` of https://github.com/karpathy/nanoGPT): GPT-2's names, plain linear layers.

The checkpoint's pickle is read with `weights_only=True`; the `meta.pkl` of character-level models beside the training
data is never opened, because a pickle can run code.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gptscope.models.config import GPTConfig
from gptscope.models.loaders.base import (
    LoadedModel,
    LoadRequest,
    ModelDescription,
    ModelError,
    ProgressFn,
    Tokenizer,
)
from gptscope.models.loaders.family_gpt2 import GPT2, head_size
from gptscope.models.loaders.files import file_bytes
from gptscope.models.loaders.settings import Settings
from gptscope.models.loaders.tokenizer import load_folder_tokenizer
from gptscope.models.loaders.weights import build_model
from gptscope.models.loaders.weights_torch import TorchWeights, read_checkpoint

FILE_NAME = "ckpt.pt"
_SUFFIXES = (".pt", ".pth", ".ckpt")
_COMPILED_PREFIX = "_orig_mod."
_CONV1D_NAMES = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")

_NO_TOKENIZER = (
    "No tokenizer: a nanoGPT checkpoint has none, and a meta.pkl is not opened because a pickle can run code. "
    "Put the tokenizer.json the model was trained with (GPT-2's, usually) beside the checkpoint to see text."
)


class NanoGptSource:
    """Source `nanogpt`."""

    def accepts(self, source: str) -> bool:
        path = Path(source).expanduser()
        if path.is_dir():
            return (path / FILE_NAME).is_file() and not (path / "config.json").exists()
        return path.suffix.lower() in _SUFFIXES and path.is_file()

    def describe(self, source: str) -> ModelDescription:
        path = _file(source)
        checkpoint = read_checkpoint(path)
        weights = NanoGptWeights(path, checkpoint)
        config = _config(path, checkpoint)
        tokenizer, notes = _tokenizer(path, config)
        return _description(path, config, weights, tokenizer, notes)

    def load(self, source: str, request: LoadRequest) -> LoadedModel:
        path = _file(source)
        checkpoint = read_checkpoint(path)
        config = _config(path, checkpoint)
        weights = NanoGptWeights(path, checkpoint)
        model, notes = build_model(
            config,
            GPT2.plan(config, weights.shapes.keys()),
            weights,
            request,
            where=str(path),
            ignorable=GPT2.ignorable,
        )
        tokenizer, tokenizer_notes = _tokenizer(path, config)
        description = _description(path, config, weights, tokenizer, notes + tokenizer_notes)
        return LoadedModel(model=model, tokenizer=tokenizer, description=description)

    def fetch(self, source: str, progress: ProgressFn) -> Path:
        del progress
        self.describe(source)
        return _file(source)


class NanoGptWeights(TorchWeights):
    """A checkpoint's tensors in Hugging Face's layout: its linear layers turned, absent norm shifts zero."""

    def __init__(self, path: Path, checkpoint: Mapping[str, Any]) -> None:
        """Look at the tensors without reading them.

        Raises:
            ModelError: There is no `model` entry with named tensors.
        """
        state = checkpoint.get("model")
        if not isinstance(state, dict) or not all(
            isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in state.items()
        ):
            raise ModelError(f"{path} has no `model` entry with named tensors; it is no nanoGPT checkpoint.")
        tensors: dict[str, tuple[Path, Tensor]] = {}
        for stored, tensor in state.items():
            name = stored.removeprefix(_COMPILED_PREFIX)
            turned = name.endswith(_CONV1D_NAMES) and tensor.dim() == 2
            tensors[name] = (path, tensor.t() if turned else tensor)
        for name, (_, scale) in list(tensors.items()):
            shift = f"{name.removesuffix('.weight')}.bias"
            if name.endswith((".ln_1.weight", ".ln_2.weight", ".ln_f.weight")) and shift not in tensors:
                tensors[shift] = (path, torch.zeros(scale.shape))  # trained with bias=False
        super().__init__(tensors)


def _file(source: str) -> Path:
    path = Path(source).expanduser()
    return path / FILE_NAME if path.is_dir() else path


def _config(path: Path, checkpoint: Any) -> GPTConfig:
    arguments = checkpoint.get("model_args") if isinstance(checkpoint, dict) else None
    if not isinstance(arguments, dict):
        raise ModelError(
            f"{path} is a torch file, but not a nanoGPT checkpoint (no model_args). gptscope reads nanoGPT's ckpt.pt "
            "and Hugging Face folders."
        )
    settings = Settings(path, arguments)
    bias = settings.flag("bias", default=True)
    width, n_head = settings.integer("n_embd"), settings.integer("n_head")
    try:
        return GPTConfig(
            family="gpt2",
            vocab_size=settings.integer("vocab_size"),
            context_length=settings.integer("block_size"),
            n_layer=settings.integer("n_layer"),
            d_model=width,
            n_head=n_head,
            n_kv_head=n_head,
            d_head=head_size(settings, width, n_head),
            d_ff=4 * width,
            norm="layernorm",
            position="learned",
            mlp="gelu",  # exact since May 2023; the file does not record it
            qkv_bias=bias,
            out_bias=bias,
            mlp_bias=bias,
        )
    except ModelError:
        raise
    except ValueError as error:
        raise ModelError(f"{path}: {error}") from error


def _tokenizer(path: Path, config: GPTConfig) -> tuple[Tokenizer | None, tuple[str, ...]]:
    """A `tokenizer.json` (or GPT-2's vocab.json and merges.txt) that the user put beside the checkpoint."""
    tokenizer, _ = load_folder_tokenizer(path.parent, config.vocab_size)
    if tokenizer is not None:
        return tokenizer, ()
    return None, (_NO_TOKENIZER,)


def _description(
    path: Path, config: GPTConfig, weights: TorchWeights, tokenizer: Tokenizer | None, notes: tuple[str, ...]
) -> ModelDescription:
    return ModelDescription(
        name=path.parent.name if path.name == FILE_NAME else path.stem,
        source="nanogpt",
        config=config,
        random_weights=False,
        has_tokenizer=tokenizer is not None,
        weight_file_bytes=file_bytes(path),
        notes=notes,
        weight_format=weights.format,
    )
