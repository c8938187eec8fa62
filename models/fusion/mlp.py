"""The MLP with fewer kernels: gate and up in one product, the activation in one operator."""

from torch import Tensor, nn

from gptscope.models.fusion.counting import linear_count_evidence
from gptscope.models.fusion.lever import Fusion, blocks_of
from gptscope.models.fusion.linear import row_linear, stack_linears
from gptscope.models.gpt import GPT, GeluMLP, SwigluMLP
from gptscope.models.levers import Evidence, LeverContext, ProfileFacts


class FusedSwigluMLP(nn.Module):
    """Gate and up stacked; SiLU in one operator."""

    smoothing: Tensor | None = None
    """As in `SwigluMLP`."""

    def __init__(self, separate: SwigluMLP) -> None:
        super().__init__()
        self.gate_up: nn.Module = stack_linears((separate.gate, separate.up))
        self.down = row_linear(separate.down)

    def forward(self, x_BLD: Tensor) -> Tensor:
        gate_BLF, up_BLF = self.gate_up(x_BLD).chunk(2, dim=-1)
        return self.down(nn.functional.silu(gate_BLF) * up_BLF)


class FusedGeluMLP(nn.Module):
    """GELU in one operator instead of the formula's seven."""

    def __init__(self, separate: GeluMLP) -> None:
        super().__init__()
        self.up = row_linear(separate.up)
        self.down = row_linear(separate.down)
        self.approximate = "tanh" if separate.tanh else "none"

    def forward(self, x_BLD: Tensor) -> Tensor:
        return self.down(nn.functional.gelu(self.up(x_BLD), approximate=self.approximate))


class Mlp(Fusion):
    """Fused gate+up and activation."""

    name = "mlp"
    title = "fused MLP"
    summary = "Gate and up projections by one matrix product (SwiGLU) and the activation by one operator (SiLU, GELU)."

    def apply(self, model: GPT, context: LeverContext) -> None:
        del context
        for block in blocks_of(model):
            if isinstance(block.mlp, SwigluMLP):
                block.mlp = FusedSwigluMLP(block.mlp)
            elif isinstance(block.mlp, GeluMLP):
                block.mlp = FusedGeluMLP(block.mlp)

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        if context.config is not None and context.config.mlp == "swiglu":
            return linear_count_evidence(self, facts, context, "mlp", textbook=3, fused=2)
        if "compile" in context.fusions:
            return self.cannot_tell(
                "The compiler merges the activation into other kernels, so it cannot be told apart."
            )
        fused = facts.calls_per_step(
            lambda kernel: "gelu" in kernel.name.lower() and "backward" not in kernel.name.lower()
        )
        textbook = facts.calls_per_step(lambda kernel: kernel.name in ("aten::tanh", "aten::erf"))
        if fused:
            return self.shown(f"{fused:.0f} GELU operators per step; the formula's tanh or erf is gone.")
        return self.not_shown(
            f"No GELU operator in the profile; the formula's tanh or erf ran {textbook:.0f} times per step."
        )
