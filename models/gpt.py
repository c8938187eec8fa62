"""One decoder-only transformer, top to bottom: GPT-2, GPT-NeoX, Llama, Mistral, Qwen2 and Qwen3 by configuration.

Everything here is the *unfused* textbook form. A fusion lever (`models/fusion/`) replaces one of the small modules
below (`SeparateQKV`, `TextbookAttention`, the norms, the MLPs) by a fused one with the same inputs and outputs.

Tensor names end in their shape:

    B  sequences in the batch          D  model width
    L  tokens given in this call       H  query heads
    S  tokens attended to (cached      K  key/value heads (K divides H; K < H is grouped-query attention)
       ones first, then the L new)     C  features per head
    V  vocabulary                      R  rotated features per head
                                       F  MLP width
"""

import math
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from gptscope.models.config import GPTConfig


class KVCache(Protocol):
    """Keys and values of earlier tokens. `models/kv_cache.py` has the kinds."""

    length: int
    """Tokens per sequence already stored."""

    def update(self, layer: int, k_BKLC: Tensor, v_BKLC: Tensor) -> tuple[Tensor, Tensor]:
        """Store one layer's new keys and values; return all of them, `k_BKSC, v_BKSC`, oldest first."""

    def advance(self, tokens: int) -> None:
        """Count `tokens` as stored, once every layer has been updated."""


class Mask(NamedTuple):
    """Which keys each query sees."""

    visible: Tensor | None
    """Boolean, `[B or 1, 1, L, S]`, True where the key is seen; None when every query sees every key."""
    is_causal: bool
    """True when `visible` is exactly the lower triangle with L == S, so that kernels can skip the upper half."""


class Rope(NamedTuple):
    """Rotation of each position, `[B or 1, 1, L, R]`, computed once per call and used by every layer."""

    cos: Tensor
    sin: Tensor
    """Negated in the first half of R: with that sign a pair's second feature is added to its first one."""


class LayerNorm(nn.Module):
    """Subtract the mean, divide by the standard deviation, scale and shift (Ba et al. 2016). Statistics in FP32."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, x_BLD: Tensor) -> Tensor:
        x = x_BLD.float()
        centred = x - x.mean(-1, keepdim=True)
        normal = centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + self.eps)
        return normal.to(x_BLD.dtype) * self.weight + self.bias


class RMSNorm(nn.Module):
    """Divide by the root mean square and scale (Zhang and Sennrich 2019). Statistics in FP32."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x_BLD: Tensor) -> Tensor:
        x = x_BLD.float()
        normal = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return normal.to(x_BLD.dtype) * self.weight


def gelu(x: Tensor) -> Tensor:
    """Gaussian error linear unit, exact form: x times the normal distribution function of x."""
    return 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0)))


def gelu_tanh(x: Tensor) -> Tensor:
    """Gaussian error linear unit, the tanh approximation that GPT-2 uses (Hendrycks and Gimpel 2016)."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x.pow(3))))


class GeluMLP(nn.Module):
    """Widen, bend, narrow (GPT-2, GPT-NeoX)."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.d_model, config.d_ff, bias=config.mlp_bias)
        self.down = nn.Linear(config.d_ff, config.d_model, bias=config.mlp_bias)
        self.tanh = config.mlp == "gelu_tanh"

    def forward(self, x_BLD: Tensor) -> Tensor:
        h_BLF = self.up(x_BLD)
        return self.down(gelu_tanh(h_BLF) if self.tanh else gelu(h_BLF))


