"""Queries, keys and values in one matrix product."""

from torch import Tensor, nn

from gptscope.models.fusion.counting import linear_count_evidence
from gptscope.models.fusion.lever import Fusion, blocks_of
from gptscope.models.fusion.linear import stack_linears
from gptscope.models.gpt import GPT, SeparateQKV
from gptscope.models.levers import Evidence, LeverContext, ProfileFacts


class FusedQKV(nn.Module):
    """The three weights stacked, so that the input is read once and one kernel starts instead of three."""

    def __init__(self, separate: SeparateQKV) -> None:
        super().__init__()
        self.d_head = separate.d_head
        parts = (separate.q, separate.k, separate.v)
        self.heads = [part.out_features // separate.d_head for part in parts]
        self.proj: nn.Module = stack_linears(parts)

    def forward(self, x_BLD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return `q_BHLC, k_BKLC, v_BKLC`, views of one result."""
        q_BHLC, k_BKLC, v_BKLC = self.joined(x_BLD).split(self.heads, dim=1)
        return q_BHLC, k_BKLC, v_BKLC

    def joined(self, x_BLD: Tensor) -> Tensor:
        """Return the heads of queries, keys and values one after another, `[B, H + 2K, L, C]`."""
        return self.proj(x_BLD).view(*x_BLD.shape[:2], -1, self.d_head).transpose(1, 2)


class Qkv(Fusion):
    """One GEMM instead of three."""

    name = "qkv"
    title = "fused QKV"
    summary = "Queries, keys and values by one matrix product instead of three: fewer launches, the input is read once."

    def apply(self, model: GPT, context: LeverContext) -> None:
        del context
        for block in blocks_of(model):
            if isinstance(block.attn.qkv, SeparateQKV):
                block.attn.qkv = FusedQKV(block.attn.qkv)

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        return linear_count_evidence(self, facts, context, "qkv", textbook=3, fused=1)
