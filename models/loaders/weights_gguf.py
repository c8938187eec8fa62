"""A GGUF file's tensors under the names and in the layout that the same model has at Hugging Face."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gptscope.models.config import GPTConfig
from gptscope.models.loaders.files import dominant
from gptscope.models.loaders.gguf_file import FloatArray, GgufHeader, GgufTensor, read_tensor

Rearrange = Callable[[FloatArray, GPTConfig], FloatArray]


@dataclass(frozen=True, slots=True)
class Layout:
    """How one architecture's tensors are called here and there, without `.weight` and `.bias`."""

    outer: Mapping[str, str]
    layer_prefix: str
    inner: Mapping[str, str]
    rearrange: Mapping[str, Rearrange]
    """What llama.cpp's converter did to a tensor, undone; by inner name."""
    transposed: frozenset[str] = frozenset()
    """Inner names whose matrices Hugging Face stores the other way round (`Conv1D`)."""


def _unrotate(values: FloatArray, heads: int) -> FloatArray:
    """Undo llama.cpp's reordering of rotary pairs: it puts (i, i + C/2) side by side, Hugging Face halves apart."""
    half = values.shape[0] // heads // 2
    return values.reshape(heads, half, 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def _unrotate_q(values: FloatArray, config: GPTConfig) -> FloatArray:
    return _unrotate(values, config.n_head)


def _unrotate_k(values: FloatArray, config: GPTConfig) -> FloatArray:
    return _unrotate(values, config.n_kv_head)


def _interleave_qkv(values: FloatArray, config: GPTConfig) -> FloatArray:
    """From all q, all k, all v back to q, k, v head by head, as GPT-NeoX has them."""
    grouped = values.reshape(3, config.n_head, config.d_head, *values.shape[1:])
    return grouped.swapaxes(0, 1).reshape(values.shape)


_LLAMA_OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_LLAMA_INNER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_QWEN = Layout(_LLAMA_OUTER, "model.layers", _LLAMA_INNER, {})

LAYOUTS: dict[str, Layout] = {
    "llama": Layout(_LLAMA_OUTER, "model.layers", _LLAMA_INNER, {"attn_q": _unrotate_q, "attn_k": _unrotate_k}),
    "qwen2": _QWEN,
    "qwen3": _QWEN,
    "gpt2": Layout(
        {
            "token_embd": "transformer.wte",
            "position_embd": "transformer.wpe",
            "output_norm": "transformer.ln_f",
            "output": "lm_head",
        },
        "transformer.h",
        {
            "attn_norm": "ln_1",
            "attn_qkv": "attn.c_attn",
            "attn_output": "attn.c_proj",
            "ffn_norm": "ln_2",
            "ffn_up": "mlp.c_fc",
            "ffn_down": "mlp.c_proj",
        },
        {},
        frozenset({"attn_qkv", "attn_output", "ffn_up", "ffn_down"}),
    ),
    "gptneox": Layout(
        {"token_embd": "gpt_neox.embed_in", "output_norm": "gpt_neox.final_layer_norm", "output": "embed_out"},
        "gpt_neox.layers",
        {
            "attn_norm": "input_layernorm",
            "attn_qkv": "attention.query_key_value",
            "attn_output": "attention.dense",
            "ffn_norm": "post_attention_layernorm",
            "ffn_up": "mlp.dense_h_to_4h",
            "ffn_down": "mlp.dense_4h_to_h",
        },
        {"attn_qkv": _interleave_qkv},
    ),
}


@dataclass(frozen=True, slots=True)
class _Entry:
    tensor: GgufTensor
    inner: str | None
    transposed: bool


class GgufWeights:
    """`Weights` of a GGUF file, dequantised to FP32 one tensor at a time."""

    def __init__(self, header: GgufHeader, architecture: str, config: GPTConfig) -> None:
        self._header = header
        self._layout = LAYOUTS[architecture]
        self._config = config
        self._entries: dict[str, _Entry] = {}
        for tensor in header.tensors.values():
            name, inner = self._rename(tensor.name)
            transposed = inner in self._layout.transposed and len(tensor.shape) == 2
            self._entries[name] = _Entry(tensor, inner, transposed)

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {
            name: tuple(reversed(entry.tensor.shape)) if entry.transposed else entry.tensor.shape
            for name, entry in self._entries.items()
        }

    @property
    def format(self) -> str:
        return storage_format(self._header)

    def file_of(self, name: str) -> str:
        del name
        return str(self._header.path)

    def label(self, name: str) -> str:
        """The GGUF name of a Hugging Face name."""
        entry = self._entries.get(name)
        if entry is not None:
            return entry.tensor.name
        stem, _, kind = name.rpartition(".")
        for theirs, here in self._layout.outer.items():
            if stem == here:
                return f"{theirs}.{kind}"
        layer, _, rest = stem.removeprefix(f"{self._layout.layer_prefix}.").partition(".")
        for theirs, here in self._layout.inner.items():
            if rest == here:
                return f"blk.{layer}.{theirs}.{kind}"
        return name

    def read(self, name: str) -> Tensor:
        entry = self._entries[name]
        values = read_tensor(self._header.path, entry.tensor)
        rearrange = self._layout.rearrange.get(entry.inner or "")
        if rearrange is not None:
            values = rearrange(values, self._config)
        if entry.transposed:
            values = values.T
        return torch.from_numpy(np.require(values, requirements="W"))

    def _rename(self, name: str) -> tuple[str, str | None]:
        """Hugging Face name and inner name; names that the layout does not know stay as they are."""
        stem, _, kind = name.rpartition(".")
        if stem in self._layout.outer:
            return f"{self._layout.outer[stem]}.{kind}", None
        block, _, rest = stem.partition(".")
        layer, _, inner = rest.partition(".")
        if block == "blk" and layer.isdecimal() and inner in self._layout.inner:
            return f"{self._layout.layer_prefix}.{int(layer)}.{self._layout.inner[inner]}.{kind}", inner
        return name, None


def storage_format(header: GgufHeader) -> str:
    """Types of the stored tensors, most bytes first."""
    stored_bytes: dict[str, int] = {}
    for tensor in header.tensors.values():
        stored_bytes[tensor.type_name] = stored_bytes.get(tensor.type_name, 0) + tensor.bytes
    return dominant(stored_bytes)
