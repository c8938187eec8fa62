"""Presets: random weights, and labelled so."""

import pytest
import torch

from gptscope.models.config import PRESETS
from gptscope.models.loaders import ModelError, describe_model, fetch_model, load_model


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_described_as_random(name: str) -> None:
    description = describe_model(f"preset:{name}")
    assert description.config == PRESETS[name]
    assert description.random_weights
    assert not description.has_tokenizer
    assert description.weight_file_bytes == 0
    assert "Random weights" in description.notes[0]


def test_same_seed_same_weights_other_seed_other_weights() -> None:
    first, again = (load_model("preset:tiny", seed=5).model.state_dict() for _ in range(2))
    other = load_model("preset:tiny", seed=6).model.state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["embed.weight"], other["embed.weight"])


def test_weights_start_as_gpt2_starts() -> None:
    loaded = load_model("preset:tiny")
    model = loaded.model
    assert loaded.description.random_weights
    assert loaded.tokenizer is None
    assert model.embed.weight.detach().std().item() == pytest.approx(0.02, rel=0.05)
    assert torch.equal(model.get_parameter("blocks.0.attn_norm.weight"), torch.ones(64))
    assert model.lm_head.weight is model.embed.weight
    assert not model.training
    with torch.no_grad():
        assert torch.isfinite(model(torch.zeros(1, 8, dtype=torch.long))).all()


def test_16_bit_preset_is_the_rounded_one() -> None:
    wide, narrow = load_model("preset:tiny").model, load_model("preset:tiny", dtype=torch.bfloat16).model
    assert torch.equal(wide.embed.weight.bfloat16(), narrow.embed.weight)
    assert narrow.lm_head.weight is narrow.embed.weight


def test_unknown_preset_is_told_the_others() -> None:
    with pytest.raises(ModelError, match=r"no preset:huge; the presets are preset:gpt2-124m, .*preset:tiny"):
        load_model("preset:huge")


def test_there_is_nothing_to_fetch() -> None:
    with pytest.raises(ModelError, match="nothing to fetch"):
        fetch_model("preset:tiny")
