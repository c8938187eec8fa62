"""What one forward pass of a decoder has to compute, operation by operation: the base of the byte and FLOP models.

The list is the same for every variant of levers, so that two variants are measured by one yardstick: it counts what
the *model* needs, not what a particular kernel happens to do. Per operation, each input is read once and each output
written once; what a fused kernel need not write (attention scores) is not counted.

Letters as in `models/gpt.py`: B sequences, L new tokens per sequence, S tokens attended to, D width, H query heads,
K key/value heads, C features per head, F MLP width, V vocabulary.
"""

from dataclasses import dataclass

from gptscope.profiling.records import ModelInfo

_LAYERNORM_FAMILIES = frozenset({"gpt2", "gpt_neox"})
_QK_NORM_FAMILIES = frozenset({"qwen3"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """The sizes that the models need, with every parameter accounted for: the groups below add up to `parameters`."""

    n_layer: int
    d_model: int
    n_head: int
    n_kv_head: int
    d_head: int
    d_ff: int
    vocab_size: int
    gated_mlp: bool
    rotary: bool
    qk_norm: bool
    layer_matrices: int
    """Values of one layer's q, k, v, out, gate, up and down matrices."""
    layer_vectors: int
    """Values of one layer's norm scales and biases."""
    final_vectors: int
    """Values of the norm before the head."""
    head_matrix: int
    """Values of the output projection (the embedding table itself when tied)."""
    lookup_tables: int
    """Values of tables of which a step reads only single rows: positions, and the embedding when it is not tied."""

    @property
    def parameters(self) -> int:
        """All values, tied embeddings once."""
        layers = self.n_layer * (self.layer_matrices + self.layer_vectors)
        return layers + self.final_vectors + self.head_matrix + self.lookup_tables


def shape_of(info: ModelInfo) -> ModelShape:
    """Sort a model's parameters into matrices, vectors and tables.

    Matrices and tables follow from the sizes. What is left are norm scales and biases: the final norm's D (RMSNorm) or
    2 D (LayerNorm) values, and the rest shared evenly by the layers.
    """
    q, kv = info.n_head * info.d_head, info.n_kv_head * info.d_head
    matrices = info.d_model * (2 * q + 2 * kv) + (3 if info.gated_mlp else 2) * info.d_model * info.d_ff
    head = info.vocab_size * info.d_model
    tables = (0 if info.tied_embeddings else head) + (
        info.context_length * info.d_model if info.learned_positions else 0
    )
    left = info.parameters - info.n_layer * matrices - head - tables
    final = info.d_model * (2 if info.family in _LAYERNORM_FAMILIES else 1)
    vectors = max(0, (left - final) // info.n_layer)
    return ModelShape(
        n_layer=info.n_layer,
        d_model=info.d_model,
        n_head=info.n_head,
        n_kv_head=info.n_kv_head,
        d_head=info.d_head,
        d_ff=info.d_ff,
        vocab_size=info.vocab_size,
        gated_mlp=info.gated_mlp,
        rotary=not info.learned_positions,
        qk_norm=info.family in _QK_NORM_FAMILIES,
        layer_matrices=matrices,
        layer_vectors=vectors,
        final_vectors=left - info.n_layer * vectors,
        head_matrix=head,
        lookup_tables=tables,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of a forward pass. All counts are values (elements), not bytes."""

    name: str
    flops: int = 0
    """Multiplications plus additions of matrix products; elementwise work is not counted."""
    weights: int = 0
    inputs: int = 0
    """Activations read."""
    outputs: int = 0
    """Activations written."""
    kv_read: int = 0
    kv_written: int = 0
    differentiable: bool = True
    """False where the backward pass has nothing to recompute from (residual sums pass the gradient on)."""


def _linear(name: str, rows: int, into: int, out: int, *, extra_weights: int = 0) -> Operation:
    """`rows` vectors of length `into` times a matrix: 2 x rows x into x out FLOPs."""
    return Operation(
        name=name,
        flops=2 * rows * into * out,
        weights=into * out + extra_weights,
        inputs=rows * into,
        outputs=rows * out,
    )


def layer_operations(shape: ModelShape, *, batch: int, new: int, attended: int, cached: bool) -> list[Operation]:
    """The operations of one layer.

    Args:
        shape: Of the model.
        batch: B.
        new: L, tokens per sequence that pass through the layer.
        attended: S, tokens per sequence that each new token may look at, itself included. Attention counts all L x S
            pairs, masked ones too, as `torch.utils.flop_counter` and Chowdhery et al. 2022 (PaLM), appendix B, do.
        cached: Whether keys and values are read from a cache and stored in it.
    """
    rows, d, q, kv = batch * new, shape.d_model, shape.n_head * shape.d_head, shape.n_kv_head * shape.d_head
    vectors = shape.layer_vectors  # norm scales and biases: read once, wherever they sit
    past_kv = 2 * batch * attended * kv if cached else 0
    fresh_kv = 0 if cached else 2 * batch * attended * kv
    operations = [
        Operation(name="attn_norm", weights=vectors, inputs=rows * d, outputs=rows * d),
        _linear("q", rows, d, q),
        _linear("k", rows, d, kv),
        _linear("v", rows, d, kv),
    ]
    if shape.qk_norm:
        operations.append(Operation(name="qk_norm", inputs=rows * (q + kv), outputs=rows * (q + kv)))
    if shape.rotary:
        operations.append(Operation(name="rope", inputs=rows * (q + kv), outputs=rows * (q + kv)))
    if cached:
        operations.append(Operation(name="kv_write", inputs=2 * rows * kv, kv_written=2 * rows * kv))
    operations += [
        Operation(
            name="attention",
            flops=2 * 2 * batch * shape.n_head * new * attended * shape.d_head,
            inputs=rows * q + fresh_kv,
            outputs=rows * q,
            kv_read=past_kv,
        ),
        _linear("out", rows, q, d),
        Operation(name="attn_residual", inputs=2 * rows * d, outputs=rows * d, differentiable=False),
        Operation(name="mlp_norm", inputs=rows * d, outputs=rows * d),
    ]
    if shape.gated_mlp:
        operations.append(_linear("gate", rows, d, shape.d_ff))
    activation_inputs = rows * shape.d_ff * (2 if shape.gated_mlp else 1)
    return [
        *operations,
        _linear("up", rows, d, shape.d_ff),
        Operation(name="activation", inputs=activation_inputs, outputs=rows * shape.d_ff),
        _linear("down", rows, shape.d_ff, d),
        Operation(name="mlp_residual", inputs=2 * rows * d, outputs=rows * d, differentiable=False),
    ]


def end_operations(shape: ModelShape, *, batch: int, new: int, logits: int, loss: bool = False) -> list[Operation]:
    """What lies outside the layers: embedding rows, final norm, output projection, and the loss when training.

    Args:
        shape: Of the model.
        batch: B.
        new: L.
        logits: Positions per sequence for which logits are computed (1 while generating).
        loss: Whether cross-entropy reads the logits.
    """
    d, rows = shape.d_model, batch * new
    tables = 1 if shape.rotary else 2  # learned positions are a second look-up and a sum
    operations = [
        Operation(name="embedding", inputs=tables * rows * d, outputs=rows * d),
        Operation(name="norm", weights=shape.final_vectors, inputs=batch * logits * d, outputs=batch * logits * d),
        _linear("lm_head", batch * logits, d, shape.vocab_size),
    ]
    if loss:
        operations.append(Operation(name="cross_entropy", inputs=batch * logits * shape.vocab_size))
    return operations


def forward_operations(
    shape: ModelShape, *, batch: int, new: int, attended: int, logits: int, cached: bool, loss: bool = False
) -> list[tuple[int, Operation]]:
    """Every operation of a forward pass with how often it occurs: `n_layer` times or once."""
    layer = layer_operations(shape, batch=batch, new=new, attended=attended, cached=cached)
    ends = end_operations(shape, batch=batch, new=new, logits=logits, loss=loss)
    return [(shape.n_layer, op) for op in layer] + [(1, op) for op in ends]
