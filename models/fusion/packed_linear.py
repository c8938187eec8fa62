"""Weights reordered once into the layout that the CPU's matrix library wants (inference only)."""

import torch
from torch import Tensor, nn

from gptscope.models.config import GPTConfig
from gptscope.models.fusion.lever import Fusion, replace_modules
from gptscope.models.gpt import GPT
from gptscope.models.levers import INFERENCE_WORKLOADS, Evidence, LeverContext, ProfileFacts

LEAST_VALUES = 1 << 20
"""Smaller matrices stay plain: a oneDNN product takes about 20 µs to start, which is more than packing saves there."""
PACKED_OPS = ("mkldnn::_linear_pointwise", "mkl::_mkl_linear")
_PREFILL_ROWS = 128
"""Rows that oneDNN is told to expect from a prefill; it only chooses the layout by them, any number works."""


class OneDnnLinear(nn.Module):
    """A linear layer whose weight exists only in oneDNN's blocked layout; the plain one is released."""

    def __init__(self, linear: nn.Linear, rows: int) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        weight = linear.weight.detach().contiguous()
        self.packed_bytes = weight.nbytes
        self._packed = torch.ops.mkldnn._reorder_linear_weight.default(weight, rows)  # noqa: SLF001  has no other name
        self._product = torch.ops.mkldnn._linear_pointwise.default  # noqa: SLF001  has no other name
        self.bias = None if linear.bias is None else nn.Parameter(linear.bias.detach(), requires_grad=False)

    def forward(self, x_BLD: Tensor) -> Tensor:
        return self._product(x_BLD, self._packed, self.bias, "none", [], "")


class MklLinear(nn.Module):
    """An FP32 linear layer with a copy of its weight in MKL's packed layout for exactly `rows` rows.

    MKL's layout holds for one number of rows, so the plain weight stays for all others: twice the memory.
    """

    def __init__(self, linear: nn.Linear, rows: int) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.rows = rows
        self.weight, self.bias = linear.weight, linear.bias
        weight = linear.weight.detach().contiguous()
        self.packed_bytes = weight.nbytes
        self._packed = torch.ops.mkl._mkl_reorder_linear_weight.default(weight, rows)  # noqa: SLF001  has no other name
        self._product = torch.ops.mkl._mkl_linear.default  # noqa: SLF001  has no other name

    def forward(self, x_BLD: Tensor) -> Tensor:
        return self._product(x_BLD, self._packed, self.weight, self.bias, self.rows)


class PackedLinear(Fusion):
    """Prepacked weights."""

    name = "packed_linear"
    title = "packed linear"
    summary = (
        "Reorders large weight matrices once for the CPU's matrix library (oneDNN; MKL for FP32 decoding, which keeps "
        "the plain weights too), so that each step reads memory in long straight runs."
    )
    workloads = INFERENCE_WORKLOADS

    def machine_reason(self, context: LeverContext) -> str | None:
        if context.machine.device != "cpu":
            return "Packed weights are a layout of the CPU's matrix libraries; a GPU reads plain weights."
        if not torch.backends.mkldnn.is_available():
            return "This build of torch has no oneDNN, which packs the weights."
        if not _onednn_runs(context.precision):
            return f"oneDNN has no {context.precision.upper()} products for this CPU."
        if "compile" in context.fusions:
            return "torch.compile cannot trace packed weights; it uses plain ones and its own choice of kernels."
        if context.config is not None and (largest := largest_matrix(context.config, context.fusions)) < LEAST_VALUES:
            return (
                f"This model's largest matrix has {largest:,} weights. Below {LEAST_VALUES:,} a packed product takes "
                "longer to start than it saves."
            )
        return None

    def apply(self, model: GPT, context: LeverContext) -> None:
        decoding = context.workload in ("decode", "generate") and context.kv_cache != "none"
        rows = context.batch * (1 if decoding else _PREFILL_ROWS)
        use_mkl = context.precision == "fp32" and decoding and torch.backends.mkl.is_available()

        def make(module: nn.Module) -> nn.Module | None:
            if not isinstance(module, nn.Linear) or module.weight.numel() < LEAST_VALUES:
                return None
            return MklLinear(module, rows) if use_mkl else OneDnnLinear(module, rows)

        replace_modules(model, make)

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        del context
        packed = facts.calls_per_step(lambda kernel: kernel.name in PACKED_OPS)
        plain = facts.calls_per_step(lambda kernel: kernel.name in ("aten::mm", "aten::addmm", "aten::addmv_"))
        if not packed:
            return self.not_shown(
                f"No product with packed weights in the profile, but {plain:.0f} plain ones per step."
            )
        return self.shown(
            f"{packed:.0f} products with packed weights per step, {plain:.0f} small ones with plain weights."
        )


def largest_matrix(config: GPTConfig, fusions: frozenset[str]) -> int:
    """Values of the model's largest weight matrix, merged ones counted as one when their fusion is on."""
    heads = config.n_head + 2 * config.n_kv_head if "qkv" in fusions else config.n_head
    up_count = 2 if config.mlp == "swiglu" and "mlp" in fusions else 1
    return config.d_model * max(config.vocab_size, heads * config.d_head, up_count * config.d_ff)


def _onednn_runs(precision: str) -> bool:
    """True when oneDNN multiplies in this format on this CPU."""
    if precision == "bf16":
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported.default())  # noqa: SLF001  has no other name
    if precision == "fp16":
        return bool(torch.ops.mkldnn._is_mkldnn_fp16_supported.default())  # noqa: SLF001  has no other name
    return True
