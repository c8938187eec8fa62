"""Which layers suffer, and smoothing."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

from gptscope.models.calibration import CalibrationText
from gptscope.models.gpt import GPT
from gptscope.models.prepare import PreparedModel
from gptscope.models.quantization.layers import Int8DynamicLinear
from gptscope.models.quantization.names import linears, set_module
from gptscope.models.quantization.observing import observe
from gptscope.models.quantization.ranges import weight_limits
from gptscope.models.quantization.sensitivity import layer_errors, worst
from gptscope.models.quantization.smoothing import smooth, smoothed_ranges

FUSIONS = ("attention", "qkv", "mlp", "norm")


def silent(done: int, total: int, note: str) -> None:
    del done, total, note


def make(path: str, linear: nn.Linear) -> nn.Module:
    del path
    limits = weight_limits(linear.weight.detach(), "minmax", per_channel=True)
    return Int8DynamicLinear(linear.weight.detach(), limits, linear.bias, torch.float32, per_token=True)


@pytest.mark.parametrize("fusions", [(), FUSIONS])
def test_errors_are_those_of_a_whole_forward_pass(
    family: str, fusions: tuple[str, ...], prepared: Callable[..., PreparedModel], text_BL: torch.Tensor
) -> None:
    model = prepared(family, *fusions).model
    errors = layer_errors(model, make, text_BL, linears(model), silent)
    assert [one.path for one in errors] == list(linears(model))
    with torch.inference_mode():
        exact = model(text_BL).log_softmax(-1)
        for one in errors[::3]:
            linear = linears(model)[one.path]
            set_module(model, one.path, make(one.path, linear))
            changed = model(text_BL).log_softmax(-1)
            set_module(model, one.path, linear)
            kl = (exact.exp() * (exact - changed)).sum(-1).mean()
            assert one.kl == pytest.approx(float(kl), rel=1e-2, abs=1e-6)
            assert 20 < one.sqnr_db < 60
        assert torch.equal(model(text_BL).log_softmax(-1), exact), "the model is as before"


def test_a_layer_with_an_outlier_is_the_worst(prepared: Callable[..., PreparedModel], text_BL: torch.Tensor) -> None:
    model = prepared("llama", *FUSIONS).model
    spoiled = model.get_submodule("blocks.1.mlp.gate_up")
    with torch.no_grad():
        spoiled.weight[:, 0] = 300.0  # every channel now has steps of more than 2
    errors = layer_errors(model, make, text_BL, linears(model), silent)
    assert worst(errors, 1) == ["blocks.1.mlp.gate_up"]
    assert len(worst(errors, 3)) == 3


def calibration(text_BL: torch.Tensor) -> CalibrationText:
    return CalibrationText(token_ids=text_BL, source="a test")


@pytest.mark.parametrize("fusions", [(), FUSIONS])
def test_smoothing_keeps_the_output_and_evens_out_what_norms_give(
    family: str, fusions: tuple[str, ...], prepared: Callable[..., PreparedModel], text_BL: torch.Tensor
) -> None:
    model = prepared(family, *fusions).model
    with torch.no_grad():
        model.blocks[0].attn_norm.weight[..., 3] = 40.0
    untouched = copy.deepcopy(model)
    ranges = observe(model, calibration(text_BL))
    factors = smooth(model, ranges, 0.5)
    parts = ("attn.qkv", "mlp.up", *(("mlp.down",) if model.config.mlp == "swiglu" else ()))
    assert set(factors) == {"lm_head"} | {f"blocks.{n}.{part}" for n in (0, 1) for part in parts}
    with torch.inference_mode():
        error = (model(text_BL) - untouched(text_BL)).abs().max() / untouched(text_BL).abs().max()
    assert error < 1e-4
    assert torch.equal(model.embed.weight, untouched.embed.weight), "the output projection no longer shares it"
    seen, expected = observe(model, calibration(text_BL)), smoothed_ranges(ranges, factors)
    for name, one in seen.inputs.items():
        assert torch.allclose(one.channels, expected.inputs[name].channels, rtol=1e-3, atol=1e-5), name
    spread = [one.inputs["blocks.0.attn.qkv"].channels for one in (ranges, seen)]
    assert spread[1].max() / spread[1].median() < 0.5 * spread[0].max() / spread[0].median()


@pytest.mark.parametrize("fusions", [(), FUSIONS])
def test_smoothing_moves_an_outlier_inside_a_gated_mlp(
    fusions: tuple[str, ...], prepared: Callable[..., PreparedModel], text_BL: torch.Tensor
) -> None:
    model = prepared("llama", *fusions).model
    up = model.blocks[1].mlp.gate_up if fusions else model.blocks[1].mlp.up
    with torch.no_grad():
        up.weight[-5] *= 50.0  # the fifth of the last features, with or without the gate's rows before
        model.blocks[1].mlp.down.weight[:, -5] /= 50.0
    ranges = observe(model, calibration(text_BL))
    factor_F = smooth(model, ranges, 1.0)["blocks.1.mlp.down"]
    assert int(factor_F.argmax()) == model.config.d_ff - 5
    before, after = (one.inputs["blocks.1.mlp.down"].channels for one in (ranges, observe(model, calibration(text_BL))))
    assert before.max() / before.median() > 20
    assert torch.allclose(after, torch.ones_like(after), rtol=1e-3)


def test_observing_sees_every_input_and_leaves_no_hook(
    prepared: Callable[..., PreparedModel], text_BL: torch.Tensor
) -> None:
    plain, fused = prepared("llama").model, prepared("llama", *FUSIONS).model
    found = [observe(model, calibration(text_BL)) for model in (plain, fused)]
    assert found[0].inputs.keys() == found[1].inputs.keys()
    for name, one in found[0].inputs.items():
        assert torch.allclose(one.channels, found[1].inputs[name].channels, rtol=1e-3)
        assert float(one.channels.max()) == pytest.approx(one.limits["minmax"])
    assert not any(module._forward_pre_hooks for module in plain.modules())
    assert found[0].tokens == text_BL.numel()
    assert isinstance(plain, GPT)
    assert len(linears(plain)) == 15
