"""The inputs of an operator call as the profiler recorded them: shapes, types, and what a number of them weighs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ITEM_BYTES: dict[str, int] = {
    "float": 4, "double": 8, "c10::BFloat16": 2, "c10::Half": 2, "signed char": 1, "unsigned char": 1, "bool": 1,
    "short": 2, "short int": 2, "int": 4, "long": 8, "long int": 8, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1,
    "c10::Float8_e4m3fnuz": 1, "c10::Float8_e5m2fnuz": 1, "c10::complex<float>": 8, "c10::complex<double>": 16,
}  # fmt: skip
"""The profiler's type name -> bytes of one element."""
UNKNOWN_TYPE = "?"
"""Of tensors whose type was not recorded: they have sizes but no bytes."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Sizes and type of one input."""

    dims: tuple[int, ...]
    dtype: str

    @property
    def count(self) -> int:
        """Elements."""
        return math.prod(self.dims)

    @property
    def item(self) -> int:
        """Bytes of one element."""
        return ITEM_BYTES[self.dtype]

    @property
    def bytes(self) -> int:
        """All elements."""
        return self.count * self.item


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call has to move and compute; None = not modelled."""

    bytes: int | None
    flops: int | None


Inputs = Sequence[Tensor | list[Tensor] | None]
"""One entry per argument: a tensor, a list of tensors, or None for anything else."""


def parse_inputs(dims: Any, types: Any, list_dtype: str | None = None) -> Inputs | None:
    """Arguments from `Input Dims` and `Input type`; None when the trace was recorded without shapes.

    Args:
        dims: Decoded `Input Dims`.
        types: Decoded `Input type`.
        list_dtype: Type of tensors in lists, which the profiler does not record; None: unknown.
    """
    if not isinstance(dims, list) or not isinstance(types, list) or len(dims) != len(types):
        return None
    inputs: list[Tensor | list[Tensor] | None] = []
    for size, kind in zip(dims, types, strict=True):
        if kind in ITEM_BYTES and _are_numbers(size):
            inputs.append(Tensor(tuple(size), kind))
        elif kind in {"TensorList", "GenericList"} and isinstance(size, list):
            inputs.append([Tensor(tuple(s), list_dtype or UNKNOWN_TYPE) for s in size if _are_numbers(s)])
        else:
            inputs.append(None)
    return inputs


def _are_numbers(size: Any) -> bool:
    return isinstance(size, list) and all(isinstance(n, int) for n in size)


def all_tensors(inputs: Inputs) -> list[Tensor]:
    """Every tensor among the arguments, those in lists too."""
    flat: list[Tensor] = []
    for one in inputs:
        if isinstance(one, Tensor):
            flat.append(one)
        elif one is not None:
            flat.extend(one)
    return flat


def tensor_at(inputs: Inputs, index: int) -> Tensor:
    """The tensor at a place; `TypeError` when there is something else."""
    one = inputs[index]
    if not isinstance(one, Tensor):
        raise TypeError(f"argument {index} is no tensor")
    return one


def optional_bytes(inputs: Inputs, index: int) -> int:
    """Bytes of an argument that may be absent."""
    one = inputs[index] if index < len(inputs) else None
    return one.bytes if isinstance(one, Tensor) else 0


def list_at(inputs: Inputs, index: int) -> list[Tensor]:
    """The list of tensors at a place; `TypeError` when there is something else, or an empty list."""
    one = inputs[index]
    if not isinstance(one, list) or not one:
        raise TypeError(f"argument {index} is no list of tensors")
    return one
