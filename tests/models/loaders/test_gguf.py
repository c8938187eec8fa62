"""GGUF files: every architecture and storage type against the same weights in a Hugging Face folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import Tensor

from gptscope.models.loaders import ModelError, describe_model, load_model
from gptscope.models.loaders.gguf_file import read_header

WriteFolder = Callable[..., dict[str, Tensor]]

LLAMA_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
GPT2_NAMES = {
    "transformer.wte": "token_embd",
    "transformer.wpe": "position_embd",
    "transformer.ln_f": "output_norm",
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}
NEOX_NAMES = {
    "gpt_neox.embed_in": "token_embd",
    "gpt_neox.final_layer_norm": "output_norm",
    "embed_out": "output",
    "input_layernorm": "attn_norm",
    "attention.query_key_value": "attn_qkv",
    "attention.dense": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.dense_h_to_4h": "ffn_up",
    "mlp.dense_4h_to_h": "ffn_down",
}
GPT2_FIELDS = {"model_type": "gpt2", "vocab_size": 320, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
NEOX_FIELDS = {
    "model_type": "gpt_neox",
    "vocab_size": 320,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "rotary_pct": 0.5,
    "use_parallel_residual": False,
}


def llama_cpp_name(name: str, names: dict[str, str]) -> str:
    stem, _, kind = name.rpartition(".")
    if stem in names:
        return f"{names[stem]}.{kind}"
    parts = stem.split(".")
    layer = next(index for index, part in enumerate(parts) if part.isdecimal())
    return f"blk.{parts[layer]}.{names['.'.join(parts[layer + 1 :])]}.{kind}"


def permuted(weight: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """What llama.cpp's convert_hf_to_gguf.py does to q and k of Llama models (`LlamaModel.permute`)."""
    return (
        weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)
    )


def converted(name: str, weight: np.ndarray[Any, Any], architecture: str) -> np.ndarray[Any, Any]:
    """The same for every architecture."""
    if architecture == "llama" and ".attn_q." in name:
        return permuted(weight, 4)
    if architecture == "llama" and ".attn_k." in name:
        return permuted(weight, 2)
    if architecture == "gpt2" and weight.ndim == 2 and "blk." in name:
        return weight.T.copy()
    if architecture == "gptneox" and ".attn_qkv." in name:
        return weight.reshape(4, 3, 8, *weight.shape[1:]).swapaxes(0, 1).reshape(weight.shape).copy()
    return weight


class Writer:
    """Writes small GGUF files with llama.cpp's own library."""

    def __init__(self, path: Path, architecture: str) -> None:
        self.path = path
        self.architecture = architecture
        self.out = gguf.GGUFWriter(path, architecture)

    def llama_settings(self, **extra: Any) -> "Writer":
        out = self.out
        out.add_context_length(64)
        out.add_embedding_length(32)
        out.add_block_count(2)
        out.add_feed_forward_length(extra.get("d_ff", 48))
        out.add_head_count(4)
        out.add_head_count_kv(2)
        out.add_layer_norm_rms_eps(1e-5)
        out.add_rope_freq_base(10000.0)
        return self

    def tensors(self, tensors: dict[str, Tensor], names: dict[str, str], kind: Kind = Kind.F32) -> "Writer":
        for name, tensor in tensors.items():
            theirs = llama_cpp_name(name, names)
            values = converted(theirs, tensor.float().numpy(), self.architecture)
            stored = kind if values.ndim == 2 else Kind.F32
            if stored == Kind.F32:
                self.out.add_tensor(theirs, values)
            elif stored == Kind.F16:
                self.out.add_tensor(theirs, values.astype(np.float16))
            else:
                self.out.add_tensor(theirs, gguf.quants.quantize(values, stored), raw_dtype=stored)
        return self

    def write(self) -> str:
        self.out.write_header_to_file()
        self.out.write_kv_data_to_file()
        self.out.write_tensors_to_file()
        self.out.close()
        return str(self.path)