class SwigluMLP(nn.Module):
    """Widen twice, gate one by the other, narrow (Shazeer 2020; Llama, Mistral, Qwen)."""

    smoothing: Tensor | None = None
    """`[F]`, what the hidden features were divided by in `up` and multiplied with in `down`; None: by nothing."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(config.d_model, config.d_ff, bias=config.mlp_bias)
        self.up = nn.Linear(config.d_model, config.d_ff, bias=config.mlp_bias)
        self.down = nn.Linear(config.d_ff, config.d_model, bias=config.mlp_bias)

    def forward(self, x_BLD: Tensor) -> Tensor:
        gate_BLF = self.gate(x_BLD)
        return self.down(gate_BLF * torch.sigmoid(gate_BLF) * self.up(x_BLD))


class SeparateQKV(nn.Module):
    """Queries, keys and values by three matrix products."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.d_head = config.d_head
        self.q = nn.Linear(config.d_model, config.n_head * config.d_head, bias=config.qkv_bias)
        self.k = nn.Linear(config.d_model, config.n_kv_head * config.d_head, bias=config.qkv_bias)
        self.v = nn.Linear(config.d_model, config.n_kv_head * config.d_head, bias=config.qkv_bias)

    def forward(self, x_BLD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return `q_BHLC, k_BKLC, v_BKLC`."""
        return (
            split_heads(self.q(x_BLD), self.d_head),
            split_heads(self.k(x_BLD), self.d_head),
            split_heads(self.v(x_BLD), self.d_head),
        )


def split_heads(x_BLD: Tensor, d_head: int) -> Tensor:
    """View `[B, L, heads * C]` as `[B, heads, L, C]`."""
    return x_BLD.unflatten(-1, (-1, d_head)).transpose(1, 2)


class TextbookAttention(nn.Module):
    """softmax(q kᵀ / √C) v, written as it is in "Attention is all you need" (Vaswani et al. 2017)."""

    def forward(self, q_BHLC: Tensor, k_BKSC: Tensor, v_BKSC: Tensor, mask: Mask) -> Tensor:
        """Return `y_BHLC`; with grouped queries each key/value head is repeated for its group."""
        group = q_BHLC.shape[1] // k_BKSC.shape[1]
        k_BHSC = k_BKSC.repeat_interleave(group, dim=1)
        v_BHSC = v_BKSC.repeat_interleave(group, dim=1)
        scores_BHLS = (q_BHLC @ k_BHSC.transpose(-1, -2)) * (q_BHLC.shape[-1] ** -0.5)
        if mask.visible is not None:
            scores_BHLS = scores_BHLS.masked_fill(~mask.visible, float("-inf"))
        weights_BHLS = torch.softmax(scores_BHLS.float(), dim=-1).to(v_BHSC.dtype)
        return weights_BHLS @ v_BHSC


class Attention(nn.Module):
    """Project, rotate, remember, attend, project back."""

    def __init__(self, config: GPTConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.qkv: nn.Module = SeparateQKV(config)
        self.q_norm: nn.Module | None = RMSNorm(config.d_head, config.norm_eps) if config.qk_norm else None
        self.k_norm: nn.Module | None = RMSNorm(config.d_head, config.norm_eps) if config.qk_norm else None
        self.core: nn.Module = TextbookAttention()
        self.out = nn.Linear(config.n_head * config.d_head, config.d_model, bias=config.out_bias)

    def forward(self, x_BLD: Tensor, rope: Rope | None, mask: Mask, cache: KVCache | None) -> Tensor:
        q_BHLC, k_BKLC, v_BKLC = self.qkv(x_BLD)
        if self.q_norm is not None and self.k_norm is not None:
            q_BHLC, k_BKLC = self.q_norm(q_BHLC), self.k_norm(k_BKLC)
        if rope is not None:
            q_BHLC, k_BKLC = rotate(q_BHLC, rope), rotate(k_BKLC, rope)
        k_BKSC, v_BKSC = (k_BKLC, v_BKLC) if cache is None else cache.update(self.layer, k_BKLC, v_BKLC)
        y_BHLC = self.core(q_BHLC, k_BKSC, v_BKSC, mask)
        return self.out(y_BHLC.transpose(1, 2).flatten(2))


def rotate(x_BHLC: Tensor, rope: Rope) -> Tensor:
    """Turn feature pairs (i, i + R/2) of the first R features by their position's angle (Su et al. 2021)."""
    size = rope.cos.shape[-1]
    x_BHLR, rest_BHLC = x_BHLC[..., :size], x_BHLC[..., size:]
    first, second = x_BHLR.chunk(2, dim=-1)
    turned_BHLR = x_BHLR * rope.cos + torch.cat((second, first), dim=-1) * rope.sin
    return turned_BHLR if rest_BHLC.shape[-1] == 0 else torch.cat((turned_BHLR, rest_BHLC), dim=-1)


class Block(nn.Module):
    """One layer: attention and MLP, each on a normalised copy, added to the stream."""

    def __init__(self, config: GPTConfig, layer: int) -> None:
        super().__init__()
        self.parallel = config.parallel_residual
        self.attn_norm = make_norm(config)
        self.attn: nn.Module = Attention(config, layer)
        self.mlp_norm = make_norm(config)
        self.mlp: nn.Module = SwigluMLP(config) if config.mlp == "swiglu" else GeluMLP(config)

    def forward(self, x_BLD: Tensor, rope: Rope | None, mask: Mask, cache: KVCache | None) -> Tensor:
        if self.parallel:  # GPT-NeoX: both read the same stream
            return x_BLD + self.attn(self.attn_norm(x_BLD), rope, mask, cache) + self.mlp(self.mlp_norm(x_BLD))
        x_BLD = x_BLD + self.attn(self.attn_norm(x_BLD), rope, mask, cache)
        return x_BLD + self.mlp(self.mlp_norm(x_BLD))


def make_norm(config: GPTConfig) -> nn.Module:
    """The unfused normalisation over the model width."""
    kind = LayerNorm if config.norm == "layernorm" else RMSNorm
    return kind(config.d_model, config.norm_eps)


class GPT(nn.Module):
    """Tokens in, logits out."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.d_model)
        learned = config.position == "learned"
        self.position = nn.Embedding(config.context_length, config.d_model) if learned else None
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.n_layer))
        self.norm = make_norm(config)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        if config.tie_embeddings:
            self.lm_head.weight = self.embed.weight

    def forward(
        self,
        tokens_BL: Tensor,
        cache: KVCache | None = None,
        padding_B: Tensor | None = None,
        last_only: bool = False,
    ) -> Tensor:
        """Predict the next token at each position.

        Args:
            tokens_BL: Token ids. With a cache these are the tokens that follow the cached ones.
            cache: Keys and values of earlier tokens; it grows by L. None: `tokens_BL` is the whole text.
            padding_B: Filler tokens at the left of each sequence, which nothing may attend to. None: no filler.
            last_only: Compute logits for the last position only (what generation needs).

        Returns:
            Logits, `[B, L, V]`, or `[B, 1, V]` with `last_only`.

        Raises:
            ValueError: The text would be longer than the model's context.
        """
        past = 0 if cache is None else cache.length
        length = tokens_BL.shape[1]
        if past + length > self.config.context_length:
            raise ValueError(
                f"{past + length} tokens do not fit into this model's context of {self.config.context_length}; "
                "use a shorter prompt or fewer new tokens."
            )
        position_BL = torch.arange(past, past + length, device=tokens_BL.device)[None]
        if padding_B is not None:
            position_BL = (position_BL - padding_B[:, None]).clamp(min=0)
        x_BLD = self.embed(tokens_BL)
        rope = None
        if self.position is not None:
            x_BLD = x_BLD + self.position(position_BL)
        else:
            rope = make_rope(self.config, position_BL, x_BLD.dtype)
        mask = make_mask(past, length, padding_B, self.config.sliding_window, tokens_BL.device)
        for block in self.blocks:
            x_BLD = block(x_BLD, rope, mask, cache)
        if cache is not None:
            cache.advance(length)
        if last_only:
            x_BLD = x_BLD[:, -1:]
        return self.lm_head(self.norm(x_BLD))


def make_mask(past: int, length: int, padding_B: Tensor | None, window: int | None, device: torch.device) -> Mask:
    """Each token sees itself and the earlier ones, except filler and what lies outside the sliding window."""
    attended = past + length
    windowed = window is not None and attended > window
    if length == 1 and padding_B is None and not windowed:
        return Mask(None, is_causal=False)
    query_L1 = torch.arange(past, attended, device=device)[:, None]
    key_1S = torch.arange(attended, device=device)[None]
    visible_LS = key_1S <= query_L1
    if window is not None and windowed:
        visible_LS = visible_LS & (key_1S > query_L1 - window)
    if padding_B is None:
        return Mask(visible_LS[None, None], is_causal=past == 0 and not windowed)
    # Filler sees itself: a row that sees nothing would be NaN, and NaN times a weight of zero is still NaN.
    visible_BLS = (visible_LS & (key_1S >= padding_B[:, None, None])) | (key_1S == query_L1)
    return Mask(visible_BLS[:, None], is_causal=False)


def make_rope(config: GPTConfig, position_BL: Tensor, dtype: torch.dtype) -> Rope:
    """Cosines and sines of each position's angles, computed in FP32 and rounded once."""
    angle_BxLR = position_BL[:, None, :, None].float() * rope_frequencies(config, position_BL.device)
    cos, sin = angle_BxLR.cos().to(dtype), angle_BxLR.sin().to(dtype)
    return Rope(torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1))


def rope_frequencies(config: GPTConfig, device: torch.device) -> Tensor:
    """Angle per token of each feature pair, `[R/2]`, after the configured scaling."""
    exponent = torch.arange(0, config.rotary_dim, 2, dtype=torch.float32, device=device) / config.rotary_dim
    frequency = 1.0 / (config.rope_theta**exponent)
    scaling = config.rope_scaling
    if scaling is None:
        return frequency
    if scaling.kind == "linear":
        return frequency / scaling.factor
    wavelength = 2 * math.pi / frequency
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    blend = ((scaling.original_context / wavelength - low) / (high - low)).clamp(0.0, 1.0)
    return (1 - blend) * frequency / scaling.factor + blend * frequency


def init_weights(model: GPT, seed: int) -> None:
    """Random weights as GPT-2 starts: normal(0, 0.02), residual projections scaled by 1/√(2 layers), biases zero."""
    generator = torch.Generator().manual_seed(seed)
    residual_std = 0.02 / math.sqrt(2 * model.config.n_layer)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() >= 2:
                residual = name.endswith(("attn.out.weight", "mlp.down.weight"))
                parameter.normal_(0.0, residual_std if residual else 0.02, generator=generator)
            elif name.endswith("bias"):
                parameter.zero_()
