"""Number formats below 16 bits, computed exactly in FP32: what a GPU's FP8 and FP4 units would store."""

from gptscope.models.formats.minifloat import E2M1, E4M3, E5M2, Minifloat
from gptscope.models.formats.scaling import (
    Quantized,
    mx_blocks,
    nv_blocks,
    per_row,
    per_tensor,
    product,
    tensor_scale,
)

__all__ = [
    "E2M1",
    "E4M3",
    "E5M2",
    "Minifloat",
    "Quantized",
    "mx_blocks",
    "nv_blocks",
    "per_row",
    "per_tensor",
    "product",
    "tensor_scale",
]
