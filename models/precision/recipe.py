"""What a precision recipe is: which type the weights have, which types the matrix products run in, and its proof."""

from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar

import torch
from torch import nn

from gptscope.models.calibration import CalibrationText
from gptscope.models.gemm import is_gemm
from gptscope.models.gpt import GPT
from gptscope.models.levers import Evidence, KernelFact, Lever, LeverContext, ProfileFacts

PROFILER_DTYPE = {torch.float32: "float", torch.bfloat16: "c10::BFloat16", torch.float16: "c10::Half"}
"""How torch.profiler names the types in `Input type`."""


class PrecisionRecipe(Lever):
    """One number format for a whole run.

    Inference casts the weights once. Training keeps FP32 weights and runs the products under autocast (Micikevicius
    et al. 2018, "Mixed Precision Training"), so that small updates are not rounded away.
    """

    group = "precision"
    dtype: ClassVar[torch.dtype]
    bytes_per_value: ClassVar[float]
    preparing_bytes: ClassVar[float | None] = None
    """Bytes per weight at the widest moment of the preparation; None: as many as `bytes_per_value`."""
    native_features: ClassVar[frozenset[str]] = frozenset()
    """CPU instruction sets of which any one runs this format natively; empty when every CPU does."""

    def warning(self, context: LeverContext) -> str | None:
        if context.machine.device != "cpu" or not self.native_features:
            return None
        if self.native_features & context.machine.cpu_features:
            return None
        wanted = " or ".join(sorted(self.native_features))
        return (
            f"This CPU has no native {self.name.upper()} instructions ({wanted}), so {self.name.upper()} is emulated: "
            "it saves memory, but can be much slower than FP32."
        )

    def weight_dtype(self, *, training: bool) -> torch.dtype:
        """Type in which the weights are kept."""
        return torch.float32 if training else self.dtype

    def compute_dtype(self, context: LeverContext) -> torch.dtype:
        """Type of activations and of the KV cache, once the model is prepared."""
        return self.weight_dtype(training=context.training)

    def activation_bytes(self, context: LeverContext) -> float:
        """Bytes of one activation."""
        return self.bytes_per_value if context.training else float(self.compute_dtype(context).itemsize)

    def apply(self, model: nn.Module, *, training: bool) -> None:
        """Cast the weights and set what is process-wide, e.g. whether FP32 products may use TF32."""
        allow_tf32(allowed=False)
        model.to(self.weight_dtype(training=training))

    def needs_calibration(self, context: LeverContext) -> bool:
        """True when `quantize` has to see text first."""
        del context
        return False

    def quantize(self, model: GPT, context: LeverContext, calibration: CalibrationText | None) -> None:
        """Replace layers by ones that compute in this format, after all fusions but `compile`.

        Args:
            model: Weights cast, modules fused, on its device; changed in place.
            context: All levers; `settings(context)` has this recipe's options.
            calibration: Text to run through the model; given when `needs_calibration`.
        """

    def autocast(self, device: torch.device, *, training: bool) -> AbstractContextManager[object]:
        """Context in which a forward pass must run."""
        if training and self.dtype != torch.float32:
            return torch.autocast(device.type, dtype=self.dtype)
        return nullcontext()

    def needs_loss_scaling(self) -> bool:
        """True when small gradients would underflow in this format."""
        return False

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        del context
        products = [kernel for kernel in facts.kernels if is_gemm(kernel)]
        if not products:
            return self.cannot_tell("The profile shows no matrix products, so the number format cannot be seen.")
        known = [kernel for kernel in products if kernel_dtype(kernel) is not None]
        if not known:
            return self.cannot_tell(
                "The profile holds no input types of the matrix products (shapes were not recorded)."
            )
        total_calls = sum(kernel.calls for kernel in known)
        own_calls = sum(kernel.calls for kernel in known if kernel_dtype(kernel) == self.dtype)
        others = sorted({str(kernel_dtype(kernel)).removeprefix("torch.") for kernel in known} - {self._torch_name()})
        sentence = f"{own_calls / total_calls:.0%} of the matrix products take {self._torch_name()} inputs"
        sentence += f", the others {', '.join(others)}." if others else "."
        return self.seen(own_calls * 2 > total_calls, sentence)

    def _torch_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")


def kernel_dtype(kernel: KernelFact) -> torch.dtype | None:
    """Input type of a matrix product: from the recorded types, else from the name of a CUDA kernel, else unknown."""
    for dtype, name in PROFILER_DTYPE.items():
        if name in kernel.dtypes:
            return dtype
    name = kernel.name.lower()
    if "bf16" in name or "bfloat16" in name:
        return torch.bfloat16
    if any(part in name for part in ("f16", "fp16", "half", "hgemm", "h884", "hsh_")):
        return torch.float16
    if any(part in name for part in ("sgemm", "f32", "tf32", "float")):
        return torch.float32
    return None


def allow_tf32(*, allowed: bool) -> None:
    """Set whether CUDA's FP32 matrix products may round their inputs to TF32. No effect on a CPU."""
    torch.backends.cuda.matmul.fp32_precision = "tf32" if allowed else "ieee"
