"""AdamW over all parameters at once instead of one after another."""

import torch
from torch import nn

from gptscope.models.fusion.lever import Fusion
from gptscope.models.levers import Evidence, LeverContext, ProfileFacts

_FUSED_DEVICES = ("cpu", "cuda")


def make_adamw(model: nn.Module, lr: float, *, fused: bool) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019), as the textbook's loop over parameters or by one fused kernel."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if fused and all(parameter.device.type in _FUSED_DEVICES for parameter in parameters):
        return torch.optim.AdamW(parameters, lr=lr, fused=True)
    return torch.optim.AdamW(parameters, lr=lr, foreach=fused, fused=False)


class Optimizer(Fusion):
    """Fused AdamW."""

    name = "optimizer"
    title = "fused AdamW"
    summary = "One fused AdamW kernel for the parameters instead of a dozen operators for each of them."
    workloads = ("train",)

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        del context
        fused = facts.calls_per_step(
            lambda kernel: "fused_adam" in kernel.name.lower() or "fusedadam" in kernel.name.lower()
        )
        foreach = facts.calls_per_step(
            lambda kernel: "foreach" in kernel.name.lower() or "multi_tensor" in kernel.name.lower()
        )
        if fused:
            return self.shown(f"Fused AdamW: {fused:.0f} kernels per step.")
        if foreach:
            return self.shown(f"Foreach AdamW (no fused kernel for this device): {foreach:.0f} kernels per step.")
        loops = facts.calls_per_step(lambda kernel: kernel.name == "aten::addcdiv_")
        return self.not_shown(f"No fused AdamW kernel in the profile; the loop updated {loops:.0f} tensors per step.")
