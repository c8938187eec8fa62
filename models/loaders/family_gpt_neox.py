"""GPT-NeoX and Pythia: their `config.json` and tensor names, and the q, k and v that are interleaved head by head."""

from collections.abc import Collection, Iterator

from torch import Tensor

from gptscope.models.config import GPTConfig
from gptscope.models.loaders.family_gpt2 import gelu_kind, head_size, layer_norm
from gptscope.models.loaders.rope import read_rope
from gptscope.models.loaders.settings import Settings
from gptscope.models.loaders.weights import Pick, Stored, same


class GptNeoxFamily:
    """Layer norms, partial rotary positions, GELU, attention and MLP side by side."""

    name = "gpt_neox"

    def config(self, settings: Settings) -> GPTConfig:
        """Sizes and choices from a `config.json`.

        Raises:
            ModelError: A field is missing, malformed, or asks for something the decoder lacks.
        """
        n_head, width = settings.integer("num_attention_heads"), settings.integer("hidden_size")
        d_head = head_size(settings, width, n_head)
        context = settings.integer("max_position_embeddings", 2048)
        rope = read_rope(settings, context, theta_field="rotary_emb_base", partial=settings.number("rotary_pct", 0.25))
        bias = settings.flag("attention_bias", default=True)
        return GPTConfig(
            family="gpt_neox",
            vocab_size=settings.integer("vocab_size"),
            context_length=context,
            n_layer=settings.integer("num_hidden_layers"),
            d_model=width,
            n_head=n_head,
            n_kv_head=n_head,
            d_head=d_head,
            d_ff=settings.integer("intermediate_size"),
            norm="layernorm",
            norm_eps=settings.number("layer_norm_eps", 1e-5),
            rope_theta=rope.theta,
            rotary_dim=int(d_head * rope.partial),
            rope_scaling=rope.scaling,
            mlp=gelu_kind(settings, "hidden_act", "gelu"),
            parallel_residual=settings.flag("use_parallel_residual", default=True),
            qkv_bias=bias,
            out_bias=bias,
            mlp_bias=True,
            tie_embeddings=settings.flag("tie_word_embeddings", default=False),
        )

    def plan(self, config: GPTConfig, names: Collection[str]) -> Iterator[Stored]:
        """Stored tensors in the order of the decoder."""
        prefix = "" if "embed_in.weight" in names else "gpt_neox."
        width = config.d_model
        yield same(f"{prefix}embed_in.weight", (config.vocab_size, width), "embed.weight")
        for layer in range(config.n_layer):
            theirs, ours = f"{prefix}layers.{layer}", f"blocks.{layer}"
            yield from layer_norm(f"{theirs}.input_layernorm", f"{ours}.attn_norm", width)
            yield from _fused_qkv(config, f"{theirs}.attention.query_key_value", f"{ours}.attn.qkv")
            yield same(f"{theirs}.attention.dense.weight", (width, width), f"{ours}.attn.out.weight")
            if config.out_bias:
                yield same(f"{theirs}.attention.dense.bias", (width,), f"{ours}.attn.out.bias")
            yield from layer_norm(f"{theirs}.post_attention_layernorm", f"{ours}.mlp_norm", width)
            yield same(f"{theirs}.mlp.dense_h_to_4h.weight", (config.d_ff, width), f"{ours}.mlp.up.weight")
            yield same(f"{theirs}.mlp.dense_h_to_4h.bias", (config.d_ff,), f"{ours}.mlp.up.bias")
            yield same(f"{theirs}.mlp.dense_4h_to_h.weight", (width, config.d_ff), f"{ours}.mlp.down.weight")
            yield same(f"{theirs}.mlp.dense_4h_to_h.bias", (width,), f"{ours}.mlp.down.bias")
        yield from layer_norm(f"{prefix}final_layer_norm", "norm", width)
        if not config.tie_embeddings:
            head = "lm_head.weight" if "lm_head.weight" in names else "embed_out.weight"
            yield same(head, (config.vocab_size, width), "lm_head.weight")

    def ignorable(self, name: str) -> bool:
        """Causal masks and rotary tables of old checkpoints, and the copy of a tied embedding."""
        tables = (".attention.bias", ".attention.masked_bias", "rotary_emb.inv_freq")
        return name.endswith(tables) or name in ("lm_head.weight", "embed_out.weight")


def _fused_qkv(config: GPTConfig, theirs: str, ours: str) -> Iterator[Stored]:
    """One matrix whose rows are, head by head, q then k then v of that head."""
    rows = 3 * config.n_head * config.d_head
    kinds = ("weight", "bias") if config.qkv_bias else ("weight",)
    for kind in kinds:
        shape = (rows, config.d_model) if kind == "weight" else (rows,)
        parts = tuple((f"{ours}.{name}.{kind}", _every_third(index, config.d_head)) for index, name in enumerate("qkv"))
        yield Stored(f"{theirs}.{kind}", shape, parts)


def _every_third(index: int, d_head: int) -> Pick:
    def pick(stored: Tensor) -> Tensor:
        return stored.unflatten(0, (-1, 3, d_head))[:, index].flatten(0, 1)

    return pick


GPT_NEOX = GptNeoxFamily()
