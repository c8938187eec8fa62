"""Write and read the bundled model as an ordinary Hugging Face Llama folder."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

from gptscope.models.config import GPTConfig
from gptscope.models.gpt import GPT

END_OF_TEXT = "<|endoftext|>"
"""Stands before every document; also the model's only special token, both beginning and end."""

_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn.qkv.q": "self_attn.q_proj",
    "attn.qkv.k": "self_attn.k_proj",
    "attn.qkv.v": "self_attn.v_proj",
    "attn.out": "self_attn.o_proj",
    "mlp_norm": "post_attention_layernorm",
    "mlp.gate": "mlp.gate_proj",
    "mlp.up": "mlp.up_proj",
    "mlp.down": "mlp.down_proj",
}


def hugging_face_names(config: GPTConfig) -> dict[str, str]:
    """Hugging Face's name of each of our tensors; the tied output matrix has none, as transformers saves it."""
    names = {"embed.weight": "model.embed_tokens.weight", "norm.weight": "model.norm.weight"}
    for layer in range(config.n_layer):
        for ours, theirs in _LAYER_NAMES.items():
            names[f"blocks.{layer}.{ours}.weight"] = f"model.layers.{layer}.{theirs}.weight"
    return names


def end_of_text(tokenizer: Tokenizer) -> int:
    """Id of the end-of-text token."""
    number = tokenizer.token_to_id(END_OF_TEXT)
    if number is None:
        raise ValueError(f"This tokenizer has no {END_OF_TEXT} token.")
    return number


def write_folder(folder: Path, config: GPTConfig, weights: dict[str, Tensor], tokenizer: Tokenizer) -> None:
    """Write config, weights in BF16, and tokenizer, so that transformers loads the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        theirs: weights[ours].detach().to(torch.bfloat16).contiguous()
        for ours, theirs in hugging_face_names(config).items()
    }
    unfinished = folder / "model.safetensors.part"  # renamed when whole: whoever loads meanwhile sees the old file
    save_file(tensors, str(unfinished), metadata={"format": "pt"})
    unfinished.chmod(0o644)  # safetensors writes files that only their owner may read
    unfinished.replace(folder / "model.safetensors")
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    end = end_of_text(tokenizer)
    _write_json(folder / "config.json", _llama_config(config, end))
    _write_json(folder / "generation_config.json", {"bos_token_id": end, "eos_token_id": end, "max_length": 512})
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": END_OF_TEXT,
            "eos_token": END_OF_TEXT,
            "clean_up_tokenization_spaces": False,
            "model_max_length": config.context_length,
        },
    )


def read_folder(folder: Path) -> tuple[GPT, Tokenizer]:
    """Load what `write_folder` wrote into our own decoder, in FP32."""
    settings = json.loads((folder / "config.json").read_text())
    config = GPTConfig(
        family="llama",
        vocab_size=settings["vocab_size"],
        context_length=settings["max_position_embeddings"],
        n_layer=settings["num_hidden_layers"],
        d_model=settings["hidden_size"],
        n_head=settings["num_attention_heads"],
        n_kv_head=settings["num_key_value_heads"],
        d_head=settings["head_dim"],
        d_ff=settings["intermediate_size"],
        norm_eps=settings["rms_norm_eps"],
        rotary_dim=settings["head_dim"],
        tie_embeddings=settings["tie_word_embeddings"],
    )
    tensors = load_file(str(folder / "model.safetensors"))
    weights = {ours: tensors[theirs].float() for ours, theirs in hugging_face_names(config).items()}
    weights["lm_head.weight"] = weights["embed.weight"]
    model = GPT(config)
    model.load_state_dict(weights)
    return model.eval(), Tokenizer.from_file(str(folder / "tokenizer.json"))


def _llama_config(config: GPTConfig, end: int) -> dict[str, object]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": end,
        "eos_token_id": end,
        "head_dim": config.d_head,
        "hidden_act": "silu",
        "hidden_size": config.d_model,
        "initializer_range": 0.02,
        "intermediate_size": config.d_ff,
        "max_position_embeddings": config.context_length,
        "mlp_bias": False,
        "num_attention_heads": config.n_head,
        "num_hidden_layers": config.n_layer,
        "num_key_value_heads": config.n_kv_head,
        "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope_theta,
        "tie_word_embeddings": config.tie_embeddings,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": config.vocab_size,
    }


def _write_json(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n")
