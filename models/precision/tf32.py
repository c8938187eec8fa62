"""TF32: FP32 storage, matrix products with inputs rounded to 10 bits of mantissa (NVIDIA Ampere and newer)."""

import torch
from torch import nn

from gptscope.models.levers import Evidence, LeverContext, ProfileFacts
from gptscope.models.precision.recipe import PrecisionRecipe, allow_tf32

_AMPERE = (8, 0)


class Tf32(PrecisionRecipe):
    """FP32 weights and activations; tensor cores round the inputs of matrix products."""

    name = "tf32"
    title = "TF32"
    summary = "FP32 weights, but NVIDIA tensor cores round the inputs of matrix products to 10 mantissa bits: faster."
    dtype = torch.float32
    bytes_per_value = 4.0

    def machine_reason(self, context: LeverContext) -> str | None:
        machine = context.machine
        if machine.device == "cuda" and machine.compute_capability and machine.compute_capability >= _AMPERE:
            return None
        lacks = "This machine has none." if machine.compute_capability is None else "This machine's GPU is older."
        if machine.device == "cpu" and machine.compute_capability and machine.compute_capability >= _AMPERE:
            lacks = "This run is on the CPU."
        return f"TF32 needs an NVIDIA GPU, Ampere or newer. {lacks}"

    def apply(self, model: nn.Module, *, training: bool) -> None:
        super().apply(model, training=training)
        allow_tf32(allowed=True)

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        named = [kernel for kernel in facts.kernels if "tf32" in kernel.name.lower()]
        if named:
            calls = sum(kernel.calls for kernel in named)
            return self.shown(f"{calls} matrix products ran in TF32 tensor-core kernels.")
        plain = [kernel for kernel in facts.kernels if "sgemm" in kernel.name.lower()]
        if plain:
            calls = sum(kernel.calls for kernel in plain)
            return self.not_shown(f"All {calls} matrix products seen ran in plain FP32 kernels, none in TF32.")
        del context
        return self.cannot_tell("The kernels' names do not tell whether TF32 was used.")
