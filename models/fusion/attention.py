"""Attention by torch's scaled_dot_product_attention (flash attention where the device has it)."""

import torch
from torch import Tensor, nn

from gptscope.models.fusion.counting import batched_products_per_step
from gptscope.models.fusion.lever import Fusion, blocks_of
from gptscope.models.fusion.linear import row_linear
from gptscope.models.fusion.qkv import FusedQKV
from gptscope.models.gpt import GPT, Attention, KVCache, Mask, Rope
from gptscope.models.levers import Evidence, KernelFact, LeverContext, ProfileFacts


class FusedAttention(nn.Module):
    """`gpt.Attention` with a three-kernel rotation and softmax(q kᵀ / √C) v in one kernel (Dao et al. 2022)."""

    def __init__(self, textbook: Attention) -> None:
        super().__init__()
        self.layer = textbook.layer
        self.qkv = textbook.qkv
        self.q_norm, self.k_norm = textbook.q_norm, textbook.k_norm
        self.out = row_linear(textbook.out)

    def forward(self, x_BLD: Tensor, rope: Rope | None, mask: Mask, cache: KVCache | None) -> Tensor:
        q_BHLC, k_BKLC, v_BKLC = self._rotated(x_BLD, rope)
        k_BKSC, v_BKSC = (k_BKLC, v_BKLC) if cache is None else cache.update(self.layer, k_BKLC, v_BKLC)
        return self.out(attend(q_BHLC, k_BKSC, v_BKSC, mask))

    def _rotated(self, x_BLD: Tensor, rope: Rope | None) -> tuple[Tensor, Tensor, Tensor]:
        qkv = self.qkv
        if isinstance(qkv, FusedQKV) and rope is not None and self.q_norm is None:
            # queries and keys lie side by side: one rotation turns both
            heads, kv_heads, _ = qkv.heads
            qkv_BxLC = qkv.joined(x_BLD)
            qk_BxLC = rotate_fused(qkv_BxLC.narrow(1, 0, heads + kv_heads), rope)
            v_BKLC = qkv_BxLC.narrow(1, heads + kv_heads, kv_heads)
            return qk_BxLC.narrow(1, 0, heads), qk_BxLC.narrow(1, heads, kv_heads), v_BKLC
        q_BHLC, k_BKLC, v_BKLC = qkv(x_BLD)
        if self.q_norm is not None and self.k_norm is not None:
            q_BHLC, k_BKLC = self.q_norm(q_BHLC), self.k_norm(k_BKLC)
        if rope is not None:
            q_BHLC, k_BKLC = rotate_fused(q_BHLC, rope), rotate_fused(k_BKLC, rope)
        return q_BHLC, k_BKLC, v_BKLC


def rotate_fused(x_BHLC: Tensor, rope: Rope) -> Tensor:
    """`gpt.rotate` in three kernels: swap the halves, multiply, multiply and add."""
    size = rope.cos.shape[-1]
    if size == x_BHLC.shape[-1]:
        return torch.addcmul(x_BHLC * rope.cos, x_BHLC.roll(size // 2, -1), rope.sin)
    x_BHLR, rest_BHLC = x_BHLC[..., :size], x_BHLC[..., size:]
    return torch.cat((rotate_fused(x_BHLR, rope), rest_BHLC), dim=-1)


def attend(q_BHLC: Tensor, k_BKSC: Tensor, v_BKSC: Tensor, mask: Mask) -> Tensor:
    """Return `y_BLD`. Grouped queries share their key/value head without it being repeated in memory."""
    batch, heads, length, size = q_BHLC.shape
    kv_heads = k_BKSC.shape[1]
    sdpa = nn.functional.scaled_dot_product_attention
    if length == 1:
        # One token: the heads of a group are just more queries over the same keys.
        q_BKGC = q_BHLC.reshape(batch, kv_heads, heads // kv_heads, size)
        return sdpa(q_BKGC, k_BKSC, v_BKSC, attn_mask=mask.visible).reshape(batch, 1, heads * size)
    visible = None if mask.is_causal else mask.visible
    y_BHLC = sdpa(q_BHLC, k_BKSC, v_BKSC, attn_mask=visible, is_causal=mask.is_causal, enable_gqa=heads != kv_heads)
    return y_BHLC.transpose(1, 2).flatten(2)


class FlashAttention(Fusion):
    """Textbook attention replaced by SDPA."""

    name = "attention"
    title = "fused attention"
    summary = "Scores, softmax and weighted sum in one kernel (flash attention) that never writes the score matrix."

    def apply(self, model: GPT, context: LeverContext) -> None:
        del context
        for block in blocks_of(model):
            if isinstance(block.attn, Attention):
                block.attn = FusedAttention(block.attn)

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        del context
        fused = facts.calls_per_step(_is_fused_attention)
        softmaxes = facts.calls_per_step(lambda kernel: "softmax" in kernel.name.lower())
        if fused:
            return self.shown(f"{fused:.0f} fused attention kernels per step.")
        return self.not_shown(
            f"No fused attention kernel in the profile, but {softmaxes:.0f} softmax kernels and "
            f"{batched_products_per_step(facts):.0f} batched products per step."
        )


_FUSED_NAMES = ("_scaled_dot_product_flash", "flash_fwd", "fmha", "native_sdpa")
"""In order: torch's CPU kernel, FlashAttention, memory-efficient attention, cuDNN."""


def _is_fused_attention(kernel: KernelFact) -> bool:
    name = kernel.name.lower()
    # Generated kernels are named after all that was traced near them, attention too.
    other = any(part in name for part in ("backward", "bwd", "cpp_fused", "triton_"))
    return not other and any(part in name for part in _FUSED_NAMES)
