"""Training after a pruning: zeros stay, smaller layers stay small, and the parts that suffered most are found."""

import copy
from collections.abc import Callable

import pytest
import torch

from gptscope.models.compression.recovery import most_hurt
from gptscope.models.compression.tuning import Tuner, Tuning, choose_trained
from gptscope.models.gpt import GPT
from gptscope.models.levers import LeverContext, Machine
from gptscope.models.prepare import prepare
from gptscope.models.quantization.names import linears

Pruned = Callable[..., tuple[GPT, GPT]]


@pytest.fixture
def pruned(machine: Machine, tiny_model: Callable[[str], GPT]) -> Pruned:
    """The model as it was, and pruned."""

    def make(name: str, pruning: str, **options: float) -> tuple[GPT, GPT]:
        original = tiny_model(name).eval().requires_grad_(requires_grad=False)
        context = LeverContext(
            machine=machine, config=original.config, workload="prefill", precision="fp32", kv_cache="none",
            pruning=pruning, options={pruning: options},
        )  # fmt: skip
        return original, prepare(copy.deepcopy(original), context, torch.device("cpu")).model

    return make


def train(original: GPT, model: GPT, text_BL: torch.Tensor, layers: list[str] | None = None) -> list[float]:
    tuning = Tuning(mode="qat" if layers is None else "targeted", goal="original", steps=40, lr=3e-3, layers=2)
    choose_trained(model, tuning, layers or [])
    return list(Tuner(model, None, tuning, autocast=False, original=original).run(iter([text_BL] * 40)))


@pytest.mark.parametrize("pruning", ["magnitude", "2:4"])
def test_single_zeros_stay_zero_while_the_rest_learns(pruning: str, pruned: Pruned, text_BL: torch.Tensor) -> None:
    original, model = pruned("llama", pruning)
    zeros = {path: linear.weight == 0 for path, linear in linears(model).items()}
    assert sum(int(mask.sum()) for mask in zeros.values()) > 1000
    losses = train(original, model, text_BL)
    assert losses[-1] < 0.7 * losses[0]
    for path, linear in linears(model).items():
        assert torch.equal(linear.weight == 0, zeros[path]), path


def test_smaller_layers_learn_to_predict_as_the_whole_model_did(pruned: Pruned, text_BL: torch.Tensor) -> None:
    original, model = pruned("qwen3", "structured", heads=0.5, mlp=0.5)
    losses = train(original, model, text_BL)
    assert losses[-1] < 0.7 * losses[0]
    assert model.config.n_head == original.config.n_head // 2
    assert model.blocks[0].mlp.up.out_features == model.config.d_ff < original.config.d_ff


def test_the_part_that_hurts_most_is_found_and_only_it_is_trained(pruned: Pruned, text_BL: torch.Tensor) -> None:
    original, model = pruned("llama", "magnitude", amount=0.1)
    with torch.no_grad():
        model.blocks[1].mlp.down.weight.zero_()
    told: list[tuple[int, int]] = []
    worst = most_hurt(original, model, text_BL, 1, lambda done, total, _note: told.append((done, total)))
    assert worst == ["blocks.1.mlp.down"]
    assert told[-1] == (14, 14), "the head is not pruned"
    before = copy.deepcopy(model.state_dict())
    train(original, model, text_BL, worst)
    changed = [name for name, value in model.state_dict().items() if not torch.equal(value, before[name])]
    assert changed == [], "nothing grows where everything was pruned"
    train(original, model, text_BL, most_hurt(original, model, text_BL, 2, lambda *_told: None))
    changed = [name for name, value in model.state_dict().items() if not torch.equal(value, before[name])]
    assert len(changed) == 1


def test_parts_that_became_smaller_are_ranked_as_a_whole(pruned: Pruned, text_BL: torch.Tensor) -> None:
    original, model = pruned("gpt2", "structured", heads=0.5, mlp=0.0)
    untouched = copy.deepcopy(original.state_dict())
    found = most_hurt(original, model, text_BL, 1, lambda *_told: None)
    assert found in ([f"blocks.{layer}.attn.{name}" for name in ("qkv.q", "qkv.k", "qkv.v", "out")] for layer in (0, 1))
    assert all(torch.equal(value, untouched[name]) for name, value in original.state_dict().items())
