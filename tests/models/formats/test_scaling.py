"""Scales per tensor, row and block, against computations by hand."""

import math

import numpy as np
import pytest
import torch

from gptscope.models.formats import E2M1, E4M3, E5M2, mx_blocks, nv_blocks, per_row, per_tensor, product, tensor_scale
from gptscope.models.formats.minifloat import FP32_MOST
from gptscope.models.formats.scaling import stochastic

ONE = torch.ones(())


@pytest.fixture
def x_RK() -> torch.Tensor:  # noqa: N802  tensors carry their shape
    generator = torch.Generator().manual_seed(7)
    return torch.randn(20, 70, generator=generator) * torch.exp2(torch.randn(20, 1, generator=generator) * 4)


def test_a_tensors_factor_brings_its_largest_value_to_the_formats() -> None:
    assert tensor_scale(torch.tensor(2.0), ONE, 448.0).item() == 224.0
    assert tensor_scale(torch.tensor(2.0), ONE, 448.0, margin=2).item() == 56.0
    for unusable in (0.0, math.inf, math.nan):
        assert tensor_scale(torch.tensor(unusable), torch.tensor(3.0), 448.0).item() == 3.0
    assert tensor_scale(torch.tensor(1e-40), ONE, 448.0).item() == FP32_MOST


def test_products_of_quantized_matrices_equal_those_of_what_is_left(x_RK: torch.Tensor) -> None:
    other = torch.randn(9, 70, generator=torch.Generator().manual_seed(8))
    ways = [
        lambda x: per_tensor(x, E4M3, tensor_scale(x.abs().max(), ONE, 448.0)),
        lambda x: per_row(x, E4M3, power_of_two=False),
        lambda x: mx_blocks(x, E4M3, up=True),
        nv_blocks,
    ]
    for way in ways:
        a, b = way(x_RK), way(other)
        expected = a.dequantized().double() @ b.dequantized().double().t()
        torch.testing.assert_close(product(a, b).double(), expected, rtol=1e-5, atol=1e-5 * expected.abs().max().item())


def test_rows_have_their_own_factor(x_RK: torch.Tensor) -> None:
    quantized = per_row(x_RK, E4M3, power_of_two=False)
    assert quantized.values.abs().amax(1).tolist() == [448.0] * 20
    rounded = per_row(x_RK, E4M3, power_of_two=True)
    assert all(math.frexp(scale)[0] == 0.5 for scale in rounded.scale.flatten().tolist())
    assert rounded.values.abs().max() <= 448.0


@pytest.mark.parametrize("up", [True, False])
def test_microscaling_blocks_by_hand(x_RK: torch.Tensor, up: bool) -> None:
    found = mx_blocks(x_RK, E4M3, up=up).dequantized().numpy()
    for row in range(20):
        for start in range(0, 70, 32):
            block = x_RK[row, start : start + 32].double().numpy()
            amax = np.abs(block).max()
            exponent = math.ceil(math.log2(amax / 448.0)) if up else math.floor(math.log2(amax)) - 8
            scale = 2.0**exponent
            expected = E4M3.round(torch.from_numpy(block / scale)).double().numpy() * scale
            np.testing.assert_array_equal(found[row, start : start + 32], expected.astype(np.float32))


def test_fp4_blocks_by_hand(x_RK: torch.Tensor) -> None:
    quantized = nv_blocks(x_RK)
    encode = np.float32(6.0 * 448.0) / np.float32(x_RK.abs().max().item())
    assert quantized.factor.item() == pytest.approx(encode, rel=1e-6)
    grid = {E2M1.decode(code) for code in range(16)}
    for row in range(20):
        for start in range(0, 70, 16):
            block = x_RK[row, start : start + 16]
            stored = E4M3.round(block.abs().max() / 6.0 * quantized.factor).item()
            values = quantized.values[row, start : start + 16]
            if stored == 0.0:  # a block too small for the matrix's scale vanishes
                assert not values.any()
                continue
            assert {value / stored for value in values.tolist()} <= grid
            expected = E2M1.round(block * (quantized.factor / stored)) * stored
            assert torch.equal(values, expected)


def test_square_blocks_are_the_same_transposed() -> None:
    x = torch.randn(33, 40, generator=torch.Generator().manual_seed(9))
    a, b = nv_blocks(x, square=True), nv_blocks(x.t(), square=True)
    assert torch.equal(a.dequantized(), b.dequantized().t())
    assert not torch.equal(nv_blocks(x).dequantized(), nv_blocks(x.t()).dequantized().t())


def test_zeros_stay_zero() -> None:
    zeros = torch.zeros(3, 40)
    for quantized in (per_row(zeros, E4M3, power_of_two=True), mx_blocks(zeros, E5M2, up=True), nv_blocks(zeros)):
        assert not quantized.dequantized().any()


def test_random_rounding_is_right_on_average_and_repeats_with_its_seed() -> None:
    x = torch.full((40_000,), 2.2)
    rounded = stochastic(E2M1, torch.Generator().manual_seed(1))(x)
    assert set(rounded.tolist()) == {2.0, 3.0}
    assert rounded.mean().item() == pytest.approx(2.2, abs=0.02)
    assert torch.equal(rounded, stochastic(E2M1, torch.Generator().manual_seed(1))(x))
    assert stochastic(E2M1, torch.Generator().manual_seed(1))(torch.tensor([5.9, -9.0])).abs().max() <= 6.0
