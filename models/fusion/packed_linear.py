"""Weights reordered once into the layout that the CPU's matrix library wants (inference only)."""

import torch
from torch import nn

from gptscope.models.config import GPTConfig
from gptscope.models.fusion.kernel_choice import quickest, usual_rows
from gptscope.models.fusion.lever import Fusion, replace_modules
from gptscope.models.fusion.packed_layers import MklLinear, OneDnnLinear
from gptscope.models.gpt import GPT
from gptscope.models.levers import INFERENCE_WORKLOADS, Evidence, LeverContext, ProfileFacts

LEAST_VALUES = 1 << 17
"""Smaller matrices stay plain without asking: starting a oneDNN product takes longer than packing can save there."""
PACKED_OPS = ("mkldnn::_linear_pointwise", "mkl::_mkl_linear")
PLAIN_FORMATS = ("fp32", "tf32", "bf16", "fp16")
"""Recipes that leave the linear layers as they are; the others replace them."""


class PackedLinear(Fusion):
    """Prepacked weights."""

    name = "packed_linear"
    title = "packed linear"
    summary = (
        "Reorders weight matrices once for the CPU's matrix libraries (oneDNN, MKL), so that each step reads memory in "
        "long straight runs. Which library, or none, is measured here for each shape."
    )
    workloads = INFERENCE_WORKLOADS

    def machine_reason(self, context: LeverContext) -> str | None:
        if context.machine.device != "cpu":
            return "Packed weights are a layout of the CPU's matrix libraries; a GPU reads plain weights."
        if not torch.backends.mkldnn.is_available():
            return "This build of torch has no oneDNN, which packs the weights."
        if context.precision not in PLAIN_FORMATS:
            return f"{context.precision.upper()} brings products of its own, so there is no plain weight to pack."
        if not onednn_runs(context.precision):
            return f"oneDNN has no {context.precision.upper()} products for this CPU."
        if context.config is not None and (largest := largest_matrix(context.config, context.fusions)) < LEAST_VALUES:
            return (
                f"This model's largest matrix has {largest:,} weights. Below {LEAST_VALUES:,} a packed product takes "
                "longer to start than it saves."
            )
        return None

    def apply(self, model: GPT, context: LeverContext) -> None:
        rows = usual_rows(context)
        one_by_one = rows == context.batch  # MKL packs for one number of rows, so each step must have the same
        kernels = ("onednn", "mkl", "plain") if context.precision == "fp32" and one_by_one else ("onednn", "plain")

        def make(module: nn.Module) -> nn.Module | None:
            if not isinstance(module, nn.Linear) or module.weight.numel() < LEAST_VALUES:
                return None
            kernel = quickest(kernels, module.out_features, module.in_features, module.weight.dtype, rows)
            return {"onednn": OneDnnLinear, "mkl": MklLinear}[kernel](module, rows) if kernel != "plain" else None

        replace_modules(model, make)

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        del context
        packed = facts.calls_per_step(lambda kernel: kernel.name in PACKED_OPS)
        plain = facts.calls_per_step(lambda kernel: kernel.name in ("aten::mm", "aten::addmm", "aten::addmv_"))
        if not packed:
            return self.not_shown(
                f"No product with packed weights in the profile, but {plain:.0f} plain ones per step: for this model's "
                "shapes the plain kernels were quicker here when the weights were about to be packed."
            )
        products = "product" if round(packed) == 1 else "products"
        return self.shown(
            f"{packed:.0f} {products} with packed weights per step; {plain:.0f} with plain weights, which are small or "
            "were quicker so."
        )


def largest_matrix(config: GPTConfig, fusions: frozenset[str]) -> int:
    """Values of the model's largest weight matrix, merged ones counted as one when their fusion is on."""
    heads = config.n_head + 2 * config.n_kv_head if "qkv" in fusions else config.n_head
    up_count = 2 if config.mlp == "swiglu" and "mlp" in fusions else 1
    return config.d_model * max(config.vocab_size, heads * config.d_head, up_count * config.d_ff)


def onednn_runs(precision: str) -> bool:
    """True when oneDNN multiplies in this format on this CPU."""
    if precision == "bf16":
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported.default())  # noqa: SLF001  has no other name
    if precision == "fp16":
        return bool(torch.ops.mkldnn._is_mkldnn_fp16_supported.default())  # noqa: SLF001  has no other name
    return True
