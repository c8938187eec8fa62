"""Reads the header of a GGUF file: metadata and the table of tensors.

Written out here because `gguf.GGUFReader` makes a numpy array of every vocabulary entry (seconds) and trusts every
length it reads. Layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3.
"""

import mmap
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptscope.models.loaders.base import ModelError
from gptscope.models.loaders.files import check_weight_file

MAGIC = b"GGUF"
FloatArray = NDArray[np.float32]
_SCALARS: dict[int, str] = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9
_MAX_DIMS = 4


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One entry of the tensor table."""

    name: str
    shape: tuple[int, ...]
    """Slowest dimension first, as torch counts (GGUF itself counts the other way round)."""
    type_name: str
    """`F32`, `Q4_1`, ..."""
    type_id: int
    offset: int
    """Bytes from the start of the file."""
    bytes: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Everything in front of the weights."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, GgufTensor]


class _Cursor:
    """A position in the mapped file. Every read is checked against the file's end."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path = path
        self.data = data
        self.position = 0

    def take(self, size: int) -> int:
        """Move over `size` bytes and return where they start."""
        start = self.position
        if size > len(self.data) - start:
            raise self.cut_off()
        self.position = start + size
        return start

    def cut_off(self) -> ModelError:
        """The header announces more than there is."""
        return ModelError(
            f"{self.path} ends inside its header ({len(self.data):,} bytes); it is truncated or damaged. "
            "Fetch it again."
        )

    def scalar(self, code: str) -> Any:
        layout = "<" + code
        return struct.unpack_from(layout, self.data, self.take(struct.calcsize(layout)))[0]

    def text(self) -> str:
        size = self.scalar("Q")
        start = self.take(size)
        return self.data[start : start + size].decode("utf-8", errors="replace")

    def texts(self, count: int) -> list[str]:
        """Many strings; the loop is bare because a vocabulary has a hundred thousand."""
        data, end, position, read_size = self.data, len(self.data), self.position, struct.Struct("<Q").unpack_from
        result = []
        for _ in range(count):
            start = position + 8
            if start > end:
                break
            position = start + read_size(data, position)[0]
            if position > end:
                break
            result.append(data[start:position].decode("utf-8", errors="replace"))
        else:
            self.position = position
            return result
        raise self.cut_off()

    def count(self, smallest: int) -> int:
        """A number of items of at least `smallest` bytes each; refused when they cannot fit into the file."""
        count = int(self.scalar("Q"))
        if count * smallest > len(self.data) - self.position:
            raise ModelError(f"{self.path} announces {count:,} entries, more than fit into the file; it is damaged.")
        return count

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            return self.array()
        return self.scalar(self.code(kind))

    def array(self) -> Any:
        kind = self.scalar("I")
        if kind == _STRING:
            return self.texts(self.count(8))
        code = self.code(kind)
        size = struct.calcsize("<" + code)
        count = self.count(size)
        start = self.take(count * size)
        return np.frombuffer(self.data[start : self.position], dtype=np.dtype("<" + code)).tolist()

    def code(self, kind: int) -> str:
        """Struct code of a scalar kind; lists of lists are legal GGUF, but no model has them."""
        if kind not in _SCALARS:
            raise ModelError(f"{self.path} has a metadata value of the unknown kind {kind}; it is damaged or too new.")
        return _SCALARS[kind]


def read_header(path: Path) -> GgufHeader:
    """Read metadata and tensor table; the weights are not touched.

    Raises:
        ModelError: The file is missing, damaged, truncated, or another kind.
    """
    head = check_weight_file(path)
    if not head.startswith(MAGIC):
        raise ModelError(f"{path} is not a GGUF file: it starts with {head[:4]!r} instead of {MAGIC!r}.")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        cursor = _Cursor(path, data)
        try:
            return _read(cursor)
        except (struct.error, OverflowError, MemoryError) as error:
            raise ModelError(f"{path} has a damaged header ({error}); fetch it again.") from error


def _read(cursor: _Cursor) -> GgufHeader:
    cursor.take(len(MAGIC))
    version = cursor.scalar("I")
    if version not in (2, 3):
        turned = int.from_bytes(int(version).to_bytes(4, "little"), "big")
        why = "is for big-endian machines" if turned in (2, 3) else f"has GGUF version {version}"
        raise ModelError(f"{cursor.path} {why}; gptscope reads versions 2 and 3, little-endian.")
    tensor_count, pair_count = cursor.count(24), cursor.count(12)
    metadata: dict[str, Any] = {}
    for _ in range(pair_count):
        key = cursor.text()
        metadata[key] = cursor.value(cursor.scalar("I"))
    entries = [_table_entry(cursor) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 1 <= alignment <= 2**20:
        raise ModelError(f"{cursor.path}: general.alignment is {alignment!r}; the file is damaged.")
    start = -(-cursor.position // alignment) * alignment
    tensors = {}
    for name, dims, kind, offset in entries:
        tensors[name] = _located(cursor, name, dims, kind, start + offset)
    return GgufHeader(cursor.path, metadata, tensors)


def _table_entry(cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
    name = cursor.text()
    n_dims = cursor.scalar("I")
    if n_dims > _MAX_DIMS:
        raise ModelError(f"{cursor.path}: the tensor {name} has {n_dims} dimensions; the file is damaged.")
    dims = tuple(int(cursor.scalar("Q")) for _ in range(n_dims))
    return name, dims, int(cursor.scalar("I")), int(cursor.scalar("Q"))


def _located(cursor: _Cursor, name: str, dims: tuple[int, ...], kind: int, offset: int) -> GgufTensor:
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    try:
        quantisation = GGMLQuantizationType(kind)
        block, block_bytes = GGML_QUANT_SIZES[quantisation]
    except (ValueError, KeyError) as error:
        raise ModelError(
            f"{cursor.path}: the tensor {name} is stored in the unknown type {kind}; "
            "a newer `gguf` package may know it."
        ) from error
    row = dims[0] if dims else 1
    if row % block:
        raise ModelError(
            f"{cursor.path}: the tensor {name} has rows of {row}, "
            f"not a multiple of {quantisation.name}'s block of {block}."
        )
    size = prod(dims) // block * block_bytes
    if offset + size > len(cursor.data):
        raise ModelError(
            f"{cursor.path} is truncated: the tensor {name} ends at byte {offset + size:,}, but the file has "
            f"{len(cursor.data):,}. Fetch it again."
        )
    return GgufTensor(name, tuple(reversed(dims)), quantisation.name, kind, offset, size)


def read_tensor(path: Path, tensor: GgufTensor) -> FloatArray:
    """Read and dequantise one tensor to FP32.

    Raises:
        ModelError: There is no dequantisation for its type.
    """
    from gguf.constants import GGMLQuantizationType
    from gguf.quants import dequantize

    with path.open("rb") as file:
        data = np.fromfile(file, dtype=np.uint8, count=tensor.bytes, offset=tensor.offset)
    if data.size != tensor.bytes:
        raise ModelError(f"{path} became shorter while it was read.")
    try:
        rows = data.reshape(*tensor.shape[:-1], -1) if tensor.shape else data
        values: FloatArray = dequantize(rows, GGMLQuantizationType(tensor.type_id))
    except NotImplementedError as error:
        raise ModelError(
            f"{path}: the tensor {tensor.name} is stored as {tensor.type_name}, which cannot be dequantised; "
            "take a file with F16, Q8_0 or one of the Q4 types."
        ) from error
    return values.reshape(tensor.shape)
