"""FP16: IEEE half precision, 11 bits of precision but a small range."""

import torch

from gptscope.models.precision.recipe import PrecisionRecipe


class Fp16(PrecisionRecipe):
    """Weights (inference) or matrix products (training, with loss scaling) in IEEE half precision."""

    name = "fp16"
    title = "FP16"
    summary = (
        "16-bit IEEE floating point: half the weight bytes of FP32 and finer steps than BF16, but values above 65504 "
        "overflow. Training scales the loss so that small gradients survive."
    )
    dtype = torch.float16
    bytes_per_value = 2.0
    native_features = frozenset({"avx512_fp16", "amx_fp16"})

    def needs_loss_scaling(self) -> bool:
        return True
