"""GPT-2: its `config.json` and tensor names, and its linear layers, which are stored transposed (`Conv1D`)."""

from collections.abc import Collection, Iterator
from typing import Literal

from torch import Tensor

from gptscope.models.config import GPTConfig
from gptscope.models.loaders.settings import Settings
from gptscope.models.loaders.weights import Pick, Stored, same

GeluName = Literal["gelu", "gelu_tanh"]

GELUS: dict[str, GeluName] = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
}
"""transformers' names of the two GELU forms; some names differ only in how they are computed."""


class Gpt2Family:
    """Layer norms, learned positions, GELU, one fused projection for q, k and v."""

    name = "gpt2"

    def config(self, settings: Settings) -> GPTConfig:
        """Sizes and choices from a `config.json`.

        Raises:
            ModelError: A field is missing, malformed, or asks for something the decoder lacks.
        """
        settings.refuse_unless("scale_attn_weights", neutral=True)
        settings.refuse_unless("scale_attn_by_inverse_layer_idx", neutral=False)
        settings.refuse_unless("add_cross_attention", neutral=False)
        n_head, width = settings.integer("n_head"), settings.integer("n_embd")
        return GPTConfig(
            family="gpt2",
            vocab_size=settings.integer("vocab_size"),
            context_length=settings.integer("n_positions", 1024),
            n_layer=settings.integer("n_layer"),
            d_model=width,
            n_head=n_head,
            n_kv_head=n_head,
            d_head=head_size(settings, width, n_head),
            d_ff=settings.integer("n_inner", 4 * width),
            norm="layernorm",
            norm_eps=settings.number("layer_norm_epsilon", 1e-5),
            position="learned",
            mlp=gelu_kind(settings, "activation_function", "gelu_new"),
            qkv_bias=True,
            out_bias=True,
            mlp_bias=True,
            tie_embeddings=settings.flag("tie_word_embeddings", default=True),
        )

    def plan(self, config: GPTConfig, names: Collection[str]) -> Iterator[Stored]:
        """Stored tensors in the order of the decoder; the oldest checkpoints lack the `transformer.` prefix."""
        prefix = "" if "wte.weight" in names else "transformer."
        width = config.d_model
        yield same(f"{prefix}wte.weight", (config.vocab_size, width), "embed.weight")
        yield same(f"{prefix}wpe.weight", (config.context_length, width), "position.weight")
        for layer in range(config.n_layer):
            theirs, ours = f"{prefix}h.{layer}", f"blocks.{layer}"
            yield from layer_norm(f"{theirs}.ln_1", f"{ours}.attn_norm", width)
            qkv = tuple(f"{ours}.attn.qkv.{name}" for name in "qkv")
            yield from _conv1d(f"{theirs}.attn.c_attn", qkv, width, width, bias=config.qkv_bias)
            yield from _conv1d(f"{theirs}.attn.c_proj", (f"{ours}.attn.out",), width, width, bias=config.out_bias)
            yield from layer_norm(f"{theirs}.ln_2", f"{ours}.mlp_norm", width)
            yield from _conv1d(f"{theirs}.mlp.c_fc", (f"{ours}.mlp.up",), width, config.d_ff, bias=config.mlp_bias)
            yield from _conv1d(f"{theirs}.mlp.c_proj", (f"{ours}.mlp.down",), config.d_ff, width, bias=config.mlp_bias)
        yield from layer_norm(f"{prefix}ln_f", "norm", width)
        if not config.tie_embeddings:
            yield same("lm_head.weight", (config.vocab_size, width), "lm_head.weight")

    def ignorable(self, name: str) -> bool:
        """Causal masks that old checkpoints store, and the copy of a tied embedding."""
        return name.endswith((".attn.bias", ".attn.masked_bias")) or name == "lm_head.weight"


def layer_norm(theirs: str, ours: str, width: int) -> Iterator[Stored]:
    """Scale and shift of a layer norm."""
    yield same(f"{theirs}.weight", (width,), f"{ours}.weight")
    yield same(f"{theirs}.bias", (width,), f"{ours}.bias")


def gelu_kind(settings: Settings, field: str, default: str) -> GeluName:
    """Which GELU a config asks for.

    Raises:
        ModelError: Another activation.
    """
    name = settings.text(field, default)
    if name not in GELUS:
        raise settings.error(field, f"is {name!r}, which gptscope does not support (it knows {', '.join(GELUS)})")
    return GELUS[name]


def head_size(settings: Settings, width: int, n_head: int) -> int:
    """Width per head.

    Raises:
        ModelError: The width cannot be divided among the heads.
    """
    if n_head < 1 or width % n_head:
        raise settings.error("model width", f"({width}) must be a multiple of the number of heads ({n_head})")
    return width // n_head


def _conv1d(theirs: str, ours: tuple[str, ...], in_size: int, out_size: int, *, bias: bool) -> Iterator[Stored]:
    """A linear layer stored as `[in, out]`, its outputs divided among `ours` in order."""
    total = out_size * len(ours)
    weights: tuple[tuple[str, Pick], ...] = tuple(
        (f"{name}.weight", _transposed_rows(index * out_size, out_size)) for index, name in enumerate(ours)
    )
    yield Stored(f"{theirs}.weight", (in_size, total), weights)
    if bias:
        biases: tuple[tuple[str, Pick], ...] = tuple(
            (f"{name}.bias", _slice(index * out_size, out_size)) for index, name in enumerate(ours)
        )
        yield Stored(f"{theirs}.bias", (total,), biases)


def _transposed_rows(start: int, length: int) -> Pick:
    def pick(stored: Tensor) -> Tensor:
        return stored.narrow(1, start, length).t()

    return pick


def _slice(start: int, length: int) -> Pick:
    def pick(stored: Tensor) -> Tensor:
        return stored.narrow(0, start, length)

    return pick


GPT2 = Gpt2Family()
