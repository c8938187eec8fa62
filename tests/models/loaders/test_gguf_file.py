"""The header of a GGUF file, and dequantisation of types that only llama.cpp writes."""

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

from gptscope.models.loaders import ModelError, describe_model
from gptscope.models.loaders.gguf_file import read_header, read_tensor


@pytest.mark.parametrize("kind", [Kind.Q2_K, Kind.Q3_K, Kind.Q4_K, Kind.Q5_K, Kind.Q6_K, Kind.IQ4_NL, Kind.IQ4_XS])
def test_block_types_that_only_llama_cpp_writes_are_dequantised(tmp_path: Path, kind: Kind) -> None:
    block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    raw = np.random.default_rng(5).integers(0, 60, (6, 512 // block * block_bytes), dtype=np.uint8)
    out = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    out.add_tensor("first", np.ones(3, dtype=np.float32))
    out.add_tensor("t", raw, raw_dtype=kind)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    tensor = read_header(tmp_path / "m.gguf").tensors["t"]
    assert tensor.shape == (6, 512)
    assert np.array_equal(read_tensor(tmp_path / "m.gguf", tensor), gguf.quants.dequantize(raw, kind))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04 a zip file", "not a GGUF file"),
        (b"version https://git-lfs.github.com/spec/v1", "git lfs pull"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "GGUF version 1"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0), "more than fit"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**40), "more than fit"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**63) + b"x" * 40, "ends inside its header"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "names no architecture"),
    ],
)
def test_damaged_or_foreign_file_is_refused_with_its_reason(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=message):
        describe_model(str(path))
