"""Attention by torch's scaled_dot_product_attention (flash attention where the device has it)."""

import torch.nn.functional as F
from torch import Tensor, nn

from gptscope.models.fusion.counting import batched_products_per_step
from gptscope.models.fusion.lever import Fusion, blocks_of
from gptscope.models.gpt import GPT, Mask, TextbookAttention
from gptscope.models.levers import Evidence, KernelFact, LeverContext, ProfileFacts


class FusedAttention(nn.Module):
    """softmax(q kᵀ / √C) v in one kernel that never stores the scores (Dao et al. 2022)."""

    def forward(self, q_BHLC: Tensor, k_BKSC: Tensor, v_BKSC: Tensor, mask: Mask) -> Tensor:
        """Return `y_BHLC`. Grouped queries share their key/value head without it being repeated in memory."""
        batch, heads, length, size = q_BHLC.shape
        kv_heads = k_BKSC.shape[1]
        if length == 1 and mask.visible_BxLS is None:
            # One query: the heads of a group are just more queries over the same keys.
            q_BKGC = q_BHLC.reshape(batch, kv_heads, heads // kv_heads, size)
            return F.scaled_dot_product_attention(q_BKGC, k_BKSC, v_BKSC).reshape(batch, heads, 1, size)
        visible = None if mask.is_causal else mask.visible_BxLS
        return F.scaled_dot_product_attention(
            q_BHLC, k_BKSC, v_BKSC, attn_mask=visible, is_causal=mask.is_causal, enable_gqa=heads != kv_heads
        )


class Attention(Fusion):
    """Textbook attention replaced by SDPA."""

    name = "attention"
    title = "fused attention"
    summary = "scores, softmax and weighted sum in one kernel (flash attention) that never writes the score matrix."

    def apply(self, model: GPT, context: LeverContext) -> None:
        del context
        for block in blocks_of(model):
            if isinstance(block.attn.core, TextbookAttention):
                block.attn.core = FusedAttention()

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        del context
        fused = facts.calls_per_step(_is_fused_attention)
        softmaxes = facts.calls_per_step(
            lambda kernel: kernel.name == "aten::_softmax" or "softmax" in kernel.name.lower()
        )
        if fused:
            return self.shown(f"{fused:.0f} fused attention kernels per step.")
        return self.not_shown(
            f"No fused attention kernel in the profile, but {softmaxes:.0f} softmax kernels and "
            f"{batched_products_per_step(facts):.0f} batched products per step.",
        )


def _is_fused_attention(kernel: KernelFact) -> bool:
    name = kernel.name.lower()
    if "backward" in name or "bwd" in name:
        return False
    return any(
        part in name
        for part in ("_scaled_dot_product_flash", "flash_fwd", "fmha", "efficient_attention", "cudnn_attention")
    )
