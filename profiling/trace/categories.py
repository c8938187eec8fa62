"""What kind of work a kernel or operator does: by its owner first, by its own name second.

Categories: GEMM (convolutions are implicit GEMMs), attention, norm, elementwise, reduction, copy, communication,
optimizer, quantize (casts too), other (views, allocation, dispatch).
"""

import re
from functools import lru_cache

from gptscope.profiling.trace.names import MOST_LOOKED_AT

CATEGORIES = (
    "GEMM", "attention", "norm", "elementwise", "reduction",
    "copy", "communication", "optimizer", "quantize", "other",
)  # fmt: skip

_ATEN_KINDS: dict[str, str] = {
    "GEMM": "mm addmm bmm baddbmm addbmm addmv mv dot matmul linear _int_mm _scaled_mm _weight_int8pack_mm"
    " _weight_int4pack_mm _linear_pointwise _linear_pointwise_ qlinear_pointwise _mkl_linear linear_backward einsum"
    " convolution _convolution conv1d conv2d conv3d convolution_backward cudnn_convolution mkldnn_convolution"
    " miopen_convolution",
    "norm": "layer_norm native_layer_norm native_layer_norm_backward rms_norm _fused_rms_norm"
    " _fused_rms_norm_backward batch_norm native_batch_norm _batch_norm_impl_index cudnn_batch_norm group_norm"
    " native_group_norm",
    "reduction": "sum mean max min amax amin argmax argmin prod any all norm var std var_mean logsumexp cumsum topk"
    " sort softmax _softmax _softmax_backward_data log_softmax _log_softmax _log_softmax_backward_data"
    " cross_entropy_loss nll_loss nll_loss_nd nll_loss_forward nll_loss_backward linalg_vector_norm multinomial",
    "copy": "copy_ _to_copy clone contiguous cat _cat stack index_select index index_put index_put_ _index_put_impl_"
    " index_copy index_copy_ gather scatter scatter_ embedding embedding_dense_backward embedding_backward fill_ zero_"
    " zeros zeros_like ones ones_like full full_like arange repeat repeat_interleave new_zeros new_ones slice_backward"
    " select_backward slice_scatter roll masked_select nonzero tril triu item _local_scalar_dense",
    "elementwise": "add add_ sub sub_ rsub mul mul_ div div_ pow pow_ neg exp exp_ log sqrt sqrt_ rsqrt reciprocal"
    " sin cos tanh sigmoid silu silu_ gelu relu erf abs clamp clamp_ clamp_min where masked_fill masked_fill_ eq ne lt"
    " le gt ge bitwise_not bitwise_and bitwise_or logical_and logical_or logical_not maximum minimum lerp lerp_ addcmul"
    " addcmul_ addcdiv addcdiv_ square sign isnan isinf isfinite floor round dropout native_dropout tanh_backward"
    " sigmoid_backward silu_backward gelu_backward threshold_backward hardtanh softplus mish glu fmod remainder",
    "quantize": "quantize_per_tensor quantize_per_channel dequantize fake_quantize_per_tensor_affine",
}  # fmt: skip
_BY_ATEN_NAME = {name: kind for kind, names in _ATEN_KINDS.items() for name in names.split()}

