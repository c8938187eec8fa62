"""What a setting will cost before it runs: memory, and the speed that the measured ceilings allow at best."""

from dataclasses import dataclass

from gptscope.app.viewmodels.variant_names import precision_title
from gptscope.profiling.experiment import Variant, Workload
from gptscope.profiling.metrics.bytes_model import ACTIVATION_BYTES, ValueSizes, step_bytes
from gptscope.profiling.metrics.flops_model import step_flops
from gptscope.profiling.metrics.model_ops import shape_of
from gptscope.profiling.records import ModelInfo, Peaks, StepKind

_OPTIMIZER_BYTES_PER_PARAMETER = 12  # FP32 gradient and two moments
_ACTIVATION_VALUES_PER_LAYER = 16  # inputs that the backward pass keeps, in multiples of the width

_INT8_BYTES, _HALF_BYTES, _FULL_BYTES = 1.0, 2.0, 4.0
_INT8_SCALES = 1.02
"""Scales and what stays unquantized, over the weights alone."""

STEP_KIND: dict[str, StepKind] = {"train": "train", "prefill": "prefill", "decode": "decode", "generate": "decode"}


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """None = cannot be predicted, the reason in the field beside it."""

    memory_bytes: float | None
    memory_reason: str = ""
    ceiling_tokens_per_second: float | None = None
    ceiling_reason: str = ""
    bound_by: str = ""
    """`memory` or `compute`."""


def sizes_for(model: ModelInfo, variant: Variant) -> ValueSizes | None:
    """Bytes of one value in this variant; None for a precision the byte model does not know.

    INT8 recipes keep weights in one byte and everything else in their base format. FP8 and narrower recipes are
    emulated on a CPU: what is kept and moved there is BF16.
    """
    precision = variant.precision
    activation: float | None = ACTIVATION_BYTES.get(precision)
    weight = activation
    if precision.startswith("int8"):
        base = variant.options.get(precision, {}).get("base", "bf16")
        weight, activation = _INT8_BYTES * _INT8_SCALES, _FULL_BYTES if base == "fp32" else _HALF_BYTES
    elif precision.startswith(("fp8-", "mxfp8", "nvfp4")):
        weight = activation = _HALF_BYTES
    if weight is None or activation is None:
        return None
    return ValueSizes(
        weight=weight, activation=activation, kv=_INT8_BYTES if variant.kv_cache == "int8" else activation
    )


def weight_bytes(model: ModelInfo, variant: Variant) -> float | None:
    """Bytes of all weights in this variant."""
    sizes = sizes_for(model, variant)
    return None if sizes is None else model.parameters * sizes.weight


def kv_bytes_per_token(model: ModelInfo, variant: Variant) -> float | None:
    """Bytes that one token of one sequence adds to the KV cache in this variant."""
    sizes = sizes_for(model, variant)
    return None if sizes is None else 2 * model.n_layer * model.n_kv_head * model.d_head * sizes.kv


def estimate(model: ModelInfo | None, workload: Workload, variant: Variant, peaks: Peaks | None) -> Estimate:
    """Predict memory and the roofline's tokens per second for one setting."""
    if model is None:
        return Estimate(memory_bytes=None, memory_reason="choose a model", ceiling_reason="choose a model")
    sizes = sizes_for(model, variant)
    if sizes is None:
        reason = f"no byte model for {precision_title(variant.precision)}"
        return Estimate(memory_bytes=None, memory_reason=reason, ceiling_reason=reason)
    memory = _memory(model, workload, variant, sizes)
    if peaks is None or peaks.read_gbps is None:
        return Estimate(memory_bytes=memory, ceiling_reason="peak not measured yet")
    kind = STEP_KIND[workload.kind]
    if variant.speculation != "none" and kind == "decode":
        return Estimate(memory_bytes=memory, ceiling_reason="depends on how many guesses are right")
    context = workload.context + (workload.new_tokens // 2 if kind == "decode" else 0)
    moved = step_bytes(
        shape_of(model), kind, sizes, batch=workload.batch, context=context, kv_cache=variant.kv_cache
    ).total
    memory_s = moved / (peaks.read_gbps * 1e9)
    tflops = peaks.gemm_tflops.get(_arithmetic(variant.precision))
    if tflops is None and kind != "decode":
        reason = f"no measured arithmetic peak for {precision_title(variant.precision)}"
        return Estimate(memory_bytes=memory, ceiling_reason=reason)
    flops = step_flops(shape_of(model), kind, batch=workload.batch, context=context, kv_cache=variant.kv_cache)
    compute_s = flops / (tflops * 1e12) if tflops else 0.0
    tokens = workload.batch * (1 if kind == "decode" else workload.context)
    return Estimate(
        memory_bytes=memory,
        ceiling_tokens_per_second=tokens / max(memory_s, compute_s),
        bound_by="memory" if memory_s >= compute_s else "compute",
    )


def _arithmetic(precision: str) -> str:
    """The format in which products are really computed, as the peaks name it."""
    if precision.startswith("int8-"):
        return "bf16" if precision == "int8-weight-only" else "int8"
    return "bf16" if precision.startswith(("fp8-", "mxfp8", "nvfp4")) else precision


def _memory(model: ModelInfo, workload: Workload, variant: Variant, sizes: ValueSizes) -> float:
    total = model.parameters * sizes.weight
    tokens = workload.batch * workload.context
    if workload.kind == "train":
        kept = _ACTIVATION_VALUES_PER_LAYER * model.d_model * model.n_layer + 2 * model.vocab_size
        return model.parameters * (4 + _OPTIMIZER_BYTES_PER_PARAMETER) + tokens * kept * sizes.activation
    if workload.kind != "prefill" and variant.kv_cache != "none":
        per_token = 2 * model.n_layer * model.n_kv_head * model.d_head * sizes.kv
        total += workload.batch * (workload.context + workload.new_tokens) * per_token
    widest = max(model.d_ff * (2 if model.gated_mlp else 1), 3 * model.d_model)
    return total + tokens * widest * sizes.activation + workload.batch * model.vocab_size * sizes.activation
