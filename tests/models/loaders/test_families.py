"""Reading config.json: old and new spellings, defaults, and fields that must not be ignored."""

import json
from pathlib import Path
from typing import Any

import pytest

from gptscope.models.config import GPTConfig, RopeScaling
from gptscope.models.loaders import ModelError, describe_model
from gptscope.models.loaders.families import find_family, read_config
from gptscope.models.loaders.settings import Settings

GPT2: dict[str, Any] = {
    "model_type": "gpt2",
    "vocab_size": 96,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
}
NEOX: dict[str, Any] = {
    "model_type": "gpt_neox",
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}


def read(fields: dict[str, Any]) -> GPTConfig:
    settings = Settings(Path("some/config.json"), fields)
    return read_config(find_family(settings), settings)


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}


@pytest.mark.parametrize(
    "spelling",
    [
        {"rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", **LLAMA3}},
        {"rope_theta": 5e5, "rope_scaling": {"type": "llama3", **LLAMA3}},
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, **LLAMA3}},
        {
            "rope_scaling": None,
            "rope_theta": 1.0,
            "rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, **LLAMA3},
        },
    ],
)
def test_old_and_new_spelling_of_rotary_settings_mean_the_same(
    settings: dict[str, Any], spelling: dict[str, Any]
) -> None:
    del settings["rope_theta"]
    config = read({**settings, **spelling})
    assert config.rope_theta == 5e5
    assert config.rope_scaling == RopeScaling(
        kind="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=16
    )


def test_linear_scaling_and_no_scaling(settings: dict[str, Any]) -> None:
    assert read({**settings, "rope_scaling": {"type": "linear", "factor": 2}}).rope_scaling == RopeScaling(
        kind="linear", factor=2.0
    )
    for none in ({"rope_scaling": None}, {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}):
        assert read({**settings, **none}).rope_scaling is None


@pytest.mark.parametrize("kind", ["dynamic", "yarn", "longrope", "mrope", "su"])
def test_rotary_scaling_that_we_lack_is_named(settings: dict[str, Any], kind: str) -> None:
    with pytest.raises(ModelError, match=rf"config\.json: rope_scaling has the rotary scaling '{kind}'"):
        read({**settings, "rope_scaling": {"rope_type": kind, "factor": 2.0}})


@pytest.mark.parametrize(
    ("base", "change", "named"),
    [
        ("llama", {"hidden_act": "gelu"}, "hidden_act"),
        ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ("llama", {"quantization_config": {"quant_method": "gptq"}}, "quantization_config"),
        ("llama", {"final_logit_softcapping": 30.0}, "final_logit_softcapping"),
        ("llama", {"residual_multiplier": 0.22}, "residual_multiplier"),
        ("llama", {"rope_parameters": {"full_attention": {"rope_theta": 1e4}}}, "rope_parameters"),
        ("llama", {"rope_scaling": {"type": "linear", "factor": 0}}, "rope_scaling"),
        ("llama", {"rope_scaling": {"type": "llama3", **LLAMA3, "low_freq_factor": 9.0}}, "high_freq_factor"),
        ("llama", {"rope_theta": -1.0}, "rope_theta"),
        ("llama", {"architectures": ["LlamaForSequenceClassification"]}, "architectures"),
        ("qwen2", {"use_sliding_window": True, "max_window_layers": 1}, "sliding_window"),
        (
            "qwen2",
            {"use_sliding_window": True, "layer_types": ["full_attention", "sliding_attention"]},
            "sliding_window",
        ),
        ("qwen2", {"use_sliding_window": True, "layer_types": ["linear_attention"]}, "layer_types"),
        ("mistral", {"sliding_window": 0}, "sliding_window"),
        ("gpt2", {"activation_function": "relu"}, "activation_function"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
        ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights"),
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention"),
        ("gpt2", {"n_head": 5}, "model width"),
        ("gpt_neox", {"hidden_act": "quick_gelu"}, "hidden_act"),
        ("gpt_neox", {"rotary_pct": 0.06}, "rotary_dim"),
    ],
)
def test_fields_that_would_change_the_output_are_refused_by_name(
    settings: dict[str, Any], base: str, change: dict[str, Any], named: str
) -> None:
    fields = {"gpt2": GPT2, "gpt_neox": NEOX}.get(base, {**settings, "model_type": base, "architectures": None})
    read(fields)  # sound without the change
    with pytest.raises(ModelError, match=named) as caught:
        read({**fields, **change})
    assert "config.json" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"hidden_size": 0}, "d_model"),
        ({"hidden_size": -32}, "d_head|d_model"),
        ({"vocab_size": 10**12}, "vocab_size"),
        ({"num_attention_heads": 0}, "n_head"),
        ({"num_key_value_heads": 3}, "n_kv_head"),
        ({"hidden_size": "32"}, "hidden_size"),
        ({"hidden_size": 32.0}, "hidden_size"),
        ({"num_hidden_layers": True}, "num_hidden_layers"),
        ({"vocab_size": None}, "vocab_size is missing"),
        ({"rms_norm_eps": 2.0}, "norm_eps"),
        ({"rms_norm_eps": "small"}, "rms_norm_eps"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({"head_dim": 7}, "rotary_dim"),
    ],
)
def test_impossible_sizes_are_refused_by_name(settings: dict[str, Any], change: dict[str, Any], named: str) -> None:
    with pytest.raises(ModelError, match=named) as caught:
        read({**settings, **change})
    assert "config.json" in str(caught.value)


