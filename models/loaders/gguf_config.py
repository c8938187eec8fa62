"""A GGUF file's metadata as the `config.json` that the same model has at Hugging Face, so both are read by one code."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gptscope.models.config import RopeScaling
from gptscope.models.loaders.base import ModelError
from gptscope.models.loaders.gguf_file import GgufHeader, read_tensor
from gptscope.models.loaders.settings import Settings

SUPPORTED = "llama (also Mistral, SmolLM, TinyLlama), qwen2, qwen3, gpt2 and gptneox"

_REFUSED_WHEN_SET = (
    "expert_count",
    "attention.max_alibi_bias",
    "attention.clamp_kqv",
    "attention.scale",
    "logit_scale",
    "residual_scale",
    "embedding_scale",
    "attn_logit_softcapping",
    "final_logit_softcapping",
)
"""Keys under the architecture's name that change the output and that the decoder does not honour."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """Metadata of one architecture, read with errors that name file and key."""

    header: GgufHeader
    architecture: str

    def settings(self) -> Settings:
        """The keys under the architecture's name, without that prefix."""
        prefix = f"{self.architecture}."
        inner = {key.removeprefix(prefix): value for key, value in self.header.metadata.items()}
        return Settings(self.header.path, inner)

    def rows(self, name: str) -> int:
        """First dimension of a tensor.

        Raises:
            ModelError: It is missing.
        """
        tensor = self.header.tensors.get(name)
        if tensor is None or len(tensor.shape) != 2:
            raise ModelError(f"{self.header.path}: the matrix {name} is missing; the file is incomplete or no GPT.")
        return tensor.shape[0]


def architecture_of(header: GgufHeader) -> str:
    """`general.architecture`.

    Raises:
        ModelError: It is missing, or the file is one piece of several.
    """
    name = header.metadata.get("general.architecture")
    if not isinstance(name, str):
        raise ModelError(f"{header.path} names no architecture (general.architecture); it is no GGUF model.")
    if header.metadata.get("split.count", 0) > 1:
        raise ModelError(
            f"{header.path} is one piece of {header.metadata['split.count']}; join them first "
            "(`llama-gguf-split --merge FIRST_PIECE JOINED.gguf`)."
        )
    return name


def hugging_face_settings(header: GgufHeader) -> Settings:
    """The equivalent `config.json`.

    Raises:
        ModelError: An architecture that we lack, or a setting that the decoder does not honour.
    """
    architecture = architecture_of(header)
    translate = TRANSLATIONS.get(architecture)
    if translate is None:
        raise ModelError(
            f"{header.path}: the architecture {architecture!r} is not supported; "
            f"of GGUF files gptscope runs {SUPPORTED}."
        )
    metadata = Metadata(header, architecture)
    settings = metadata.settings()
    for key in _REFUSED_WHEN_SET:
        if settings.optional(key):
            raise settings.error(
                f"{architecture}.{key}", f"is {settings.optional(key)}, which gptscope does not support"
            )
    fields = {
        "vocab_size": metadata.rows("token_embd.weight"),
        "tie_word_embeddings": "output.weight" not in header.tensors,
    }
    return Settings(header.path, {**fields, **translate(metadata, settings)})


def _gpt2(metadata: Metadata, settings: Settings) -> Mapping[str, Any]:
    return {
        "model_type": "gpt2",
        "n_positions": metadata.rows("position_embd.weight"),
        "n_embd": settings.integer("embedding_length"),
        "n_head": settings.integer("attention.head_count"),
        "n_layer": settings.integer("block_count"),
        "n_inner": settings.optional("feed_forward_length"),
        "layer_norm_epsilon": settings.number("attention.layer_norm_epsilon"),
    }


def _gpt_neox(metadata: Metadata, settings: Settings) -> Mapping[str, Any]:
    width, heads = settings.integer("embedding_length"), settings.integer("attention.head_count")
    d_head = width // max(heads, 1)
    rotated = settings.integer("rope.dimension_count", d_head)
    return {
        "model_type": "gpt_neox",
        "max_position_embeddings": settings.integer("context_length"),
        "hidden_size": width,
        "num_attention_heads": heads,
        "num_hidden_layers": settings.integer("block_count"),
        "intermediate_size": settings.integer("feed_forward_length"),
        "layer_norm_eps": settings.number("attention.layer_norm_epsilon"),
        "use_parallel_residual": settings.flag("use_parallel_residual", default=True),
        "attention_bias": "blk.0.attn_qkv.bias" in metadata.header.tensors,
        "rope_parameters": {
            "rope_theta": settings.number("rope.freq_base", 10_000.0),
            "partial_rotary_factor": rotated / max(d_head, 1),
            **_scaling(metadata, settings),
        },
    }


