"""BF16: the range of FP32 with 8 bits of precision."""

import torch

from gptscope.models.precision.recipe import PrecisionRecipe


class Bf16(PrecisionRecipe):
    """Weights (inference) or matrix products (training) in bfloat16."""

    name = "bf16"
    title = "BF16"
    summary = "16-bit brain floating point: half the weight bytes of FP32 with the same range, so nothing overflows."
    dtype = torch.bfloat16
    bytes_per_value = 2.0
    native_features = frozenset({"avx512_bf16", "amx_bf16"})
