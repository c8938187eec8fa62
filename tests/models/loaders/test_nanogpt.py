"""nanoGPT checkpoints, against nanoGPT's own forward pass written out."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer as FastTokenizer
from torch import Tensor
from torch.nn import functional

from gptscope.models.loaders import ModelError, describe_model, load_model

SIZES = {"n_layer": 2, "n_head": 4, "n_embd": 32, "block_size": 48, "vocab_size": 320, "dropout": 0.0}


def make_state(*, bias: bool) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(11)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator) * 0.3

    state = {"transformer.wte.weight": normal(320, 32), "transformer.wpe.weight": normal(48, 32)}
    for layer in range(2):
        block = f"transformer.h.{layer}"
        shapes = {"attn.c_attn": (96, 32), "attn.c_proj": (32, 32), "mlp.c_fc": (128, 32), "mlp.c_proj": (32, 128)}
        for name, shape in shapes.items():
            state[f"{block}.{name}.weight"] = normal(*shape)
            if bias:
                state[f"{block}.{name}.bias"] = normal(shape[0])
    for norm in ("h.0.ln_1", "h.0.ln_2", "h.1.ln_1", "h.1.ln_2", "ln_f"):
        state[f"transformer.{norm}.weight"] = 1 + normal(32)
        if bias:
            state[f"transformer.{norm}.bias"] = normal(32)
    state["lm_head.weight"] = state["transformer.wte.weight"]
    return state


def nanogpt_forward(state: dict[str, Tensor], tokens: Tensor) -> Tensor:
    """`GPT.forward` of nanoGPT's model.py, written with functions."""

    def norm(x: Tensor, name: str) -> Tensor:
        return functional.layer_norm(x, (32,), state[f"{name}.weight"], state.get(f"{name}.bias"), 1e-5)

    def linear(x: Tensor, name: str) -> Tensor:
        return functional.linear(x, state[f"{name}.weight"], state.get(f"{name}.bias"))

    x = state["transformer.wte.weight"][tokens] + state["transformer.wpe.weight"][: tokens.shape[1]]
    for layer in range(2):
        block = f"transformer.h.{layer}"
        q, k, v = linear(norm(x, f"{block}.ln_1"), f"{block}.attn.c_attn").split(32, dim=2)
        q, k, v = (part.unflatten(-1, (4, 8)).transpose(1, 2) for part in (q, k, v))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + linear(y, f"{block}.attn.c_proj")
        x = x + linear(functional.gelu(linear(norm(x, f"{block}.ln_2"), f"{block}.mlp.c_fc")), f"{block}.mlp.c_proj")
    return functional.linear(norm(x, "transformer.ln_f"), state["lm_head.weight"])


def save(path: Path, state: dict[str, Tensor], **arguments: Any) -> str:
    content = {
        "model": state,
        "optimizer": {"state": {0: {"exp_avg": torch.zeros(64, 32)}}, "param_groups": []},
        "model_args": {**SIZES, **arguments},
        "iter_num": 5,
        "best_val_loss": torch.tensor(1.5),
        "config": {"out_dir": "out", "learning_rate": 6e-4, "compile": True, "init_from": "scratch"},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(content, path)
    return str(path)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("prefix", ["", "_orig_mod."])
def test_logits_equal_those_of_nanogpt(tmp_path: Path, bias: bool, prefix: str) -> None:
    state = make_state(bias=bias)
    path = save(tmp_path / "ckpt.pt", {prefix + name: value for name, value in state.items()}, bias=bias)
    tokens = torch.randint(0, 320, (2, 40), generator=torch.Generator().manual_seed(2))
    loaded = load_model(path)
    with torch.no_grad():
        torch.testing.assert_close(loaded.model(tokens), nanogpt_forward(state, tokens), atol=1e-4, rtol=0)
    assert loaded.model.config.mlp_bias == bias
    assert [note for note in loaded.description.notes if "not used" in note] == []


def test_causal_masks_of_old_checkpoints_are_not_mistaken_for_biases(tmp_path: Path) -> None:
    state = make_state(bias=True)
    state["transformer.h.0.attn.bias"] = torch.ones(1, 1, 48, 48)
    loaded = load_model(save(tmp_path / "ckpt.pt", state, bias=True))
    assert [note for note in loaded.description.notes if "not used" in note] == []


def test_output_folder_of_nanogpt_is_understood(tmp_path: Path) -> None:
    save(tmp_path / "out-shakespeare" / "ckpt.pt", make_state(bias=False), bias=False)
    description = describe_model(str(tmp_path / "out-shakespeare"))
    assert (description.name, description.source) == ("out-shakespeare", "nanogpt")
    assert (description.config.context_length, description.config.d_ff) == (48, 128)
    assert not description.has_tokenizer


def test_meta_pkl_is_never_opened(tmp_path: Path) -> None:
    marker = tmp_path / "code-was-run"

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, (f"touch {marker}",)

    import pickle

    (tmp_path / "meta.pkl").write_bytes(pickle.dumps({"stoi": Evil()}))
    loaded = load_model(save(tmp_path / "ckpt.pt", make_state(bias=False), bias=False))
    assert loaded.tokenizer is None
    assert any("meta.pkl is not opened" in note for note in loaded.description.notes)
    assert not marker.exists()


def test_tokenizer_beside_the_checkpoint_is_used(tmp_path: Path, byte_level_tokenizer: FastTokenizer) -> None:
    byte_level_tokenizer.save(str(tmp_path / "tokenizer.json"))
    loaded = load_model(save(tmp_path / "ckpt.pt", make_state(bias=False), bias=False))
    assert loaded.tokenizer is not None
    assert loaded.tokenizer.decode(loaded.tokenizer.encode("the boy")) == "the boy"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"model": {}, "model_args": {**SIZES, "n_head": 3}}, "multiple of the number of heads"),
        ({"model": {}, "model_args": {**SIZES, "vocab_size": -1}}, "vocab_size"),
        ({"model": {}, "model_args": {}}, "n_embd is missing"),
        ({"model": {}, "model_args": SIZES}, r"transformer\.wte\.weight is missing"),
        ({"model": [1, 2], "model_args": SIZES}, "no `model` entry"),
        ({"state_dict": {}}, "not a nanoGPT checkpoint"),
        ([1, 2, 3], "not a nanoGPT checkpoint"),
        (torch.zeros(3), "not a nanoGPT checkpoint"),
    ],
)
def test_other_torch_files_are_refused_with_their_reason(tmp_path: Path, content: Any, message: str) -> None:
    torch.save(content, tmp_path / "x.pt")
    with pytest.raises(ModelError, match=message) as caught:
        load_model(str(tmp_path / "x.pt"))
    assert "x.pt" in str(caught.value)


def test_checkpoint_that_wants_to_run_code_is_refused(tmp_path: Path) -> None:
    marker = tmp_path / "code-was-run"

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, (f"touch {marker}",)

    torch.save({"model": Evil(), "model_args": SIZES}, tmp_path / "ckpt.pt")
    for action in (describe_model, load_model):
        with pytest.raises(ModelError, match="contains Python code"):
            action(str(tmp_path / "ckpt.pt"))
    assert not marker.exists()


def test_random_bytes_are_called_damaged_without_advice_to_run_code(tmp_path):
    path = tmp_path / "ckpt.pt"
    path.write_bytes(bytes(range(256)) * 16)
    with pytest.raises(ModelError, match="damaged or foreign") as caught:
        describe_model(str(path))
    assert "weights_only" not in str(caught.value)
