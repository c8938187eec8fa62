"""Tensors in files written by `torch.save`. Only plain tensors and numbers are unpickled; code is never run."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gptscope.models.loaders.base import ModelError
from gptscope.models.loaders.files import check_weight_file, dominant

_NAMES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}


def read_checkpoint(path: Path) -> Any:
    """Unpickle with `weights_only=True`; tensors stay on disk (mapped) until they are used.

    Raises:
        ModelError: The file is damaged, foreign, or wants to run code.
    """
    head = check_weight_file(path)
    zipped = head.startswith(b"PK")  # the only kind that can be mapped; before torch 1.6 files were bare pickles
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except pickle.UnpicklingError as error:
        raise _pickle_error(path, error) from error
    except Exception as error:  # a damaged pickle can raise anything
        raise ModelError(
            f"{path} is not a whole torch checkpoint ({_first_line(error)}); fetch or copy the file again."
        ) from error


def _pickle_error(path: Path, error: pickle.UnpicklingError) -> ModelError:
    reason = str(error)
    if "GLOBAL" in reason or "WeightsUnpickler error: Unsupported class" in reason or "not an allowed" in reason:
        return ModelError(
            f"{path} contains Python code that would run on loading ({_global_name(reason)}); refused. "
            "Ask for the weights as safetensors."
        )
    # torch's own text advises to load it again with code allowed: not advice to pass on about a damaged file
    return ModelError(
        f"{path} is not a whole torch checkpoint: it is damaged or foreign; fetch or copy the file again."
    )


def _global_name(reason: str) -> str:
    """The name of what the pickle wanted to call, from torch's message."""
    words = reason.replace("`", " ").split()
    for index, word in enumerate(words[:-1]):
        if word == "GLOBAL" and "." in words[index + 1]:
            return words[index + 1].rstrip(".,")
    return "it calls something that is no tensor"


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


class TorchWeights:
    """`Weights` of a mapping from names to tensors, as `read_checkpoint` gives it."""

    def __init__(self, tensors: Mapping[str, tuple[Path, Tensor]]) -> None:
        self._tensors = tensors
        stored_bytes: dict[str, int] = {}
        for _, tensor in tensors.values():
            kind = _NAMES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch."))
            stored_bytes[kind] = stored_bytes.get(kind, 0) + tensor.nbytes
        self._format = dominant(stored_bytes)

    @classmethod
    def open(cls, files: list[Path]) -> "TorchWeights":
        """Open `pytorch_model.bin` or its shards.

        Raises:
            ModelError: A file does not hold named tensors.
        """
        return cls({name: (path, tensor) for path in files for name, tensor in named_tensors(path).items()})

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: tuple(tensor.shape) for name, (_, tensor) in self._tensors.items()}

    @property
    def format(self) -> str:
        return self._format

    def file_of(self, name: str) -> str:
        return str(self._tensors[name][0])

    def label(self, name: str) -> str:
        return name

    def read(self, name: str) -> Tensor:
        path, tensor = self._tensors[name]
        if tensor.dtype not in _NAMES or tensor.layout != torch.strided:
            raise ModelError(
                f"{path}: the tensor {name} is stored as {tensor.dtype} ({tensor.layout}); "
                f"gptscope reads {', '.join(_NAMES.values())}."
            )
        return tensor.detach().clone()  # out of the mapped file: a model must not depend on it any more


def named_tensors(path: Path) -> dict[str, Tensor]:
    """The name -> tensor mapping that a `.bin` file is.

    Raises:
        ModelError: It is something else.
    """
    content = read_checkpoint(path)
    if not isinstance(content, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in content.items()
    ):
        raise ModelError(f"{path} does not hold named tensors as a Hugging Face checkpoint does; it is another kind.")
    return content
