"""INT8 products whose scaling is part of the kernel: oneDNN's, with weights in its own layout.

`torch._int_mm` returns INT32, which then takes several passes over memory to become scaled floating point; with many
rows those take as long as the product. oneDNN multiplies by the scales while a tile of the result is still in the
CPU's registers.
"""

import functools

import torch
from torch import Tensor, nn

from gptscope.models.fusion.kernel_choice import quickest_side, sample_layers
from gptscope.models.fusion.packed_layers import PackedLayer, rows_of_layout
from gptscope.models.quantization.integers import LARGEST, int8_product


class FusedProduct(PackedLayer):
    """INT8 rows times an INT8 matrix times one scale per output channel, `[R, K]` to `[R, N]`."""

    def __init__(self, weight_NK: Tensor, scale_N: Tensor, rows: int, output: torch.dtype) -> None:
        """Pack.

        Args:
            weight_NK: INT8; not kept.
            scale_N: FP32.
            rows: That will usually come.
            output: Type of the result: FP32, or BF16 rounded from it.
        """
        super().__init__(weight_NK, None, output)
        shape = [rows_of_layout(rows), self.in_features]
        self._packed = torch.ops.onednn.qlinear_prepack.default(weight_NK, shape)
        self._product = torch.ops.onednn.qlinear_pointwise.default
        self.scale = nn.Buffer(scale_N)
        self._zero_points = torch.zeros(self.out_features, dtype=torch.int32)

    def product(self, x_BLD: Tensor) -> Tensor:
        return self._product(
            x_BLD, 1.0, 0, self._packed, self.scale, self._zero_points, None, 1.0, 0, self.output, "none", [], ""
        )


class SeparateProduct(nn.Module):
    """The same in steps: an INT32 product, its conversion, its scaling."""

    def __init__(self, weight_NK: Tensor, scale_N: Tensor, output: torch.dtype) -> None:
        super().__init__()
        self.output = output
        self.weight = nn.Buffer(weight_NK)
        self.scale = nn.Buffer(scale_N)

    def forward(self, x_RK: Tensor) -> Tensor:
        return int8_product(x_RK, self.weight).float().mul_(self.scale).to(self.output)


@functools.cache
def fused_is_exact() -> bool:
    """True when oneDNN's product equals integer arithmetic here.

    Without VNNI or AMX it adds pairs of products in 16 bits, which the largest values overflow.
    """
    if not torch.backends.mkldnn.is_available():
        return False
    x_RK = torch.full((16, 64), LARGEST, dtype=torch.int8)
    weight_NK = torch.full((16, 64), -LARGEST, dtype=torch.int8)
    scale_N = torch.arange(1, 17, dtype=torch.float32)
    fused = FusedProduct(weight_NK, scale_N, 16, torch.float32)(x_RK)
    return torch.equal(fused, SeparateProduct(weight_NK, scale_N, torch.float32)(x_RK))


@functools.cache
def fused_is_quicker(out_features: int, in_features: int, rows: int, output: torch.dtype, threads: int) -> bool:
    """Time both kinds of product for this shape: which one wins depends on the CPU and on the number of rows.

    Args:
        out_features: Rows of the weight.
        in_features: Columns of the weight.
        rows: Rows of the activations.
        output: Type of the result.
        threads: That torch uses; a part of the question, because the answer is remembered.
    """
    del threads
    layers = sample_layers(out_features, in_features, rows, torch.int8)
    scale_N = torch.ones(out_features)
    with torch.inference_mode():
        weights = [torch.ones(out_features, in_features, dtype=torch.int8) for _ in range(layers)]
        sides: dict[str, list[nn.Module]] = {
            "separate": [SeparateProduct(weight_NK, scale_N, output) for weight_NK in weights],
            "fused": [FusedProduct(weight_NK, scale_N, rows, output) for weight_NK in weights],
        }
        return quickest_side(sides, torch.ones(rows, in_features, dtype=torch.int8)) == "fused"
