"""Bytes that a step must move between memory and the processor: the numerator of MBU and of modelled bandwidth.

Rule: for every operation of `model_ops`, each input is read once and each output written once, in the sizes of the
variant's precision. For one decode step that is

    weights (all but unread rows of look-up tables) + keys and values of S tokens + activations of one token.

Caches that hold an operation's output until the next one reads it make the true traffic smaller, kernels that read
twice make it larger: results are always labelled *modelled*. The backward pass of an operation reads its saved inputs,
its weights and the gradient of its output and writes the gradients of inputs and weights. AdamW (Loshchilov and Hutter
2019) reads parameter, gradient and two moments and writes parameter and moments: seven values per parameter.
"""

import msgspec

from gptscope.profiling.metrics.flops_model import pass_length
from gptscope.profiling.metrics.model_ops import ModelShape, Operation, forward_operations
from gptscope.profiling.records import StepKind

ACTIVATION_BYTES: dict[str, int] = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}
"""Precision recipe -> bytes of one activation. TF32 is stored as FP32."""
ADAMW_VALUES_PER_PARAMETER = 7


class StepBytes(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of one step, by what they are."""

    weights: float
    """Read by the forward pass."""
    kv_read: float
    kv_written: float
    activations: float
    gradients: float = 0.0
    """Backward pass: saved inputs and weights read again, gradients read and written."""
    optimizer: float = 0.0

    @property
    def total(self) -> float:
        """Everything together."""
        return self.weights + self.kv_read + self.kv_written + self.activations + self.gradients + self.optimizer


class ValueSizes(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of one value of each kind."""

    weight: float
    """Average over all parameters (quantised weights may have fractions of a byte)."""
    activation: float
    kv: float
    optimizer: float = 4.0


def value_sizes(
    *,
    precision: str,
    parameters: int,
    weight_bytes: float,
    kv_bytes_per_token: float,
    shape: ModelShape,
    activation_bytes: float | None = None,
    read_weight_bytes: float | None = None,
) -> ValueSizes:
    """Sizes from what the loaded model says of itself.

    Args:
        precision: Recipe, whose name tells the size of activations where the model does not.
        parameters: All of them.
        weight_bytes: What they occupy.
        kv_bytes_per_token: Of all layers.
        shape: Of the model.
        activation_bytes: Of one activation, as the model says.
        read_weight_bytes: Of the weights outside look-up tables, as the model says.

    Raises:
        ValueError: The size of this precision's activations is not known.
    """
    activation = ACTIVATION_BYTES.get(precision) if activation_bytes is None else activation_bytes
    if activation is None:
        known = ", ".join(ACTIVATION_BYTES)
        raise ValueError(f"The byte model does not know the precision {precision!r}; it knows {known}.")
    weight = weight_bytes / parameters
    if read_weight_bytes is not None:
        weight = read_weight_bytes / (parameters - shape.lookup_tables)
    kv_values = 2 * shape.n_layer * shape.n_kv_head * shape.d_head
    return ValueSizes(
        weight=weight,
        activation=activation,
        kv=kv_bytes_per_token / kv_values if kv_bytes_per_token else activation,
    )


def backward_bytes(op: Operation, sizes: ValueSizes) -> float:
    """Bytes that one operation's backward pass moves.

    Reads saved inputs, weights and the output's gradient; writes the inputs' and the weights' gradients. A residual
    sum hands its gradient on: adding the two branches' gradients reads two and writes one.
    """
    if not op.differentiable:
        return (op.inputs + op.outputs) * sizes.activation
    return (2 * op.inputs + op.outputs) * sizes.activation + 2 * op.weights * sizes.weight


def step_bytes(
    shape: ModelShape, kind: StepKind, sizes: ValueSizes, *, batch: int, context: int, kv_cache: str = "dynamic"
) -> StepBytes:
    """Bytes of one step of the whole model; arguments as in `flops_model.step_flops`.

    A prefill that is measured for itself has no cache to fill unless `kv_cache` names one.
    """
    new = pass_length(kind, context, kv_cache)
    cached = kind != "train" and kv_cache != "none"
    training = kind == "train"
    logits = context if training else 1
    operations = forward_operations(
        shape, batch=batch, new=new, attended=context, logits=logits, cached=cached, loss=training
    )
    return StepBytes(
        weights=sum(n * op.weights for n, op in operations) * sizes.weight,
        kv_read=sum(n * op.kv_read for n, op in operations) * sizes.kv,
        kv_written=sum(n * op.kv_written for n, op in operations) * sizes.kv,
        activations=sum(n * (op.inputs + op.outputs) for n, op in operations) * sizes.activation,
        gradients=sum(n * backward_bytes(op, sizes) for n, op in operations) if training else 0.0,
        optimizer=ADAMW_VALUES_PER_PARAMETER * shape.parameters * sizes.optimizer if training else 0.0,
    )
