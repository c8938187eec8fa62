"""Queries, keys and values in one matrix product."""

import torch
from torch import Tensor, nn

from gptscope.models.fusion.counting import linear_count_evidence
from gptscope.models.fusion.lever import Fusion, blocks_of
from gptscope.models.gpt import GPT, SeparateQKV, split_heads
from gptscope.models.levers import Evidence, LeverContext, ProfileFacts


class FusedQKV(nn.Module):
    """The three weights stacked, so that the input is read once and one kernel starts instead of three."""

    def __init__(self, separate: SeparateQKV) -> None:
        super().__init__()
        self.d_head = separate.d_head
        parts = (separate.q, separate.k, separate.v)
        self.sizes = [part.out_features for part in parts]
        self.proj: nn.Module = stack_linears(parts)

    def forward(self, x_BLD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return `q_BHLC, k_BKLC, v_BKLC`, views of one result."""
        q_BLD, k_BLD, v_BLD = self.proj(x_BLD).split(self.sizes, dim=-1)
        return split_heads(q_BLD, self.d_head), split_heads(k_BLD, self.d_head), split_heads(v_BLD, self.d_head)


def stack_linears(parts: tuple[nn.Linear, ...]) -> nn.Linear:
    """One linear layer that computes all `parts`, their outputs one after another."""
    first = parts[0]
    out_features = sum(part.out_features for part in parts)
    # built without memory: the weights below replace the parameters
    stacked = nn.Linear(first.in_features, out_features, bias=first.bias is not None, device="meta")
    with torch.no_grad():
        stacked.weight = nn.Parameter(torch.cat([part.weight for part in parts]))
        if first.bias is not None:
            stacked.bias = nn.Parameter(torch.cat([part.bias for part in parts]))
    return stacked


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
        return linear_count_evidence(self, facts, context)
