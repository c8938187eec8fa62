"""Tiny model folders, written without transformers so that these tests stay fast."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor

from gptscope.models.loaders.families import FAMILIES
from gptscope.models.loaders.settings import Settings

SETTINGS: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 320,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "eos_token_id": 2,
}
TEXT = (
    "The old man had taught the boy to fish and the boy loved him. It's 12345 days, isn't it? "
    'Tokens per second; naïve café; 今日は世界; Ωmega — dashes… "quotes" & (parentheses) [brackets].'
    "\n\n\tTabs  and   spaces\r\n"
)


@pytest.fixture
def settings() -> dict[str, Any]:
    """Fields of a small Llama's config.json, free to change."""
    return dict(SETTINGS)


@pytest.fixture
def random_tensors() -> Callable[[dict[str, Any]], dict[str, Tensor]]:
    """Random weights for a config, under Hugging Face's names."""

    def make(fields: dict[str, Any]) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(3)
        family = FAMILIES[fields["model_type"]]
        config = family.config(Settings(Path("config.json"), fields))
        return {
            stored.name: torch.randn(stored.shape, generator=generator) * 0.3 + ("norm.weight" in stored.name)
            for stored in family.plan(config, ())
        }

    return make


@pytest.fixture
def write_folder(random_tensors: Callable[[dict[str, Any]], dict[str, Tensor]]) -> Callable[..., dict[str, Tensor]]:
    """Write config.json and model.safetensors; return the tensors written."""

    def write(folder: Path, fields: dict[str, Any], tensors: dict[str, Tensor] | None = None) -> dict[str, Tensor]:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(fields))
        tensors = random_tensors(fields) if tensors is None else tensors
        save_file(tensors, str(folder / "model.safetensors"))
        return tensors

    return write


@pytest.fixture
def folder(tmp_path: Path, settings: dict[str, Any], write_folder: Callable[..., dict[str, Tensor]]) -> Path:
    """A small sound Llama folder without a tokenizer."""
    path = tmp_path / "little-llama"
    write_folder(path, settings)
    return path


@pytest.fixture(scope="session")
def byte_level_tokenizer() -> Tokenizer:
    """A byte-level BPE tokenizer with GPT-2's splitting rule, trained on a few lines."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT] * 3, trainer)
    return tokenizer


@pytest.fixture(scope="session")
def tricky_texts() -> tuple[str, ...]:
    """Texts on which tokenizers like to differ."""
    return (
        TEXT,
        "",
        " ",
        "   leading and trailing   ",
        "\n\n\n",
        "a\n b\r\n\tc",
        "don't we'll I'M THEY'RE",
        "1 22 333 4444 3.14159 1e-5",
        "x" * 40,
        "snake_case(foo, bar) == {'a': [1, 2]}",
        "日本語 한국어 العربية 🙂👩‍👩‍👧",
        "e\u0301 (decomposed) é (composed)",
        "<|endoftext|>text<|im_end|> and <|im_start|>user",
    )
