"""Fake quantization: training sees the rounding of INT8, gradients pass through it as if it were not there.

The straight-through estimator (Bengio et al. 2013) with clipping: where a value was clipped, its gradient is zero
(Jacob et al. 2018, "Quantization and Training of Neural Networks"). Products multiply the integers themselves, which
16-bit floating point holds exactly, and are scaled afterwards.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

from gptscope.models.gpt import GPT
from gptscope.models.quantization.integers import LARGEST, scale_of
from gptscope.models.quantization.layers import (
    Int8DynamicLinear,
    Int8Embedding,
    Int8StaticLinear,
    Int8Weight,
    Int8WeightOnlyLinear,
)
from gptscope.models.quantization.names import set_module

Activations = Literal["none", "token", "tensor", "fixed"]


class FakeInt8Linear(nn.Module):
    """`nn.Linear` that computes what an INT8 layer will, with gradients.

    Args:
        linear: Whose parameters are trained.
        quantized: The INT8 form of this layer; its ranges and its kind of activations are taken over. A weight's limit
            keeps its ratio to the largest weight of its channel, which training may move.
        dtype: In which products are computed.
    """

    def __init__(self, linear: nn.Linear, quantized: Int8Weight, dtype: torch.dtype) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias
        self.dtype = dtype
        largest_N1 = linear.weight.detach().float().abs().amax(1, keepdim=True)
        limit_N1 = quantized.scale[:, None].float() * LARGEST
        self.shared = bool((limit_N1 == limit_N1[0]).all()) and limit_N1.shape[0] > 1
        """One scale for the whole matrix."""
        reference = largest_N1.amax() if self.shared else largest_N1
        self.ratio = limit_N1 / reference.clamp(min=torch.finfo(torch.float32).tiny)
        self.activations, fixed = activations_of(quantized)
        self.input_scale = fixed

    def forward(self, x_BLD: Tensor) -> Tensor:
        x_RK = x_BLD.flatten(0, -2).float()
        with torch.autocast(x_BLD.device.type, enabled=False):
            scales = self._input_scale(x_RK), self._weight_scale()
            y_RN = _FakeProduct.apply(x_RK, self.weight, *scales, self.dtype)  # type: ignore[no-untyped-call]
            if self.bias is not None:
                y_RN = y_RN + self.bias
        return y_RN.view(*x_BLD.shape[:-1], self.out_features)

    def _weight_scale(self) -> Tensor:
        largest_N1 = self.weight.detach().float().abs().amax(1, keepdim=True)
        return scale_of(self.ratio * (largest_N1.amax() if self.shared else largest_N1))

    def _input_scale(self, x_RK: Tensor) -> Tensor | None:
        if self.activations == "none":
            return None
        if self.activations == "fixed":
            return self.input_scale
        magnitudes = x_RK.detach().abs()
        return scale_of(magnitudes.amax(1, keepdim=True) if self.activations == "token" else magnitudes.amax())


def activations_of(quantized: Int8Weight) -> tuple[Activations, Tensor | None]:
    """How an INT8 layer treats its input, and the scale if that is fixed."""
    if isinstance(quantized, Int8StaticLinear):
        return "fixed", quantized.input_scale
    if isinstance(quantized, Int8DynamicLinear):
        return ("token" if quantized.per_token else "tensor"), None
    assert isinstance(quantized, Int8WeightOnlyLinear)
    return "none", None


class _FakeProduct(torch.autograd.Function):
    """`x wᵀ` with both rounded to integers (`x` only when it has a scale)."""

    @staticmethod
    def forward(
        ctx: Any, x_RK: Tensor, weight_NK: Tensor, x_scale: Tensor | None, w_scale_N1: Tensor, dtype: torch.dtype
    ) -> Tensor:
        rows, inside_x = _integers(x_RK, x_scale) if x_scale is not None else (x_RK, None)
        columns, inside_w = _integers(weight_NK.float(), w_scale_N1)
        rows, columns = rows.to(dtype), columns.to(dtype)
        ctx.save_for_backward(rows, columns, inside_x, inside_w, x_scale, w_scale_N1)
        y_RN = torch.mm(rows, columns.t()).float() * w_scale_N1.t()
        return y_RN if x_scale is None else y_RN * x_scale

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        rows, columns, inside_x, inside_w, x_scale, w_scale_N1 = ctx.saved_tensors
        grad_RN = grads[0].float()
        grad_x = torch.mm((grad_RN * w_scale_N1.t()).to(rows.dtype), columns).float()
        scaled_RN = grad_RN if x_scale is None else grad_RN * x_scale
        grad_w = torch.mm(scaled_RN.t().to(rows.dtype), rows).float() * inside_w
        return (grad_x if inside_x is None else grad_x * inside_x), grad_w, None, None, None


def _integers(x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Values as integers, and where they were not clipped."""
    wanted = torch.round(x / scale)
    return wanted.clamp(-LARGEST, LARGEST), wanted.abs() <= LARGEST


class FakeInt8Embedding(nn.Module):
    """A look-up table that rounds the rows it gives, with gradients straight through."""

    def __init__(self, embedding: nn.Embedding, quantized: Int8Embedding) -> None:
        super().__init__()
        self.weight = embedding.weight
        largest_V = embedding.weight.detach().float().abs().amax(1)
        limit_V = quantized.scale.float() * LARGEST
        self.ratio = limit_V / largest_V.clamp(min=torch.finfo(torch.float32).tiny)

    def forward(self, tokens_BL: Tensor) -> Tensor:
        rows_BLD = self.weight[tokens_BL]
        fixed_BLD = rows_BLD.detach()
        limit_BL1 = self.ratio[tokens_BL].unsqueeze(-1) * fixed_BLD.abs().amax(-1, keepdim=True)
        integers, _ = _integers(fixed_BLD, scale_of(limit_BL1))
        return rows_BLD + (integers * scale_of(limit_BL1) - fixed_BLD)


@contextmanager
def fake_quantized(model: GPT, quantized: Mapping[str, nn.Module], dtype: torch.dtype) -> Iterator[None]:
    """Inside, the layers compute as their INT8 forms do; afterwards the plain layers are back, with what they learnt.

    Args:
        model: Unquantized, in FP32.
        quantized: Path -> INT8 form of that layer.
        dtype: In which products are computed.
    """
    before: dict[str, nn.Module] = {path: model.get_submodule(path) for path in quantized}
    try:
        for path, layer in before.items():
            set_module(model, path, _fake(layer, quantized[path], dtype))
        yield
    finally:
        for path, layer in before.items():
            set_module(model, path, layer)


def _fake(layer: nn.Module, quantized: nn.Module, dtype: torch.dtype) -> nn.Module:
    if isinstance(layer, nn.Embedding):
        assert isinstance(quantized, Int8Embedding)
        return FakeInt8Embedding(layer, quantized)
    assert isinstance(layer, nn.Linear)
    assert isinstance(quantized, Int8Weight)
    return FakeInt8Linear(layer, quantized, dtype)
