"""A `config.json` from our own config, for models that come from a single file (GGUF, nanoGPT)."""

from typing import Any

from gptscope.models.config import GPTConfig, RopeScaling
from gptscope.models.loaders.base import ModelError

_LLAMA_KIN = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}


def config_fields(config: GPTConfig, eos_ids: tuple[int, ...]) -> dict[str, Any]:
    """The fields that transformers and our own loader read.

    Raises:
        ModelError: A family that this file does not know.
    """
    if config.family == "gpt2":
        fields = _gpt2(config)
    elif config.family in _LLAMA_KIN:
        fields = _llama(config)
    else:
        raise ModelError(
            f"A {config.family} model that does not come from a Hugging Face folder cannot be saved as one. Take the "
            "same model as a folder."
        )
    if eos_ids:
        fields["eos_token_id"] = list(eos_ids) if len(eos_ids) > 1 else eos_ids[0]
    return {
        "model_type": config.family,
        **fields,
        "vocab_size": config.vocab_size,
        "tie_word_embeddings": config.tie_embeddings,
        "torch_dtype": "float32",
    }


def shape_fields(config: GPTConfig) -> dict[str, Any]:
    """The fields of a `config.json` that pruning heads and MLP channels changes."""
    if config.family == "gpt2":
        return {"n_head": config.n_head, "n_inner": config.d_ff}
    fields = {"num_attention_heads": config.n_head, "intermediate_size": config.d_ff}
    if config.family in _LLAMA_KIN:
        fields |= {"num_key_value_heads": config.n_kv_head, "head_dim": config.d_head}
    return fields


def _gpt2(config: GPTConfig) -> dict[str, Any]:
    return {
        "architectures": ["GPT2LMHeadModel"],
        "n_positions": config.context_length,
        "n_embd": config.d_model,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "n_inner": config.d_ff,
        "activation_function": "gelu_new" if config.mlp == "gelu_tanh" else "gelu",
        "layer_norm_epsilon": config.norm_eps,
    }


def _llama(config: GPTConfig) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "architectures": [_LLAMA_KIN[config.family]],
        "hidden_act": "silu",
        "hidden_size": config.d_model,
        "intermediate_size": config.d_ff,
        "num_hidden_layers": config.n_layer,
        "num_attention_heads": config.n_head,
        "num_key_value_heads": config.n_kv_head,
        "head_dim": config.d_head,
        "max_position_embeddings": config.context_length,
        "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope_theta,
        "rope_scaling": None if config.rope_scaling is None else _scaling(config.rope_scaling),
        "sliding_window": config.sliding_window,
    }
    if config.family in ("llama", "qwen3"):
        fields["attention_bias"] = config.qkv_bias
    if config.family == "llama":
        fields["mlp_bias"] = config.mlp_bias
    if config.family in ("qwen2", "qwen3"):
        fields |= {"use_sliding_window": config.sliding_window is not None, "max_window_layers": 0}
    return fields


def _scaling(scaling: RopeScaling) -> dict[str, Any]:
    if scaling.kind == "linear":
        return {"rope_type": "linear", "factor": scaling.factor}
    return {
        "rope_type": "llama3",
        "factor": scaling.factor,
        "low_freq_factor": scaling.low_freq_factor,
        "high_freq_factor": scaling.high_freq_factor,
        "original_max_position_embeddings": scaling.original_context,
    }
