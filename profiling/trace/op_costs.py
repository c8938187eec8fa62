"""Bytes and FLOPs of one operator call from the shapes and types of its inputs.

Rule: each input is read once, each output written once, however many passes a kernel makes. FLOPs are those of matrix
products (2 M N K) and attention, as in `torch.utils.flop_counter`; other operators have none. What cannot be told from
the record (an unknown operator, an output size that depends on data) is None.
"""

from collections.abc import Callable
from typing import Any

from gptscope.profiling.trace import op_models as models
from gptscope.profiling.trace.op_inputs import Cost, Inputs

Model = Callable[[Inputs, list[Any]], Cost]


def _named(model: Model, names: str) -> dict[str, Model]:
    return {f"aten::{name}": model for name in names.split()}


_MODELS: dict[str, Model] = {
    **_named(models.mm, "mm bmm"),
    **_named(models.mv, "mv"),
    **_named(models.addmv, "addmv addmv_"),
    **_named(models.int_mm, "_int_mm"),
    **_named(models.addmm, "addmm baddbmm addmm_ baddbmm_"),
    **_named(models.linear, "linear mkldnn_linear _weight_int8pack_mm"),
    "mkldnn::_linear_pointwise": models.linear,
    "onednn::qlinear_pointwise": models.scaled_int_mm,
    "mkl::_mkl_linear": models.mkl_linear,
    **_named(models.matmul, "matmul"),
    **_named(
        models.sdpa_masked,
        "scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention"
        " _scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention"
        " _scaled_dot_product_fused_attention_overrideable",
    ),
    **_named(
        models.sdpa_backward,
        "_scaled_dot_product_flash_attention_for_cpu_backward _scaled_dot_product_flash_attention_backward",
    ),
    **_named(models.layer_norm, "native_layer_norm layer_norm rms_norm _fused_rms_norm"),
    **_named(models.layer_norm_backward, "native_layer_norm_backward _fused_rms_norm_backward"),
    **_named(models.same_size_output, "_softmax _log_softmax softmax log_softmax"),
    **_named(models.same_size_output, "_softmax_backward_data _log_softmax_backward_data"),
    **_named(
        models.elementwise,
        "add sub rsub mul div pow neg exp log sqrt rsqrt reciprocal sin cos tanh sigmoid silu gelu relu erf abs clamp"
        " clamp_min maximum minimum lerp addcmul addcdiv square tanh_backward sigmoid_backward silu_backward"
        " gelu_backward threshold_backward masked_fill bitwise_not bitwise_and bitwise_or",
    ),
    **_named(
        models.in_place,
        "add_ sub_ mul_ div_ pow_ neg_ exp_ sqrt_ rsqrt_ sigmoid_ silu_ tanh_ relu_ lerp_ addcmul_ addcdiv_ clamp_"
        " masked_fill_",
    ),
    **_named(models.comparison, "eq ne lt le gt ge logical_and logical_or logical_not isnan isinf"),
    **_named(models.where, "where"),
    **_named(models.copy, "copy_"),
    **_named(models.fill, "fill_ zero_"),
    **_named(models.cat, "cat"),
    **_named(models.reduction, "sum mean amax amin argmax argmin max min any all prod"),
    **_named(models.embedding, "embedding"),
    **_named(models.embedding_backward, "embedding_dense_backward"),
    **_named(models.index_select, "index_select"),
    **_named(models.index_copy, "index_copy_"),
    **_named(models.fused_adam, "_fused_adam_ _fused_adamw_"),
}

WRAPPERS = frozenset(
    {
        "aten::linear",
        "aten::matmul",
        "aten::scaled_dot_product_attention",
        "aten::layer_norm",
        "aten::rms_norm",
        "aten::softmax",
        "aten::log_softmax",
        "aten::mean",
    }
)
"""Operators that usually call another modelled one; they have a cost only where nothing inside them has."""


def has_model(name: str) -> bool:
    """Whether calls of this operator can have a modelled cost."""
    return name in _MODELS


def operator_cost(name: str, inputs: Inputs, values: Any = None) -> Cost | None:
    """Modelled cost of one call; None when this operator has no model or its inputs do not fit the model.

    Args:
        name: Such as `aten::addmm`.
        inputs: From `parse_inputs`.
        values: Decoded `Concrete Inputs` (texts), for operators whose output depends on a number.
    """
    model = _MODELS.get(name)
    if model is None:
        return None
    try:
        return model(inputs, values if isinstance(values, list) else [])
    except (IndexError, ValueError, TypeError, AttributeError, KeyError):
        return None  # a call that does not look as expected has no modelled cost
