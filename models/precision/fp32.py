"""FP32: the reference that every other recipe is compared with."""

import torch

from gptscope.models.precision.recipe import PrecisionRecipe


class Fp32(PrecisionRecipe):
    """Everything in 32-bit floating point, TF32 switched off."""

    name = "fp32"
    title = "FP32"
    summary = "32-bit floating point everywhere, TF32 off: the reference for speed and for quality."
    dtype = torch.float32
    bytes_per_value = 4.0