def _llama_kin(model_type: str) -> Callable[[Metadata, Settings], Mapping[str, Any]]:
    def translate(metadata: Metadata, settings: Settings) -> Mapping[str, Any]:
        width, heads = settings.integer("embedding_length"), settings.integer("attention.head_count")
        d_head = settings.integer("attention.key_length", width // max(heads, 1))
        for key in ("attention.value_length", "rope.dimension_count"):
            if settings.integer(key, d_head) != d_head:
                raise settings.error(
                    f"{metadata.architecture}.{key}",
                    f"must equal the head size {d_head}; other sizes are not supported",
                )
        window = settings.optional("attention.sliding_window") or None
        return {
            # llama.cpp files Mistral under llama; a sliding window tells the two apart
            "model_type": "mistral" if model_type == "llama" and window else model_type,
            "max_position_embeddings": settings.integer("context_length"),
            "hidden_size": width,
            "intermediate_size": settings.integer("feed_forward_length"),
            "num_hidden_layers": settings.integer("block_count"),
            "num_attention_heads": heads,
            "num_key_value_heads": settings.integer("attention.head_count_kv", heads),
            "head_dim": d_head,
            "rms_norm_eps": settings.number("attention.layer_norm_rms_epsilon"),
            "attention_bias": "blk.0.attn_q.bias" in metadata.header.tensors,
            "mlp_bias": "blk.0.ffn_up.bias" in metadata.header.tensors,
            "rope_parameters": {
                "rope_theta": settings.number("rope.freq_base", 10_000.0),
                **_scaling(metadata, settings),
            },
            # all layers slide or none does, which Qwen's spelling needs both other fields for
            "sliding_window": window,
            "use_sliding_window": window is not None,
            "max_window_layers": 0,
        }

    return translate


def _scaling(metadata: Metadata, settings: Settings) -> dict[str, Any]:
    """Rotary scaling: a kind in the metadata, or Llama 3.1's stored as a divisor per frequency."""
    if "rope_freqs.weight" in metadata.header.tensors:
        return _llama3_scaling(metadata, settings)
    kind = settings.optional("rope.scaling.type") or "none"
    factor = settings.optional("rope.scaling.factor") or settings.optional("rope.scale_linear")
    if kind == "none" and factor in (None, 0.0, 1.0):
        return {}
    return {"rope_type": "linear" if kind in ("none", "linear") else kind, "factor": factor}


def _llama3_scaling(metadata: Metadata, settings: Settings) -> dict[str, Any]:
    """Find the llama3 rule whose divisors the file stores; Meta's models differ in the factor only.

    Raises:
        ModelError: The divisors are of another rule.
    """
    header = metadata.header
    stored = read_tensor(header.path, header.tensors["rope_freqs.weight"]).reshape(-1)
    found = RopeScaling(kind="llama3", factor=float(stored.max()), original_context=8192)
    pairs = 2 * len(stored)
    exponent = np.arange(0, pairs, 2, dtype=np.float64) / pairs
    frequency = settings.number("rope.freq_base", 10_000.0) ** -exponent
    wavelength = 2 * np.pi / frequency
    low, high = found.low_freq_factor, found.high_freq_factor
    blend = ((found.original_context / wavelength - low) / (high - low)).clip(0.0, 1.0)
    expected = 1.0 / ((1 - blend) / found.factor + blend)
    if not np.allclose(stored, expected, rtol=1e-3):
        raise ModelError(
            f"{header.path}: rope_freqs.weight stretches the rotary frequencies by a rule other than Llama 3.1's, "
            "which gptscope does not support."
        )
    return {
        "rope_type": "llama3",
        "factor": found.factor,
        "low_freq_factor": low,
        "high_freq_factor": high,
        "original_max_position_embeddings": found.original_context,
    }


TRANSLATIONS: dict[str, Callable[[Metadata, Settings], Mapping[str, Any]]] = {
    "gpt2": _gpt2,
    "gptneox": _gpt_neox,
    "llama": _llama_kin("llama"),
    "qwen2": _llama_kin("qwen2"),
    "qwen3": _llama_kin("qwen3"),
}
