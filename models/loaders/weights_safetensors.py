"""Tensors in safetensors files, single or sharded. Read with `pread`, so nothing but the asked tensor is in memory."""

from collections.abc import Mapping
from contextlib import ExitStack
from math import prod
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from gptscope.models.loaders.base import ModelError
from gptscope.models.loaders.files import check_weight_file, dominant

_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}


class SafetensorsWeights:
    """`Weights` of one or more safetensors files."""

    def __init__(self, files: list[Path], stack: ExitStack) -> None:
        """Open all files and read their headers; `stack` closes them.

        Raises:
            ModelError: A file is missing, damaged, or not a safetensors file.
        """
        self._handles: dict[str, tuple[Path, Any]] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        stored_bytes: dict[str, int] = {}
        for path in files:
            check_weight_file(path)
            try:
                handle = stack.enter_context(safe_open(str(path), "pt", backend="pread"))
                for name in handle.keys():  # noqa: SIM118 - the handle is no mapping
                    view = handle.get_slice(name)
                    self._handles[name] = (path, handle)
                    self._shapes[name] = tuple(view.get_shape())
                    kind = str(view.get_dtype())
                    stored_bytes[kind] = stored_bytes.get(kind, 0) + prod(view.get_shape()) * _BYTES.get(kind, 1)
            except (SafetensorError, OSError) as error:
                raise ModelError(
                    f"{path} is not a whole safetensors file ({error}); fetch or copy the file again."
                ) from error
        self._format = dominant(stored_bytes)

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return self._shapes

    @property
    def format(self) -> str:
        return self._format

    def file_of(self, name: str) -> str:
        return str(self._handles[name][0])

    def label(self, name: str) -> str:
        return name

    def read(self, name: str) -> Tensor:
        path, handle = self._handles[name]
        kind = str(handle.get_slice(name).get_dtype())
        if kind not in _BYTES:
            raise ModelError(
                f"{path}: the tensor {name} is stored as {kind}; gptscope reads {', '.join(_BYTES)}. "
                "Quantised checkpoints are supported as GGUF files."
            )
        try:
            tensor: Tensor = handle.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise ModelError(f"{path}: the tensor {name} cannot be read ({error}).") from error
        return tensor
