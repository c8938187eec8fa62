"""A training step learns, repeats itself exactly, and no lever changes what it learns."""

from collections.abc import Callable

import pytest
import torch

from gptscope.models.prepare import PreparedModel
from gptscope.models.training import TrainStep

Prepare = Callable[..., PreparedModel]
FUSIONS = ("attention", "qkv", "mlp", "norm", "optimizer")


def losses(model: PreparedModel, text_BL: torch.Tensor, steps: int = 5) -> list[float]:
    step = TrainStep(model, lr=1e-3)
    return [step(text_BL).item() for _ in range(steps)]


def test_the_first_loss_is_the_mean_surprise_of_the_next_tokens(prepared: Prepare, text_BL: torch.Tensor) -> None:
    model = prepared("gpt2", workload="train")
    with torch.no_grad():
        chances = model.forward(text_BL).log_softmax(-1)
    surprises = [-chances[b, t, text_BL[b, t + 1]] for b in range(2) for t in range(23)]
    assert losses(model, text_BL, 1)[0] == pytest.approx(torch.stack(surprises).mean().item(), rel=1e-5)


def test_the_loss_falls_and_repeats_exactly(prepared: Prepare, text_BL: torch.Tensor) -> None:
    first = losses(prepared("llama", workload="train"), text_BL)
    assert first[-1] < first[0] - 0.1
    assert losses(prepared("llama", workload="train"), text_BL) == first


def test_every_fusion_gives_the_same_loss_curve(family: str, prepared: Prepare, text_BL: torch.Tensor) -> None:
    expected = losses(prepared(family, workload="train"), text_BL)
    for fusions in (*((name,) for name in FUSIONS), FUSIONS):
        found = losses(prepared(family, *fusions, workload="train"), text_BL)
        assert found == pytest.approx(expected, abs=1e-4), fusions


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_16_bit_training_keeps_fp32_weights_and_follows_the_curve(
    precision: str, prepared: Prepare, text_BL: torch.Tensor
) -> None:
    expected = losses(prepared("llama", workload="train"), text_BL)
    for fusions in ((), FUSIONS):
        model = prepared("llama", *fusions, workload="train", precision=precision)
        found = losses(model, text_BL)
        assert found == pytest.approx(expected, abs=0.05), fusions
        assert found != expected, "the products ran in FP32"
        assert {parameter.dtype for parameter in model.model.parameters()} == {torch.float32}


def test_fp16_scales_the_loss_and_skips_a_step_whose_gradients_overflow(
    prepared: Prepare, text_BL: torch.Tensor
) -> None:
    model = prepared("llama", workload="train", precision="fp16")
    step = TrainStep(model, lr=1e-3)
    step(text_BL)
    model.model.norm.weight.register_hook(lambda gradient: gradient * float("inf"))
    before = model.model.embed.weight.clone()
    step(text_BL)
    assert torch.equal(model.model.embed.weight, before)


@pytest.mark.parametrize(("fusions", "fused"), [((), False), (("optimizer",), True)])
def test_the_optimizer_lever_picks_the_form_of_adamw(fusions: tuple[str, ...], fused: bool, prepared: Prepare) -> None:
    group = prepared("llama", *fusions, workload="train").make_optimizer(1e-3).param_groups[0]
    assert bool(group["fused"]) is fused
    assert not group["foreach"]
