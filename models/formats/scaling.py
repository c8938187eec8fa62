"""How a tensor is scaled so that a narrow format holds it: per tensor, per row, or per block of neighbours.

Everything is FP32 arithmetic on values that the narrow format has, so a product of two quantized matrices is what a
GPU's tensor cores compute: exact products, added in FP32, scaled at the end.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from gptscope.models.formats.minifloat import E2M1, E4M3, FP32_MOST, Minifloat, e8m0_round

MX_BLOCK = 32
NV_BLOCK = 16
Round = Callable[[Tensor], Tensor]


class Quantized(NamedTuple):
    """A matrix `[R, K]` as `values · scale`."""

    values: Tensor
    """FP32; the format's own values, times the block's scale where blocks have one (which is exact)."""
    scale: Tensor
    """FP32, of the whole matrix (no dimension) or of each row, `[R, 1]`."""
    factor: Tensor
    """What values were multiplied by before they were rounded; the smallest one where rows or blocks have their own."""

    def dequantized(self) -> Tensor:
        """What is left of the matrix."""
        return self.values * self.scale

    def t(self) -> "Quantized":
        """The same matrix transposed; only with a scale of the whole matrix."""
        assert self.scale.dim() == 0, "a row's scale belongs to the direction it was computed for"
        return Quantized(self.values.t(), self.scale, self.factor)


def product(a_NK: Quantized, b_OK: Quantized) -> Tensor:
    """`a bᵀ`, `[N, O]` in FP32."""
    return torch.mm(a_NK.values, b_OK.values.t()) * a_NK.scale * b_OK.scale.t()


def tensor_scale(amax: Tensor, previous: Tensor, largest: float, margin: int = 0) -> Tensor:
    """The factor that brings `amax` to the format's largest value, 2^margin below it.

    As Transformer Engine has it: an amax of zero, infinity or NaN keeps the previous factor, and a factor that would be
    infinite becomes FP32's largest value.
    """
    factor = (largest / amax) / 2**margin
    factor = torch.where((amax > 0.0) & torch.isfinite(amax), factor, previous)
    return torch.where(torch.isinf(factor), torch.full_like(factor, FP32_MOST), factor)


def per_tensor(x_RK: Tensor, fmt: Minifloat, factor: Tensor) -> Quantized:
    """One factor for all values."""
    return Quantized(fmt.round(x_RK.float() * factor), 1.0 / factor, factor)


def per_row(x_RK: Tensor, fmt: Minifloat, *, power_of_two: bool) -> Quantized:
    """One factor per row, so that a large row does not coarsen the others."""
    x_RK = x_RK.float()
    amax_R1 = x_RK.abs().amax(dim=1, keepdim=True)
    factor_R1 = tensor_scale(amax_R1, torch.ones_like(amax_R1), fmt.largest)
    if power_of_two:
        factor_R1 = e8m0_round(factor_R1, up=False)
    return Quantized(fmt.round(x_RK * factor_R1), 1.0 / factor_R1, factor_R1.min())


def mx_blocks(x_RK: Tensor, fmt: Minifloat, *, up: bool) -> Quantized:
    """A power of two (E8M0) per 32 neighbours of a row (OCP microscaling).

    Args:
        x_RK: The matrix.
        fmt: Of the elements.
        up: Round the block's scale up, so that nothing saturates (what NVIDIA's libraries do); else down to the
            largest power of two in the block over that of the format, as the OCP text has it, where the block's
            largest values may saturate.
    """
    x_RBk, width = _blocks(x_RK.float(), MX_BLOCK)
    amax_RB1 = x_RBk.abs().amax(dim=2, keepdim=True)
    if up:
        wanted_RB1 = amax_RB1 / fmt.largest
    else:
        top = 2.0 ** (torch.frexp(torch.tensor(fmt.largest))[1].item() - 1)
        wanted_RB1 = amax_RB1 / top
    smallest = 2.0**-127
    scale_RB1 = e8m0_round(wanted_RB1.clamp(min=smallest, max=2.0**127), up=up)
    values = fmt.round(x_RBk / scale_RB1) * scale_RB1
    return Quantized(_joined(values, width), x_RK.new_ones((), dtype=torch.float32), 1.0 / scale_RB1.max())


def nv_blocks(x_RK: Tensor, *, square: bool = False, round_to: Round = E2M1.round) -> Quantized:
    """FP4 values with an E4M3 scale per 16 neighbours and one FP32 scale for the matrix (NVFP4).

    Args:
        x_RK: The matrix.
        square: One block scale per 16 x 16 values, so that the matrix and its transpose become the same.
        round_to: How elements are rounded, e.g. at random (`stochastic`).
    """
    x_RBk, width = _blocks(x_RK.float(), NV_BLOCK)
    block_RB1 = x_RBk.abs().amax(dim=2, keepdim=True)
    amax = block_RB1.max()
    if square:
        block_RB1 = _shared_by_rows(block_RB1, NV_BLOCK)
    # The matrix scale lets the largest block's scale be E4M3's largest value.
    encode = tensor_scale(amax, torch.ones_like(amax), E2M1.largest * E4M3.largest)
    stored_RB1 = E4M3.round(block_RB1 / E2M1.largest * encode)
    factor_RB1 = torch.where(stored_RB1 > 0, encode / stored_RB1, torch.zeros_like(stored_RB1))
    values = round_to(x_RBk * factor_RB1.clamp(max=FP32_MOST)) * stored_RB1
    return Quantized(_joined(values, width), 1.0 / encode, encode)


def stochastic(fmt: Minifloat, generator: torch.Generator) -> Round:
    """Rounds up or down at random, in proportion to the distance, so that small gradients survive on average."""

    def round_to(x: Tensor) -> Tensor:
        x = x.clamp(-fmt.largest, fmt.largest)
        step = fmt.step(x)
        chance = torch.rand(x.shape, generator=generator, device=x.device)
        return (torch.floor(x / step + chance) * step).clamp(-fmt.largest, fmt.largest)

    return round_to


def _blocks(x_RK: Tensor, size: int) -> tuple[Tensor, int]:
    """Rows cut into blocks, `[R, B, size]`, the last one filled with zeros; and the true row length."""
    width = x_RK.shape[1]
    padded = torch.nn.functional.pad(x_RK, (0, -width % size))
    return padded.unflatten(1, (-1, size)), width


def _joined(x_RBk: Tensor, width: int) -> Tensor:
    return x_RBk.flatten(1)[:, :width]


def _shared_by_rows(block_RB1: Tensor, size: int) -> Tensor:
    """The largest of each `size` neighbouring rows, for all of them."""
    rows = block_RB1.shape[0]
    padded = torch.nn.functional.pad(block_RB1, (0, 0, 0, 0, 0, -rows % size))
    shared = padded.unflatten(0, (-1, size)).amax(dim=1, keepdim=True)
    return shared.expand(-1, size, -1, -1).flatten(0, 1)[:rows]
