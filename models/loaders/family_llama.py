"""Llama and its kin (SmolLM, TinyLlama, Mistral, Qwen2, Qwen3): their `config.json` and tensor names."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from gptscope.models.config import GPTConfig
from gptscope.models.loaders.rope import read_rope
from gptscope.models.loaders.settings import Settings
from gptscope.models.loaders.weights import Stored, same

_LAYER_KINDS = ("full_attention", "sliding_attention")


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaFamily:
    """One member; the fields are what tells the members apart."""

    name: str
    context_length: int
    n_kv_head: int | None = None
    """Key/value heads when the config does not say; None: as many as query heads."""
    d_head: int | None = None
    """Head size when the config does not say; None: width / heads."""
    biases: Literal["by_config", "none", "qkv"] = "none"
    """Biases in attention: as `attention_bias` says (all four), none, or always on q, k and v only."""
    mlp_bias_by_config: bool = False
    qk_norm: bool = False
    sliding: Literal["never", "always", "by_config"] = "never"

    def config(self, settings: Settings) -> GPTConfig:
        """Sizes and choices from a `config.json`; absent fields have transformers' defaults.

        Raises:
            ModelError: A field is missing, malformed, or asks for something the decoder lacks.
        """
        if settings.text("hidden_act", "silu") not in ("silu", "swish"):
            raise settings.error(
                "hidden_act", f"is {settings.optional('hidden_act')!r}; of the gated kinds gptscope knows silu"
            )
        n_head, d_model = settings.integer("num_attention_heads"), settings.integer("hidden_size")
        d_head = settings.integer("head_dim", self.d_head or d_model // max(n_head, 1))
        context = settings.integer("max_position_embeddings", self.context_length)
        n_layer = settings.integer("num_hidden_layers")
        rope = read_rope(settings, context, partial=settings.number("partial_rotary_factor", 1.0))
        if rope.partial != 1.0:
            raise settings.error("partial_rotary_factor", f"is {rope.partial}; {self.name} models rotate whole heads")
        all_biases = self.biases == "by_config" and settings.flag("attention_bias", default=False)
        return GPTConfig(
            family=self.name,
            vocab_size=settings.integer("vocab_size"),
            context_length=context,
            n_layer=n_layer,
            d_model=d_model,
            n_head=n_head,
            n_kv_head=settings.integer("num_key_value_heads", self.n_kv_head or n_head),
            d_head=d_head,
            d_ff=settings.integer("intermediate_size"),
            norm_eps=settings.number("rms_norm_eps", 1e-6),
            rope_theta=rope.theta,
            rotary_dim=d_head,
            rope_scaling=rope.scaling,
            qkv_bias=all_biases or self.biases == "qkv",
            out_bias=all_biases,
            mlp_bias=self.mlp_bias_by_config and settings.flag("mlp_bias", default=False),
            qk_norm=self.qk_norm,
            sliding_window=self._window(settings, n_layer),
            tie_embeddings=settings.flag("tie_word_embeddings", default=False),
        )

    def plan(self, config: GPTConfig, names: Collection[str]) -> Iterator[Stored]:
        """Stored tensors in the order of the decoder; `names` tells whether the `model.` prefix is there."""
        prefix = "" if "embed_tokens.weight" in names else "model."
        width, q, kv = config.d_model, config.n_head * config.d_head, config.n_kv_head * config.d_head
        yield same(f"{prefix}embed_tokens.weight", (config.vocab_size, width), "embed.weight")
        for layer in range(config.n_layer):
            theirs, ours = f"{prefix}layers.{layer}", f"blocks.{layer}"
            yield same(f"{theirs}.input_layernorm.weight", (width,), f"{ours}.attn_norm.weight")
            for stored, kept, size in (("q_proj", "q", q), ("k_proj", "k", kv), ("v_proj", "v", kv)):
                linear = f"{theirs}.self_attn.{stored}", f"{ours}.attn.qkv.{kept}"
                yield from _linear(*linear, size, width, bias=config.qkv_bias)
            if config.qk_norm:
                yield same(f"{theirs}.self_attn.q_norm.weight", (config.d_head,), f"{ours}.attn.q_norm.weight")
                yield same(f"{theirs}.self_attn.k_norm.weight", (config.d_head,), f"{ours}.attn.k_norm.weight")
            yield from _linear(f"{theirs}.self_attn.o_proj", f"{ours}.attn.out", width, q, bias=config.out_bias)
            yield same(f"{theirs}.post_attention_layernorm.weight", (width,), f"{ours}.mlp_norm.weight")
            for name in ("gate", "up"):
                linear = f"{theirs}.mlp.{name}_proj", f"{ours}.mlp.{name}"
                yield from _linear(*linear, config.d_ff, width, bias=config.mlp_bias)
            yield from _linear(f"{theirs}.mlp.down_proj", f"{ours}.mlp.down", width, config.d_ff, bias=config.mlp_bias)
        yield same(f"{prefix}norm.weight", (width,), "norm.weight")
        if not config.tie_embeddings:
            yield same("lm_head.weight", (config.vocab_size, width), "lm_head.weight")

    def ignorable(self, name: str) -> bool:
        """Rotary tables of old checkpoints, and the copy of the embedding that tied models sometimes store."""
        return name.endswith("rotary_emb.inv_freq") or name == "lm_head.weight"

    def _window(self, settings: Settings, n_layer: int) -> int | None:
        if self.sliding == "never":
            return None
        if self.sliding == "by_config" and not settings.flag("use_sliding_window", default=False):
            return None
        if self.sliding == "always" and settings.fields.get("sliding_window", 0) is None:
            return None  # Mistral from v0.2 on says null
        window = settings.integer("sliding_window", 4096)
        if window < 1:
            raise settings.error("sliding_window", f"must be at least 1, but it is {window}")
        kinds = self._layer_kinds(settings, n_layer)
        if len(kinds) > 1:
            raise settings.error(
                "sliding_window", "applies to some layers only, which gptscope does not support (all layers or none)"
            )
        return window if "sliding_attention" in kinds else None

    def _layer_kinds(self, settings: Settings, n_layer: int) -> set[str]:
        named = settings.optional("layer_types")
        if named is None:
            full = min(settings.integer("max_window_layers", 28), n_layer) if self.sliding == "by_config" else 0
            return {"full_attention"} if full >= n_layer else {"sliding_attention"} if full <= 0 else set(_LAYER_KINDS)
        if not isinstance(named, list) or not named or not all(kind in _LAYER_KINDS for kind in named):
            raise settings.error("layer_types", f"is {named!r}; gptscope knows {' and '.join(_LAYER_KINDS)}")
        return set(named)


def _linear(theirs: str, ours: str, out_size: int, in_size: int, *, bias: bool) -> Iterator[Stored]:
    yield same(f"{theirs}.weight", (out_size, in_size), f"{ours}.weight")
    if bias:
        yield same(f"{theirs}.bias", (out_size,), f"{ours}.bias")


LLAMA = LlamaFamily(name="llama", context_length=2048, biases="by_config", mlp_bias_by_config=True)
MISTRAL = LlamaFamily(name="mistral", context_length=131_072, n_kv_head=8, sliding="always")
QWEN2 = LlamaFamily(name="qwen2", context_length=32_768, n_kv_head=32, biases="qkv", sliding="by_config")
QWEN3 = LlamaFamily(
    name="qwen3",
    context_length=32_768,
    n_kv_head=32,
    d_head=128,
    biases="by_config",
    qk_norm=True,
    sliding="by_config",
)