_PATTERNS: tuple[tuple[str, str], ...] = (
    ("communication", r"nccl|rccl|msccl|cross_device_reduce|symm_mem|c10d::|^gloo:|all_?reduce|all_?gather|comms"),
    ("attention", r"scaled_dot_product|flash|fmha|attention|attn_fwd|attn_bwd|sdpa|paged_|fused_rope_attn"),
    ("optimizer", r"^optimizer\.|adam|multi_tensor_apply|_fused_sgd|\blamb_"),
    ("norm", r"layer_?norm|rms_?norm|batch_?norm|group_?norm|cudnn::bn_|_norm_kernel|normalization::|rowwise_?moments"),
    ("GEMM", r"gemm|gemv|cutlass|cublas|^cijk_|xmma|splitk|matmul|nvjet|tensorop|dot_kernel|addmm|\bb?mm\b"),
    ("GEMM", r"fused_moe|marlin|gen\d+_conv"),
    ("GEMM", r"wgrad|dgrad|implicit_conv|convolve|winograd|cudnn.*conv|conv2d|_scudnn_|igemm"),
    ("quantize", r"quant|fp8|mxfp|nvfp4"),
    ("reduction", r"topk"),  # it gathers, too
    (
        "copy",
        r"transpose|memcpy|memset|direct_copy|catarray|copy|index_?select|gather|scatter|embedding|fillfunctor|arange",
    ),
    ("reduction", r"reduce|softmax|triton_(?:red|per)_|argmax|argmin|cumsum|topk|sort|scan|nll_loss|cross_entropy"),
    ("elementwise", r"elementwise|triton_poi_|cpp_fused|functor|gelu|silu|rope|rotary|pointwise|dropout|act_and_mul"),
)
_TRITON = re.compile(r"^triton_(poi|red|per|tem|for|spl)_fused_(\w*)")
"""Kernels of torch.compile: how Triton's code was made, and the operators that it was made from."""
_TRITON_KINDS: dict[str, str] = {
    "tem": "GEMM",
    "red": "reduction",
    "per": "reduction",
    "spl": "reduction",
    "poi": "elementwise",
    "for": "elementwise",
}
_TRITON_OPERATORS: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("tem", "attention", re.compile(r"attention|sdpa")),
    ("red per", "norm", re.compile(r"layer_norm|rms_norm|batch_norm|group_norm|rsqrt")),
    ("poi", "attention", re.compile(r"scaled_dot_product")),
    ("poi for", "optimizer", re.compile(r"adam|_sgd")),
)
"""Template, category, and operators that decide it, before the template alone does."""
_COPYING = (
    "to copy clone cat stack embedding index slice select view expand transpose t permute unsqueeze squeeze fill zeros"
    " full unsafe as strided split"
)
"""Words in the names of operators that only move memory."""
_NORM_CLASS = re.compile(r"^[A-Z]\w*Norm\d*[a-z]?(?:_\d+)?$")
"""Classes of modules, as Python's own records name them with a number."""
_COMPILED = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _PATTERNS)

_STRONG_OWNERS = frozenset({"attention", "norm", "optimizer", "communication", "GEMM"})
"""Owners that lend their category to whatever runs inside them (views and copies in a product belong to it)."""


@lru_cache(maxsize=65536)
def category_by_name(name: str) -> str:
    """Category of an operator or kernel from its name alone; `other` when the name says nothing."""
    name = name[:MOST_LOOKED_AT]
    if name.startswith(("aten::", "mkldnn::", "mkl::")):
        base = name.split("::", 1)[1]
        kind = _BY_ATEN_NAME.get(base) or _BY_ATEN_NAME.get(base.rstrip("_"))
        if kind is not None:
            return kind
        if base.startswith("_foreach_"):
            return "elementwise"
    elif name.startswith("autograd::") or name.endswith(("Backward0", "Backward1", "AccumulateGrad")):
        return "other"  # the engine's frame around an operator, which counts for itself
    triton = _TRITON.match(name)
    if triton is not None:
        return _triton_category(triton.group(1), triton.group(2))
    for kind, pattern in _COMPILED:
        if pattern.search(name):
            return kind
    return "other"


def _triton_category(template: str, operators: str) -> str:
    """By the template: all operators that were fused stand in the name, so that any word may occur in it."""
    for templates, kind, pattern in _TRITON_OPERATORS:
        if template in templates.split() and pattern.search(operators):
            return kind
    words = {word for word in operators.split("_") if word and not word.isdigit()}
    if template == "poi" and words and words <= set(_COPYING.split()):
        return "copy"
    return _TRITON_KINDS[template]


def category_of_module(module: str) -> str | None:
    """Category that a module gives to the elementwise steps it is written with: textbook norms and attention."""
    last = module.rpartition(".")[2]
    if last == "norm" or last.endswith("_norm") or _NORM_CLASS.search(last):
        return "norm"
    return "attention" if last == "core" else None


def category_of(
    name: str, *, owner: str | None = None, module: str = "", in_optimizer: bool = False, casts: bool = False
) -> str:
    """Category of one operator or kernel.

    Args:
        name: Its own name.
        owner: Category of the operator it runs in, None at the top.
        module: Path of the module it runs in, empty for none.
        in_optimizer: It runs inside the optimizer's step.
        casts: It copies into another type.
    """
    if in_optimizer:
        return "optimizer"
    own = category_by_name(name)
    if own == "communication":
        return own
    by_module = category_of_module(module)
    if by_module is not None:
        return by_module
    if owner in _STRONG_OWNERS:
        return str(owner)
    if casts:
        return "quantize"
    return own if own != "other" or owner is None else owner
