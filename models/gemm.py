"""Which rows of a profile are matrix products, by the names that torch and the vendors' libraries give them."""

from gptscope.models.levers import KernelFact

W8A8_OPS = frozenset({"aten::_int_mm", "onednn::qlinear_pointwise"})
"""CPU operators that multiply INT8 activations by INT8 weights: with an INT32 result, and with the scales in it."""
INT8_OPS = W8A8_OPS | {"aten::_weight_int8pack_mm"}
"""CPU operators that multiply by INT8 weights; the last takes BF16 activations."""
LINEAR_OPS = INT8_OPS | {"aten::addmm", "aten::mm", "aten::addmv_", "mkldnn::_linear_pointwise", "mkl::_mkl_linear"}
"""CPU operators that multiply activations by a weight matrix (the innermost ones, so that each product counts once)."""
BATCHED_OPS = frozenset({"aten::bmm", "aten::baddbmm"})
"""CPU operators that multiply activations with each other: the two products of textbook attention."""
_CUDA_PARTS = ("gemm", "cutlass", "nvjet", "gemv", "wgmma", "xmma")


def is_gemm(kernel: KernelFact) -> bool:
    """True for any matrix product."""
    return is_linear(kernel) or kernel.name in BATCHED_OPS


def is_linear(kernel: KernelFact) -> bool:
    """True for a product with weights. A CUDA kernel's name does not tell, so there all but attention's count."""
    if "::" in kernel.name and kernel.name.split("::")[0] in ("aten", "mkldnn", "mkl", "onednn"):
        return kernel.name in LINEAR_OPS
    name = kernel.name.lower()
    if any(part in name for part in ("flash", "fmha", "attention", "sdpa", "splitkreduce")):
        return False
    return any(part in name for part in _CUDA_PARTS)
