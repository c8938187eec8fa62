"""The shape of a decoder-only transformer: everything `gpt.GPT` needs to know to build itself."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeScaling:
    """How rotary frequencies are stretched so that a model reads further than it was trained.

    `linear` divides every frequency by `factor` (kaiokendev/Chen et al. 2023). `llama3` divides only the low
    frequencies, blending between `low_freq_factor` and `high_freq_factor` (Llama 3.1 model card; the same rule as
    transformers' `_compute_llama3_parameters`).
    """

    kind: Literal["linear", "llama3"]
    factor: float
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_context: int = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class GPTConfig:
    """Sizes and choices of one decoder. Counts are in tokens, heads or features, never in bytes."""

    family: str
    vocab_size: int
    context_length: int
    n_layer: int
    d_model: int
    n_head: int
    n_kv_head: int
    d_head: int
    d_ff: int
    norm: Literal["layernorm", "rmsnorm"] = "rmsnorm"
    norm_eps: float = 1e-5
    position: Literal["learned", "rope"] = "rope"
    rope_theta: float = 10_000.0
    rotary_dim: int = 0
    """Leading features of each head that are rotated; 0 with learned positions, `d_head` for full rotary."""
    rope_scaling: RopeScaling | None = None
    mlp: Literal["gelu", "gelu_tanh", "swiglu"] = "swiglu"
    parallel_residual: bool = False
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    sliding_window: int | None = None
    """Each token sees at most this many latest tokens, itself included (Mistral 7B v0.1); None = all."""
    tie_embeddings: bool = True

    def __post_init__(self) -> None:
        """Raise `ValueError` naming the field when a size is impossible, before any memory is taken."""
        for name in ("vocab_size", "context_length", "n_layer", "d_model", "n_head", "n_kv_head", "d_head", "d_ff"):
            value = getattr(self, name)
            if not isinstance(value, int) or not 1 <= value <= 2**31 - 1:
                raise ValueError(f"model config: {name} must be a positive whole number, but it is {value!r}.")
        if self.n_head % self.n_kv_head:
            raise ValueError(
                f"model config: n_head ({self.n_head}) must be a multiple of n_kv_head ({self.n_kv_head}), "
                "because each key/value head serves the same number of query heads."
            )
        if self.position == "rope" and not (2 <= self.rotary_dim <= self.d_head and self.rotary_dim % 2 == 0):
            raise ValueError(
                f"model config: rotary_dim must be even and between 2 and d_head ({self.d_head}), "
                f"but it is {self.rotary_dim}."
            )
        if not 0.0 < self.norm_eps < 1.0:
            raise ValueError(f"model config: norm_eps must lie between 0 and 1, but it is {self.norm_eps!r}.")

    @property
    def parameter_count(self) -> int:
        """Number of trainable values, tied embeddings counted once, computed without building the model."""
        norm = self.d_model * (2 if self.norm == "layernorm" else 1)
        q, kv = self.n_head * self.d_head, self.n_kv_head * self.d_head
        attention = self.d_model * (q + 2 * kv) + q * self.d_model
        attention += (q + 2 * kv if self.qkv_bias else 0) + (self.d_model if self.out_bias else 0)
        attention += 2 * self.d_head if self.qk_norm else 0
        up_count = 2 if self.mlp == "swiglu" else 1
        mlp = (up_count + 1) * self.d_model * self.d_ff
        mlp += (up_count * self.d_ff + self.d_model) if self.mlp_bias else 0
        embeddings = self.vocab_size * self.d_model * (1 if self.tie_embeddings else 2)
        embeddings += self.context_length * self.d_model if self.position == "learned" else 0
        return embeddings + self.n_layer * (attention + mlp + 2 * norm) + norm

    def kv_bytes_per_token(self, bytes_per_value: float) -> float:
        """Bytes that one token of one sequence adds to the key/value cache (keys and values, all layers)."""
        return 2 * self.n_layer * self.n_kv_head * self.d_head * bytes_per_value


def _gpt2(n_layer: int, d_model: int, n_head: int) -> GPTConfig:
    return GPTConfig(
        family="gpt2",
        vocab_size=50257,
        context_length=1024,
        n_layer=n_layer,
        d_model=d_model,
        n_head=n_head,
        n_kv_head=n_head,
        d_head=d_model // n_head,
        d_ff=4 * d_model,
        norm="layernorm",
        position="learned",
        mlp="gelu_tanh",
        qkv_bias=True,
        out_bias=True,
        mlp_bias=True,
    )


def _llama(
    vocab_size: int, context_length: int, n_layer: int, d_model: int, n_head: int, n_kv_head: int, d_ff: int, tie: bool
) -> GPTConfig:
    return GPTConfig(
        family="llama",
        vocab_size=vocab_size,
        context_length=context_length,
        n_layer=n_layer,
        d_model=d_model,
        n_head=n_head,
        n_kv_head=n_kv_head,
        d_head=d_model // n_head,
        d_ff=d_ff,
        rotary_dim=d_model // n_head,
        tie_embeddings=tie,
    )


PRESETS: dict[str, GPTConfig] = {
    "gpt2-124m": _gpt2(12, 768, 12),
    "gpt2-355m": _gpt2(24, 1024, 16),
    "gpt2-774m": _gpt2(36, 1280, 20),
    "gpt2-1.5b": _gpt2(48, 1600, 25),
    "llama-135m": _llama(49152, 2048, 30, 576, 9, 3, 1536, tie=True),  # the shape of SmolLM2-135M
    "llama-1.1b": _llama(32000, 2048, 22, 2048, 32, 4, 5632, tie=False),  # the shape of TinyLlama-1.1B
    "tiny": _llama(512, 256, 2, 64, 4, 2, 192, tie=True),
}
"""Shapes for speed tests with random weights: never a claim about quality."""