@pytest.fixture
def small_gguf(tmp_path: Path, settings: dict[str, Any], random_tensors: Callable[..., dict[str, Tensor]]) -> Path:
    """A sound little Llama."""
    writer = Writer(tmp_path / "little.gguf", "llama").llama_settings()
    return Path(writer.tensors(random_tensors(settings), LLAMA_NAMES).write())


def logits(source: str) -> Tensor:
    tokens = torch.randint(0, 320, (2, 40), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        result: Tensor = load_model(source).model(tokens)
    return result


@pytest.mark.parametrize("tied", [False, True])
def test_llama_file_gives_the_logits_of_the_folder(
    tmp_path: Path, settings: dict[str, Any], write_folder: WriteFolder, tied: bool
) -> None:
    tensors = write_folder(tmp_path / "hf", {**settings, "tie_word_embeddings": tied})
    path = Writer(tmp_path / "m.gguf", "llama").llama_settings().tensors(tensors, LLAMA_NAMES).write()
    torch.testing.assert_close(logits(path), logits(str(tmp_path / "hf")), atol=1e-5, rtol=0)
    assert describe_model(path).config.tie_embeddings == tied
    assert load_model(path).description.notes == ("No tokenizer: the file has no vocabulary.",)


def test_llama_biases_and_mistral_window(tmp_path: Path, settings: dict[str, Any], write_folder: WriteFolder) -> None:
    fields = {**settings, "attention_bias": True, "mlp_bias": True}
    tensors = write_folder(tmp_path / "biased", fields)
    path = Writer(tmp_path / "b.gguf", "llama").llama_settings().tensors(tensors, LLAMA_NAMES).write()
    torch.testing.assert_close(logits(path), logits(str(tmp_path / "biased")), atol=1e-5, rtol=0)
    tensors = write_folder(tmp_path / "mistral", {**settings, "model_type": "mistral", "sliding_window": 5})
    writer = Writer(tmp_path / "m.gguf", "llama").llama_settings()
    writer.out.add_sliding_window(5)
    path = writer.tensors(tensors, LLAMA_NAMES).write()
    torch.testing.assert_close(logits(path), logits(str(tmp_path / "mistral")), atol=1e-5, rtol=0)


@pytest.mark.parametrize("architecture", ["qwen2", "qwen3"])
def test_qwen_files_give_the_logits_of_the_folder(
    tmp_path: Path, settings: dict[str, Any], write_folder: WriteFolder, architecture: str
) -> None:
    head_dim = 16 if architecture == "qwen3" else 8
    tensors = write_folder(tmp_path / "hf", {**settings, "model_type": architecture, "head_dim": head_dim})
    writer = Writer(tmp_path / "m.gguf", architecture).llama_settings()
    writer.out.add_key_length(head_dim)
    writer.out.add_value_length(head_dim)
    path = writer.tensors(tensors, LLAMA_NAMES).write()
    torch.testing.assert_close(logits(path), logits(str(tmp_path / "hf")), atol=1e-5, rtol=0)


def test_gpt2_file_gives_the_logits_of_the_folder(tmp_path: Path, write_folder: WriteFolder) -> None:
    tensors = write_folder(tmp_path / "hf", GPT2_FIELDS)
    writer = Writer(tmp_path / "m.gguf", "gpt2")
    writer.out.add_context_length(64)
    writer.out.add_embedding_length(32)
    writer.out.add_block_count(2)
    writer.out.add_feed_forward_length(128)
    writer.out.add_head_count(4)
    writer.out.add_layer_norm_eps(1e-5)
    path = writer.tensors(tensors, GPT2_NAMES).write()
    torch.testing.assert_close(logits(path), logits(str(tmp_path / "hf")), atol=1e-5, rtol=0)


def test_gptneox_file_gives_the_logits_of_the_folder(tmp_path: Path, write_folder: WriteFolder) -> None:
    tensors = write_folder(tmp_path / "hf", NEOX_FIELDS)
    writer = Writer(tmp_path / "m.gguf", "gptneox")
    writer.out.add_context_length(64)
    writer.out.add_embedding_length(32)
    writer.out.add_block_count(2)
    writer.out.add_feed_forward_length(64)
    writer.out.add_head_count(4)
    writer.out.add_layer_norm_eps(1e-5)
    writer.out.add_rope_dimension_count(4)
    writer.out.add_parallel_residual(use=False)
    path = writer.tensors(tensors, NEOX_NAMES).write()
    torch.testing.assert_close(logits(path), logits(str(tmp_path / "hf")), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("kind", "tolerance"),
    [
        (Kind.F16, 1e-3),
        (Kind.BF16, 1e-2),
        (Kind.Q8_0, 2e-2),
        (Kind.Q5_0, 0.1),
        (Kind.Q5_1, 0.1),
        (Kind.Q4_0, 0.2),
        (Kind.Q4_1, 0.2),
    ],
)
def test_storage_types_are_read_to_their_own_accuracy(
    tmp_path: Path, settings: dict[str, Any], write_folder: WriteFolder, kind: Kind, tolerance: float
) -> None:
    fields = {**settings, "intermediate_size": 64}
    tensors = write_folder(tmp_path / "hf", fields)
    path = Writer(tmp_path / "m.gguf", "llama").llama_settings(d_ff=64).tensors(tensors, LLAMA_NAMES, kind).write()
    loaded, exact = load_model(path), load_model(str(tmp_path / "hf")).model.state_dict()
    for name, value in loaded.model.state_dict().items():
        assert (value - exact[name]).abs().max() <= tolerance * exact[name].abs().max(), name
    assert loaded.description.weight_format == f"{kind.name}, F32"
    quantised = [note for note in loaded.description.notes if "dequantised" in note]
    assert len(quantised) == (0 if kind in (Kind.F16, Kind.BF16) else 1)


def test_stored_llama3_divisors_are_honoured(
    tmp_path: Path, settings: dict[str, Any], write_folder: WriteFolder
) -> None:
    rope = {
        "rope_type": "llama3",
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    fields = {**settings, "head_dim": 32, "rope_theta": 500000.0, "rope_scaling": rope}
    tensors = write_folder(tmp_path / "hf", fields)

    def written(name: str, divisors: np.ndarray[Any, Any]) -> str:
        writer = Writer(tmp_path / name, "llama").llama_settings()
        writer.out.add_key_length(32)
        writer.out.add_value_length(32)
        writer.out.kv_data[0].pop("llama.rope.freq_base")
        writer.out.add_rope_freq_base(500000.0)
        writer.out.add_tensor("rope_freqs.weight", divisors)
        return writer.tensors(tensors, LLAMA_NAMES).write()

    path = written("m.gguf", llama3_divisors(500000.0, 32, 32.0))
    expected = load_model(str(tmp_path / "hf")).model
    assert describe_model(path).config.rope_scaling == expected.config.rope_scaling
    torch.testing.assert_close(logits(path), logits(str(tmp_path / "hf")), atol=1e-5, rtol=0)
    other = written("other.gguf", np.linspace(1, 5, 16, dtype=np.float32))
    with pytest.raises(ModelError, match=r"rope_freqs\.weight"):
        describe_model(other)


def llama3_divisors(base: float, d_head: int, factor: float) -> np.ndarray[Any, Any]:
    """As llama.cpp's convert_hf_to_gguf.py writes them (`LlamaModel.generate_extra_tensors`)."""
    divisors = []
    for index in range(0, d_head, 2):
        wavelength = 2 * np.pi * base ** (index / d_head)
        if wavelength < 8192 / 4.0:
            divisors.append(1.0)
        elif wavelength > 8192 / 1.0:
            divisors.append(factor)
        else:
            smooth = (8192 / wavelength - 1.0) / (4.0 - 1.0)
            divisors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(divisors, dtype=np.float32)


def test_linear_scaling_is_honoured_and_other_kinds_are_refused(
    tmp_path: Path, settings: dict[str, Any], random_tensors: Callable[..., dict[str, Tensor]]
) -> None:
    for kind in (gguf.RopeScalingType.LINEAR, gguf.RopeScalingType.YARN):
        writer = Writer(tmp_path / f"{kind.value}.gguf", "llama").llama_settings()
        writer.out.add_rope_scaling_type(kind)
        writer.out.add_rope_scaling_factor(2.0)
        writer.tensors(random_tensors(settings), LLAMA_NAMES).write()
    scaling = describe_model(str(tmp_path / "linear.gguf")).config.rope_scaling
    assert scaling is not None
    assert (scaling.kind, scaling.factor) == ("linear", 2.0)
    with pytest.raises(ModelError, match="yarn"):
        describe_model(str(tmp_path / "yarn.gguf"))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("general.architecture", "mamba", "'mamba' is not supported; of GGUF files gptscope runs llama"),
        ("llama.expert_count", 8, "llama.expert_count is 8"),
        ("llama.attention.value_length", 4, "llama.attention.value_length"),
        ("split.count", 3, "one piece of 3"),
        ("llama.embedding_length", 30, "d_head|shape|head"),
        ("llama.block_count", 0, "n_layer"),
    ],
)
def test_settings_that_the_decoder_lacks_are_named(
    tmp_path: Path,
    settings: dict[str, Any],
    random_tensors: Callable[..., dict[str, Tensor]],
    key: str,
    value: Any,
    message: str,
) -> None:
    writer = Writer(tmp_path / "m.gguf", "llama").llama_settings()
    writer.out.kv_data[0].pop(key, None)
    (writer.out.add_string if isinstance(value, str) else writer.out.add_uint32)(key, value)
    path = writer.tensors(random_tensors(settings), LLAMA_NAMES).write()
    with pytest.raises(ModelError, match=message) as caught:
        load_model(path)
    assert "m.gguf" in str(caught.value)


