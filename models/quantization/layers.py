"""Layers with INT8 weights, as compositions of torch's own INT8 kernels.

torchao 0.18 has recipes of these names, but its layers are slower in eager mode. 576 x 1536 in BF16 on two threads of a
Zen 4 CPU: for one row 4.0 times the time of these (weight-only) and 5.4 times (dynamic), for 512 rows 1.0 and 1.6.
`torch._weight_int8pack_mm`, `torch._int_mm` and oneDNN's product with scales are the kernels underneath, so the layers
call those. Each step converts types by an operator of its own: one that mixes INT32 and FP32, or BF16 and FP32, leaves
the vectorised path and takes many times as long.
"""

import functools
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from gptscope.models.quantization.fused_product import (
    FusedProduct,
    SeparateProduct,
    fused_is_exact,
    fused_is_quicker,
)
from gptscope.models.quantization.integers import LARGEST, scale_of, to_int8

_COLUMN_STEP = 16
"""`_weight_int8pack_mm` reads sixteen columns at a time, past the end of a matrix whose width is no multiple."""
_MOST_FEW_ROWS = 64
_ROUNDS = 3


class Int8Weight(nn.Module):
    """A weight as INT8 values and one scale for each output channel; what all layers here share."""

    def __init__(self, weight_NK: Tensor, limit_N1: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        """Quantize.

        Args:
            weight_NK: In full precision.
            limit_N1: Magnitude of each row that becomes 127.
            bias: Added to the product; None: none.
            dtype: Of the layer's input and output.
        """
        super().__init__()
        self.out_features, self.in_features = weight_NK.shape
        self.dtype = dtype
        scale_N1 = scale_of(limit_N1)
        self.weight = nn.Buffer(_quantized(weight_NK, scale_N1))
        self.scale = nn.Buffer(scale_N1.flatten())
        self.bias = None if bias is None else nn.Buffer(bias.detach().float())

    def restored(self) -> Tensor:
        """The weight as real numbers, `[N, K]` in FP32."""
        return self.weight.float() * self.scale[:, None]

    def _finished(self, y_RN: Tensor, x_BLD: Tensor) -> Tensor:
        """FP32 rows in the layer's type and the input's shape, with the bias."""
        if self.bias is not None:
            y_RN = y_RN.add_(self.bias)
        return y_RN.to(self.dtype).view(*x_BLD.shape[:-1], self.out_features)


def _quantized(weight_NK: Tensor, scale_N1: Tensor) -> Tensor:
    """In pieces, so that a large weight needs no copies of its size in FP32."""
    step = max(1, (1 << 22) // weight_NK.shape[1])
    pairs = zip(weight_NK.detach().split(step), scale_N1.split(step), strict=True)
    return torch.cat([to_int8(part.float(), scale) for part, scale in pairs])


class Int8WeightOnlyLinear(Int8Weight):
    """INT8 weights, 16-bit activations.

    Few rows (decoding) go through the INT8 kernel, which reads a quarter of FP32's bytes. It takes each row anew
    through the weights, so many rows (a prompt) are multiplied by the weights as BF16, converted on the way: integers
    up to 127 are exact there.
    """

    def __init__(self, weight_NK: Tensor, limit_N1: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        # the kernel takes BF16 scales, so the integers are made for those
        rounded_N1 = scale_of(limit_N1).bfloat16().float()
        super().__init__(weight_NK, rounded_N1 * LARGEST, bias, dtype)
        self.scale_16 = nn.Buffer(self.scale.bfloat16())
        self.few_rows = few_rows(self.out_features, self.in_features, torch.get_num_threads())

    def forward(self, x_BLD: Tensor) -> Tensor:
        x_RK = x_BLD.reshape(-1, self.in_features).bfloat16()
        if x_RK.shape[0] <= self.few_rows:
            y_RN = packed_product(x_RK, self.weight, self.scale_16)
        else:
            y_RN = converted_product(x_RK, self.weight, self.scale_16)
        if self.bias is not None:
            y_RN = y_RN + self.bias.to(y_RN.dtype)
        return y_RN.to(self.dtype).view(*x_BLD.shape[:-1], self.out_features)


def packed_product(x_RK: Tensor, weight_NK: Tensor, scale_N: Tensor) -> Tensor:
    """BF16 rows times INT8 weights in one kernel."""
    return torch._weight_int8pack_mm(x_RK, weight_NK, scale_N)  # noqa: SLF001  torch has no other name for it


def converted_product(x_RK: Tensor, weight_NK: Tensor, scale_N: Tensor) -> Tensor:
    """BF16 rows times INT8 weights that become BF16 first."""
    return nn.functional.linear(x_RK, weight_NK.to(torch.bfloat16)).mul_(scale_N)


@functools.cache
def few_rows(out_features: int, in_features: int, threads: int) -> int:
    """Up to how many rows the INT8 kernel is the quicker one for this shape: measured, CPUs differ too much.

    Args:
        out_features: Rows of the weight.
        in_features: Columns of the weight.
        threads: That torch uses; a part of the question, because the answer is remembered.
    """
    del threads
    if in_features % _COLUMN_STEP:
        return 0
    weight_NK = torch.ones(out_features, in_features, dtype=torch.int8)
    scale_N = torch.ones(out_features, dtype=torch.bfloat16)
    rows = 1
    with torch.inference_mode():
        while rows < _MOST_FEW_ROWS:
            x_RK = torch.ones(2 * rows, in_features, dtype=torch.bfloat16)
            seconds = [
                _shortest(functools.partial(product, x_RK, weight_NK, scale_N))
                for product in (packed_product, converted_product)
            ]
            if seconds[0] > seconds[1]:
                break
            rows *= 2
    return rows


def _shortest(run: Callable[[], Tensor]) -> float:
    best = float("inf")
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begun)
    return best


class Int8ActivationLinear(Int8Weight):
    """INT8 weights and INT8 activations (W8A8): an exact product of integers, which scales turn into real numbers."""

    def __init__(
        self,
        weight_NK: Tensor,
        limit_N1: Tensor,
        bias: Tensor | None,
        dtype: torch.dtype,
        *,
        input_scale: float | Tensor,
        product_type: torch.dtype,
    ) -> None:
        """Quantize.

        Args:
            weight_NK: In full precision.
            limit_N1: Magnitude of each row that becomes 127.
            bias: Added to the product; None: none.
            dtype: Of the layer's input and output.
            input_scale: Of all activations; 1 where each token brings its own.
            product_type: Of the product after the scales of channels and `input_scale`.
        """
        super().__init__(weight_NK, limit_N1, bias, dtype)
        self.product_type = product_type
        self.product: nn.Module = SeparateProduct(self.weight, self.scale * input_scale, product_type)

    def _product(self, x_RK: Tensor) -> Tensor:
        # not called as a module: profiles name kernels by the module that ran them, and this part is no module to users
        out: Tensor = self.product.forward(x_RK)
        return out

    def pack(self, rows: int) -> None:
        """Let oneDNN multiply and scale where it is quicker with this many rows; the plain weight is then released.

        After that the layer has no `weight`, so this comes last.
        """
        shape = self.out_features, self.in_features
        if fused_is_exact() and fused_is_quicker(*shape, rows, self.product_type, torch.get_num_threads()):
            scale_N = self.product.get_buffer("scale")
            self.product = FusedProduct(self.weight, scale_N, rows, self.product_type)
            del self.weight


class Int8DynamicLinear(Int8ActivationLinear):
    """Activations are scaled while the model runs: each token by its own largest value."""

    def __init__(
        self, weight_NK: Tensor, limit_N1: Tensor, bias: Tensor | None, dtype: torch.dtype, *, per_token: bool
    ) -> None:
        super().__init__(weight_NK, limit_N1, bias, dtype, input_scale=1.0, product_type=torch.float32)
        self.per_token = per_token
        """False: one scale for all rows of a call, so that a token's result depends on what comes beside it."""

    def forward(self, x_BLD: Tensor) -> Tensor:
        x_RK = x_BLD.reshape(-1, self.in_features)
        magnitudes_RK = x_RK.abs()
        limit_R1 = magnitudes_RK.amax(-1, keepdim=True) if self.per_token else magnitudes_RK.amax()
        scale_R1 = scale_of(limit_R1)
        # no value is larger than its token's range, so nothing has to be clipped
        x_RK = x_RK.float().div(scale_R1).round_().to(torch.int8)
        return self._finished(self._product(x_RK).mul_(scale_R1), x_BLD)


class Int8StaticLinear(Int8ActivationLinear):
    """Activations have one scale that was fixed before; larger values are clipped."""

    def __init__(
        self, weight_NK: Tensor, limit_N1: Tensor, bias: Tensor | None, dtype: torch.dtype, *, input_limit: float
    ) -> None:
        input_scale = scale_of(torch.tensor(input_limit))
        # nothing else comes to a product without a bias, so it can be rounded at once
        product_type = dtype if bias is None else torch.float32
        super().__init__(weight_NK, limit_N1, bias, dtype, input_scale=input_scale, product_type=product_type)
        self.input_scale = nn.Buffer(input_scale)

    def forward(self, x_BLD: Tensor) -> Tensor:
        x_RK = x_BLD.reshape(-1, self.in_features).float()
        return self._finished(self._product(to_int8(x_RK, self.input_scale)), x_BLD)


class Int8Embedding(nn.Module):
    """A look-up table as INT8 with a scale per row; `weight` and `scale` may be those of the output projection."""

    def __init__(self, weight_VD: Tensor, scale_V: Tensor, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.weight = nn.Buffer(weight_VD)
        self.scale = nn.Buffer(scale_V)

    def forward(self, tokens_BL: Tensor) -> Tensor:
        return (self.weight[tokens_BL] * self.scale[tokens_BL].unsqueeze(-1)).to(self.dtype)