def test_config_that_promises_more_layers_than_stored_fails_at_once(folder: Path, settings: dict[str, Any]) -> None:
    from gptscope.models.loaders import load_model

    (folder / "config.json").write_text(json.dumps({**settings, "num_hidden_layers": 2**31 - 1}))
    with pytest.raises(ModelError, match=r"model\.layers\.2\..* is missing"):
        load_model(str(folder))


def test_architecture_that_we_lack_is_named_with_what_we_support(folder: Path, settings: dict[str, Any]) -> None:
    (folder / "config.json").write_text(json.dumps({**settings, "model_type": "mamba"}))
    with pytest.raises(ModelError, match=r"'mamba' is not supported; gptscope runs gpt2 .*llama .*qwen3"):
        describe_model(str(folder))
    del settings["model_type"]
    (folder / "config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match="model_type is missing"):
        describe_model(str(folder))


@pytest.mark.parametrize("content", ["", "{", "[1]", '"text"', "\x00\x01", "[" * 100_000])
def test_config_that_is_no_json_object_is_refused(folder: Path, content: str) -> None:
    (folder / "config.json").write_text(content)
    with pytest.raises(ModelError, match=r"config\.json"):
        describe_model(str(folder))


def test_absent_fields_have_the_defaults_of_transformers() -> None:
    neox = read(NEOX)
    assert (neox.rotary_dim, neox.parallel_residual, neox.qkv_bias, neox.tie_embeddings) == (4, True, True, False)
    assert (neox.mlp, neox.context_length, neox.norm_eps) == ("gelu", 2048, 1e-5)
    gpt2 = read(GPT2)
    assert (gpt2.d_ff, gpt2.mlp, gpt2.tie_embeddings, gpt2.position) == (128, "gelu_tanh", True, "learned")


def test_each_llama_relative_has_its_own_biases_norms_and_window(settings: dict[str, Any]) -> None:
    fields = {**settings, "architectures": None, "attention_bias": True, "mlp_bias": True}
    llama = read({**fields, "model_type": "llama"})
    assert (llama.qkv_bias, llama.out_bias, llama.mlp_bias, llama.qk_norm) == (True, True, True, False)
    mistral = read({**fields, "model_type": "mistral"})
    assert (mistral.qkv_bias, mistral.mlp_bias, mistral.sliding_window) == (False, False, 4096)
    assert read({**fields, "model_type": "mistral", "sliding_window": None}).sliding_window is None
    qwen2 = read({**fields, "model_type": "qwen2", "sliding_window": 16})
    assert (qwen2.qkv_bias, qwen2.out_bias, qwen2.mlp_bias, qwen2.sliding_window) == (True, False, False, None)
    qwen3 = read({**fields, "model_type": "qwen3"})
    assert (qwen3.qkv_bias, qwen3.out_bias, qwen3.qk_norm, qwen3.d_head) == (True, True, True, 128)
