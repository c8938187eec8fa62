"""Fake quantization: the values of the INT8 layers, gradients that pass through."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn

from gptscope.models.calibration import CalibrationText
from gptscope.models.compression.fake_quant import FakeInt8Embedding, FakeInt8Linear, fake_quantized
from gptscope.models.compression.tuning import narrow_layers
from gptscope.models.gpt import GPT
from gptscope.models.levers import LeverContext, LeverError, Machine
from gptscope.models.precision import RECIPES
from gptscope.models.quantization.layers import (
    Int8DynamicLinear,
    Int8Embedding,
    Int8StaticLinear,
    Int8Weight,
    Int8WeightOnlyLinear,
)

TRAINABLE = ("int8-weight-only", "int8-dynamic", "int8-static")


def limits(linear: nn.Linear, *, per_channel: bool = True, share: float = 1.0) -> torch.Tensor:
    largest = linear.weight.detach().abs().amax(1, keepdim=True)
    return share * (largest if per_channel else largest.amax().expand_as(largest))


@pytest.fixture
def linear() -> nn.Linear:
    torch.manual_seed(2)
    return nn.Linear(32, 24)


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(3, 5, 32, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("kind", ["static", "token", "tensor", "none"])
def test_values_are_those_of_the_int8_layer(kind: str, per_channel: bool, linear: nn.Linear, x: torch.Tensor) -> None:
    common = (linear.weight.detach(), limits(linear, per_channel=per_channel, share=0.8), linear.bias, torch.float32)
    quantized: Int8Weight
    if kind == "static":
        quantized = Int8StaticLinear(*common, input_limit=1.5)
    elif kind == "none":
        quantized = Int8WeightOnlyLinear(*common)
    else:
        quantized = Int8DynamicLinear(*common, per_token=kind == "token")
    fake = FakeInt8Linear(linear, quantized, torch.float32)
    tolerance = 2e-2 if kind == "none" else 1e-5  # the weight-only kernel reads its input as BF16
    torch.testing.assert_close(fake(x).detach(), quantized(x), rtol=tolerance, atol=tolerance)


def test_gradients_are_those_of_the_rounded_product_and_stop_where_values_were_clipped(linear: nn.Linear) -> None:
    x = torch.tensor([[0.4, 3.0] + [0.1] * 30]).requires_grad_()
    limit = limits(linear, share=0.5)
    fake = FakeInt8Linear(
        linear, Int8StaticLinear(linear.weight.detach(), limit, None, torch.float32, input_limit=1.0), torch.float32
    )
    grad = torch.randn(1, 24, generator=torch.Generator().manual_seed(4))
    fake(x).backward(grad)
    step_w = limit / 127
    rounded_w = (linear.weight.detach() / step_w).round().clamp(-127, 127) * step_w
    rounded_x = (x.detach() * 127).round().clamp(-127, 127) / 127
    expected_x = grad @ rounded_w
    expected_x[0, 1] = 0.0  # 3.0 lies outside the range
    torch.testing.assert_close(x.grad, expected_x, rtol=1e-5, atol=1e-6)
    inside = (linear.weight.detach() / step_w).round().abs() <= 127
    assert 0.2 < (~inside).float().mean().item() < 0.8
    torch.testing.assert_close(linear.weight.grad, (grad.t() @ rounded_x) * inside, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(linear.bias.grad, grad[0])


def test_limits_follow_weights_that_move(linear: nn.Linear, x: torch.Tensor) -> None:
    quantized = Int8DynamicLinear(linear.weight.detach(), limits(linear), linear.bias, torch.float32, per_token=True)
    fake = FakeInt8Linear(linear, quantized, torch.float32)
    with torch.no_grad():
        linear.weight.mul_(3.0)
    again = Int8DynamicLinear(linear.weight.detach(), limits(linear), linear.bias, torch.float32, per_token=True)
    torch.testing.assert_close(fake(x).detach(), again(x), rtol=1e-5, atol=1e-5)


def test_products_of_integers_are_nearly_exact_in_bf16(linear: nn.Linear, x: torch.Tensor) -> None:
    quantized = Int8DynamicLinear(linear.weight.detach(), limits(linear), linear.bias, torch.float32, per_token=True)
    exact = FakeInt8Linear(linear, quantized, torch.float32)(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = FakeInt8Linear(linear, quantized, torch.bfloat16)(x)
    assert found.dtype == torch.float32
    assert ((found - exact).norm() / exact.norm()).item() < 2**-8


def test_embeddings_round_the_rows_they_give() -> None:
    torch.manual_seed(1)
    embedding = nn.Embedding(10, 8)
    scale = embedding.weight.detach().abs().amax(1) / 127
    integers = (embedding.weight.detach() / scale[:, None]).round().to(torch.int8)
    quantized = Int8Embedding(integers, scale, torch.float32)
    tokens = torch.tensor([[1, 4, 1]])
    fake = FakeInt8Embedding(embedding, quantized)
    found = fake(tokens)
    torch.testing.assert_close(found.detach(), quantized(tokens))
    found.sum().backward()
    assert embedding.weight.grad.sum(1).tolist() == [0.0, 16.0, 0.0, 0.0, 8.0, 0.0, 0.0, 0.0, 0.0, 0.0]


@pytest.fixture
def context(machine: Machine, tiny_model: Callable[[str], GPT]) -> Callable[..., LeverContext]:
    def make(precision: str, family: str = "llama", **options: object) -> LeverContext:
        return LeverContext(
            machine=machine,
            config=tiny_model(family).config,
            workload="prefill",
            precision=precision,
            kv_cache="none",
            options={precision: options},
        )

    return make


@pytest.mark.parametrize("precision", TRAINABLE)
def test_a_fake_quantized_model_computes_what_the_quantized_one_will(
    precision: str, family: str, context, tiny_model, text_BL: torch.Tensor
) -> None:
    model = tiny_model(family)
    text = CalibrationText(token_ids=text_BL, source="a test")
    narrow = narrow_layers(model, context(precision, family), text)
    deployed = tiny_model(family)
    RECIPES[precision].quantize(deployed, context(precision, family, base="fp32"), text)
    before = dict(model.named_modules())
    layers = {path: one for path, one in narrow.layers.items() if isinstance(one, Int8Weight | Int8Embedding)}
    with torch.no_grad():
        expected = deployed(text_BL)
        plain = model(text_BL)
        with fake_quantized(model, layers, torch.float32):
            found = model(text_BL)
        assert torch.equal(model(text_BL), plain)
    assert dict(model.named_modules()) == before
    error = ((found - expected).norm() / expected.norm()).item()
    assert error < 0.25 * ((expected - plain).norm() / plain.norm()).item() or error < 0.02


def test_settings_decide_which_layers_are_quantized(context, tiny_model, text_BL: torch.Tensor) -> None:
    text = CalibrationText(token_ids=text_BL, source="a test")
    asked = context("int8-dynamic", keep="blocks.0", head=False, embedding=False)
    narrow = narrow_layers(tiny_model("llama"), asked, text)
    assert all(path.startswith("blocks.1.") for path in narrow.layers)
    assert len(narrow.layers) == 7


def test_recipes_that_cannot_be_learnt_are_refused(context, tiny_model) -> None:
    with pytest.raises(LeverError, match="bf16 rounds nothing"):
        narrow_layers(tiny_model("llama"), context("bf16"), None)
    with pytest.raises(LeverError, match="int8-smoothquant changes the weights itself"):
        narrow_layers(tiny_model("llama"), replace(context("int8-smoothquant")), None)
