"""Normalisation by torch's own operators instead of the formula."""

import torch
from torch import Tensor, nn

from gptscope.models.fusion.lever import Fusion, replace_modules
from gptscope.models.gpt import GPT, LayerNorm, RMSNorm
from gptscope.models.levers import Evidence, KernelFact, LeverContext, ProfileFacts


class FusedLayerNorm(nn.Module):
    """`nn.functional.layer_norm`: one kernel."""

    def __init__(self, textbook: LayerNorm) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = textbook.weight, textbook.bias, textbook.eps

    def forward(self, x_BLD: Tensor) -> Tensor:
        return nn.functional.layer_norm(x_BLD, self.weight.shape, self.weight, self.bias, self.eps)


class FusedRMSNorm(nn.Module):
    """`nn.functional.rms_norm`: one kernel on CUDA."""

    def __init__(self, textbook: RMSNorm) -> None:
        super().__init__()
        self.weight, self.eps = textbook.weight, textbook.eps

    def forward(self, x_BLD: Tensor) -> Tensor:
        # Under autocast the weights are FP32 and q, k are not; the fused kernel wants one type.
        return nn.functional.rms_norm(x_BLD.to(self.weight.dtype), self.weight.shape, self.weight, self.eps)


class MirroredRMSNorm(nn.Module):
    """RMSNorm by the layer-norm kernel, for inference on a CPU, where torch runs `rms_norm` as eight operators.

    The pair of rows (x, -x) has mean zero and variance mean(x²), so the first row of its layer norm is x's RMS norm.
    """

    def __init__(self, textbook: RMSNorm) -> None:
        super().__init__()
        weight_D = textbook.weight.detach()
        self.eps = textbook.eps
        self.shape = (2, weight_D.shape[0])
        self.weight = nn.Parameter(torch.stack((weight_D, weight_D)), requires_grad=False)
        self.signs = nn.Parameter(torch.tensor([[1.0], [-1.0]]).to(weight_D), requires_grad=False)

    def forward(self, x_BLD: Tensor) -> Tensor:
        mirrored_BLxD = x_BLD.unsqueeze(-2) * self.signs
        return torch.layer_norm(mirrored_BLxD, self.shape, self.weight, None, self.eps).select(-2, 0)


class Norm(Fusion):
    """Fused normalisation."""

    name = "norm"
    title = "fused norm"
    summary = "LayerNorm or RMSNorm by torch's fused operator instead of separate mean, square, root and scale."

    def apply(self, model: GPT, context: LeverContext) -> None:
        mirrored = context.machine.device == "cpu" and not context.training and "compile" not in context.fusions

        def make(module: nn.Module) -> nn.Module | None:
            if isinstance(module, LayerNorm):
                return FusedLayerNorm(module)
            if isinstance(module, RMSNorm):
                return MirroredRMSNorm(module) if mirrored else FusedRMSNorm(module)
            return None

        replace_modules(model, make)

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        if "compile" in context.fusions:
            return self.cannot_tell("The compiler merges the norms into other kernels, so they cannot be told apart.")
        fused = facts.calls_per_step(_is_fused_norm)
        if fused:
            return self.shown(f"{fused:.0f} fused norm operators per step.")
        loose = facts.calls_per_step(lambda kernel: "rsqrt" in kernel.name)
        return self.not_shown(
            f"No fused norm operator in the profile; the formula's rsqrt ran {loose:.0f} times per step."
        )


def _is_fused_norm(kernel: KernelFact) -> bool:
    if kernel.name.startswith("aten::"):  # the innermost operators, so that each norm counts once
        return kernel.name in ("aten::native_layer_norm", "aten::_fused_rms_norm")
    name = kernel.name.lower()
    return any(part in name for part in ("layer_norm", "rms_norm", "layernorm", "rmsnorm")) and "backward" not in name