def test_missing_and_misshapen_tensors_are_named_as_in_the_file(
    tmp_path: Path, settings: dict[str, Any], random_tensors: Callable[..., dict[str, Tensor]]
) -> None:
    tensors = random_tensors(settings)
    value = tensors.pop("model.layers.1.mlp.up_proj.weight")
    path = Writer(tmp_path / "a.gguf", "llama").llama_settings().tensors(tensors, LLAMA_NAMES).write()
    with pytest.raises(ModelError, match=r"blk\.1\.ffn_up\.weight is missing"):
        load_model(path)
    tensors["model.layers.1.mlp.up_proj.weight"] = value[:40]
    path = Writer(tmp_path / "b.gguf", "llama").llama_settings().tensors(tensors, LLAMA_NAMES).write()
    with pytest.raises(ModelError, match=r"blk\.1\.ffn_up\.weight has shape \[40, 32\], but .*\[48, 32\]"):
        load_model(path)


def test_file_cut_anywhere_is_refused(small_gguf: Path) -> None:
    whole = small_gguf.read_bytes()
    for keep in (*range(1, 2500, 41), len(whole) // 2, len(whole) - 64):
        small_gguf.write_bytes(whole[:keep])
        with pytest.raises(ModelError, match=r"little\.gguf"):
            describe_model(str(small_gguf))


@hypothesis_settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 2200), value=st.integers(0, 255))
def test_any_changed_header_byte_gives_a_model_or_a_sentence(small_gguf: Path, position: int, value: int) -> None:
    content = bytearray(small_gguf.read_bytes())
    content[position] = value
    damaged = small_gguf.with_name("damaged.gguf")
    damaged.write_bytes(content)
    problem = ""
    try:
        model = load_model(str(damaged)).model
    except ModelError as error:
        problem = str(error)
    if problem:
        assert "damaged.gguf" in problem
    else:
        assert model.embed.weight.shape == (model.config.vocab_size, model.config.d_model)


def test_header_agrees_with_the_reader_of_the_gguf_package(small_gguf: Path) -> None:
    ours, theirs = read_header(small_gguf), gguf.GGUFReader(small_gguf)
    assert {name: tensor.offset for name, tensor in ours.tensors.items()} == {
        tensor.name: tensor.data_offset for tensor in theirs.tensors
    }
    assert ours.metadata["llama.embedding_length"] == theirs.fields["llama.embedding_length"].contents()
