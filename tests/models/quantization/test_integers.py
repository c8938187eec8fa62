"""INT8 arithmetic equals a numpy reference in every bit."""

import numpy as np
import pytest
import torch

from gptscope.models.prepare import weight_bytes
from gptscope.models.quantization import layers
from gptscope.models.quantization.fused_product import FusedProduct, SeparateProduct, fused_is_exact
from gptscope.models.quantization.integers import int8_product, scale_of, to_int8
from gptscope.models.quantization.layers import (
    Int8DynamicLinear,
    Int8Embedding,
    Int8StaticLinear,
    Int8WeightOnlyLinear,
    converted_product,
    few_rows,
    packed_product,
)
from gptscope.models.quantization.ranges import weight_limits

SIZES = [(1, 64, 33), (5, 48, 97), (130, 20, 7), (3, 1536, 16)]
"""Rows, inputs, outputs."""


def numbers(rows: int, inputs: int, outputs: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(rows + inputs)
    x = torch.randn(rows, inputs, generator=generator) * 3
    return x, torch.randn(outputs, inputs, generator=generator), torch.randn(outputs, generator=generator)


def reference_weight(weight: np.ndarray, *, per_channel: bool) -> tuple[np.ndarray, np.ndarray]:
    limit = np.abs(weight).max(1 if per_channel else None, keepdims=True).astype(np.float32)
    scale = np.broadcast_to(limit / np.float32(127), (len(weight), 1))
    return np.clip(np.rint(weight / scale), -127, 127).astype(np.int8), scale[:, 0]


def reference(x: np.ndarray, x_scale: np.ndarray, weight: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Quantize rows, multiply in INT32, then scale: first by channel, then by row."""
    quantized = np.clip(np.rint(x / x_scale), -127, 127).astype(np.int32)
    product = quantized @ weight.astype(np.int32).T
    return product.astype(np.float32) * scale.astype(np.float32) * x_scale.astype(np.float32)


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SIZES)
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("per_token", [True, False])
def test_dynamic_layers_equal_integer_arithmetic_bit_by_bit(
    rows: int, inputs: int, outputs: int, per_channel: bool, per_token: bool
) -> None:
    x, weight, bias = numbers(rows, inputs, outputs)
    limits = weight_limits(weight, "minmax", per_channel=per_channel)
    layer = Int8DynamicLinear(weight, limits, bias, torch.float32, per_token=per_token)
    integers, scale = reference_weight(weight.numpy(), per_channel=per_channel)
    assert np.array_equal(layer.weight.numpy(), integers)
    x_scale = np.abs(x.numpy()).max(1 if per_token else None, keepdims=True) / np.float32(127)
    expected = reference(x.numpy(), x_scale, integers, scale) + bias.numpy()
    assert np.array_equal(layer(x).numpy(), expected)


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SIZES)
def test_static_layers_equal_integer_arithmetic_bit_by_bit_and_clip_what_is_larger(
    rows: int, inputs: int, outputs: int
) -> None:
    x, weight, _ = numbers(rows, inputs, outputs)
    limit = float(x.abs().max()) / 2
    layer = Int8StaticLinear(
        weight, weight_limits(weight, "minmax", per_channel=True), None, torch.float32, input_limit=limit
    )
    integers, scale = reference_weight(weight.numpy(), per_channel=True)
    x_scale = np.float32(limit) / np.float32(127)
    quantized = np.clip(np.rint(x.numpy() / x_scale), -127, 127)
    assert (np.abs(quantized) == 127).any()
    product = quantized.astype(np.int32) @ integers.astype(np.int32).T
    assert np.array_equal(layer(x).numpy(), product.astype(np.float32) * (scale * x_scale))


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("has_bias", [True, False])
def test_the_fused_kernel_gives_the_same_bits_and_releases_the_plain_weight(
    monkeypatch: pytest.MonkeyPatch, rows: int, inputs: int, outputs: int, dtype: torch.dtype, has_bias: bool
) -> None:
    if not fused_is_exact():
        pytest.skip("this CPU has no exact INT8 product in oneDNN")
    monkeypatch.setattr(layers, "fused_is_quicker", lambda *shape: True)
    x, weight, bias = numbers(rows, inputs, outputs)
    limits = weight_limits(weight, "minmax", per_channel=True)
    common = (weight, limits, bias if has_bias else None, dtype)
    for layer in (
        Int8DynamicLinear(*common, per_token=True),
        Int8DynamicLinear(*common, per_token=False),
        Int8StaticLinear(*common, input_limit=2.5),
    ):
        separate = layer(x.to(dtype))
        layer.pack(rows)
        assert isinstance(layer.product, FusedProduct)
        assert torch.equal(layer(x.to(dtype)), separate)
        assert weight_bytes(layer) < 1.2 * weight.numel() + 64 * outputs, "only one copy stays"


def test_a_kernel_that_is_slower_or_not_exact_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    _, weight, bias = numbers(2, 64, 33)
    layer = Int8DynamicLinear(
        weight, weight_limits(weight, "minmax", per_channel=True), bias, torch.float32, per_token=True
    )
    monkeypatch.setattr(layers, "fused_is_exact", lambda: True)
    monkeypatch.setattr(layers, "fused_is_quicker", lambda *shape: False)
    layer.pack(1)
    monkeypatch.setattr(layers, "fused_is_exact", lambda: False)
    monkeypatch.setattr(layers, "fused_is_quicker", lambda *shape: True)
    layer.pack(1)
    assert isinstance(layer.product, SeparateProduct)
    assert layer.weight.shape == weight.shape


def test_weight_only_layers_multiply_by_exactly_the_integers_by_either_kernel() -> None:
    x, weight, bias = numbers(4, 64, 33)
    layer = Int8WeightOnlyLinear(weight, weight_limits(weight, "minmax", per_channel=True), bias, torch.float32)
    exact = (x.bfloat16().double() @ layer.weight.double().T) * layer.scale.double()
    assert torch.equal(layer.scale.bfloat16().float(), layer.scale), "the kernel reads BF16 scales"
    layer.few_rows = 4
    few = layer(x) - bias.bfloat16().float()
    layer.few_rows = 0
    many = layer(x) - bias.bfloat16().float()
    tolerance = 2.0**-7 * exact.abs().amax()
    assert (few - exact).abs().max() < tolerance
    assert (many - exact).abs().max() < tolerance
    assert packed_product(x.bfloat16(), layer.weight, layer.scale_16).shape == (4, 33)
    assert converted_product(x.bfloat16(), layer.weight, layer.scale_16).dtype == torch.bfloat16


def test_the_packed_kernel_is_never_used_where_it_reads_past_the_matrix() -> None:
    """It takes sixteen columns at a time and crashes on 20."""
    assert few_rows(7, 20, 1) == 0
    x, weight, _ = numbers(1, 20, 7)
    layer = Int8WeightOnlyLinear(weight, weight_limits(weight, "minmax", per_channel=True), None, torch.float32)
    exact = x.bfloat16().float() @ layer.restored().T
    assert (layer(x) - exact).abs().max() < 2.0**-6 * exact.abs().max()


def test_the_largest_products_do_not_overflow() -> None:
    for rows in (1, 2, 40):
        x = torch.full((rows, 4096), -127, dtype=torch.int8)
        assert int8_product(x, x[:1]).unique().tolist() == [127 * 127 * 4096]


def test_rounding_is_to_the_nearest_and_a_tensor_of_zeros_stays_zero() -> None:
    values = torch.tensor([-9.0, -1.5, -0.5, 0.49, 0.5, 1.5, 2.5, 126.6, 999.0])
    assert to_int8(values, torch.tensor(1.0)).tolist() == [-9, -2, 0, 0, 0, 2, 2, 127, 127]
    zeros = torch.zeros(2, 32)
    layer = Int8DynamicLinear(zeros, weight_limits(zeros, "mse", per_channel=True), None, torch.float32, per_token=True)
    assert layer(zeros).abs().max() == 0
    assert scale_of(torch.tensor(0.0)) > 0


def test_an_embedding_gives_the_rows_that_were_rounded() -> None:
    table = torch.randn(11, 8, generator=torch.Generator().manual_seed(4))
    scale = scale_of(table.abs().amax(1))
    layer = Int8Embedding(to_int8(table, scale[:, None]), scale, torch.bfloat16)
    tokens = torch.tensor([[3, 3, 10], [0, 1, 2]])
    found = layer(tokens)
    assert found.dtype == torch.bfloat16
    assert (found.float() - table[tokens]).abs().max() < scale.max()
