"""A linear layer whose products take FP8 or FP4 values, emulated: exact narrow values, multiplied in FP32.

What tensor cores do is the same but for the order of additions: products of narrow values are exact, sums are kept in
FP32, scales are applied to the sum, and the result is rounded once to the type of the activations.
"""

from typing import Any

import torch
from torch import Tensor, nn

from gptscope.models.counting import CountingModule
from gptscope.models.formats import Quantized, product
from gptscope.models.precision.fp8_scaling import LayerScaling
from gptscope.models.precision.scale_log import Role, ScaleLog

RAN = "emulated_layers"
"""Counter of the layers whose product took narrow values at least once."""


class EmulatedLinear(CountingModule):
    """`nn.Linear` on narrow values.

    Args:
        linear: The layer it replaces; its parameters are shared.
        name: Module path, for the log.
        scaling: This layer's own.
        log: The model's.
        training: False: the weight is quantized now, once, and kept in BF16, which holds all narrow values exactly.
    """

    weight: Tensor | None
    stored: Tensor | None
    stored_scale: Tensor

    def __init__(self, linear: nn.Linear, name: str, scaling: LayerScaling, log: ScaleLog, *, training: bool) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.name, self.scaling, self.log = name, scaling, log
        self.bias = linear.bias
        self.step = 0
        if training:
            self.weight = linear.weight
            self.register_buffer("stored", None)
            return
        self.weight = None
        quantized = scaling.quantize("weight", linear.weight.detach())
        self.note("weight", linear.weight.detach(), quantized)
        self.register_buffer("stored", quantized.values.to(torch.bfloat16))
        self.register_buffer("stored_scale", quantized.scale)

    def forward(self, x_BLD: Tensor) -> Tensor:
        self.tally[RAN] = 1.0
        device = x_BLD.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x_BLD.dtype
        x_ND = x_BLD.flatten(0, -2).to(dtype)
        with torch.autocast(device, enabled=False):  # the products below are meant to be FP32
            y_NO = self._stored_product(x_ND) if self.weight is None else self._product(x_ND, self.weight)
            if self.bias is not None:
                y_NO = y_NO + self.bias.to(dtype)
        return y_NO.view(*x_BLD.shape[:-1], -1)

    def quantize(self, role: Role, x_RK: Tensor) -> Quantized:
        """Quantize, and keep what the log wants."""
        quantized = self.scaling.quantize(role, x_RK)
        self.note(role, x_RK, quantized)
        return quantized

    def note(self, role: Role, x_RK: Tensor, quantized: Quantized) -> None:
        """Log one tensor's size and scale."""
        amax, factor = float(x_RK.abs().amax()), float(quantized.factor)
        self.log.note(self.name, role, self.step, amax, factor, self.scaling.largest(role))

    def _stored_product(self, x_ND: Tensor) -> Tensor:
        assert self.stored is not None
        self.step += 1
        weight = Quantized(self.stored.float(), self.stored_scale, self.stored_scale)
        return product(self.quantize("input", x_ND), weight).to(x_ND.dtype)

    def _product(self, x_ND: Tensor, weight_OD: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            self.step += 1
            self.scaling.begin_step()
            return _TrainedProduct.apply(x_ND, weight_OD, self)  # type: ignore[no-untyped-call]
        with self.scaling.paused():  # an evaluation in the midst of training
            narrow_x, narrow_w = self.scaling.quantize("input", x_ND), self.scaling.quantize("weight", weight_OD)
        return product(narrow_x, narrow_w).to(x_ND.dtype)


class _TrainedProduct(torch.autograd.Function):
    """`x wᵀ` on narrow values, and both gradients on narrow values too."""

    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, weight_OD: Tensor, layer: EmulatedLinear) -> Tensor:
        narrow_x, narrow_w = layer.quantize("input", x_ND), layer.quantize("weight", weight_OD)
        ctx.layer = layer
        if layer.scaling.directional:
            ctx.save_for_backward(x_ND, weight_OD)
        else:
            ctx.save_for_backward(*narrow_x, *narrow_w)
        ctx.weight_dtype = weight_OD.dtype
        return product(narrow_x, narrow_w).to(x_ND.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad_NO,) = grads
        layer: EmulatedLinear = ctx.layer
        narrow_g = layer.quantize("grad", grad_NO)
        if layer.scaling.directional:
            x_ND, weight_OD = ctx.saved_tensors
            scaling = layer.scaling
            grad_x = product(narrow_g, scaling.quantize("weight", weight_OD.t()))
            turned_g, turned_x = scaling.turn(grad_NO.t(), x_ND.t())
            grad_w = product(scaling.quantize("grad", turned_g), scaling.quantize("input", turned_x))
        else:
            narrow_x, narrow_w = Quantized(*ctx.saved_tensors[:3]), Quantized(*ctx.saved_tensors[3:])
            grad_x = product(narrow_g, narrow_w.t())
            grad_w = product(narrow_g.t(), narrow_x.t())
        # Both leave the tensor cores in the activations' type.
        return grad_x.to(grad_NO.dtype), grad_w.to(grad_NO.dtype).to(ctx.weight_dtype), None


def scale_log_of(model: nn.Module) -> ScaleLog | None:
    """The log that the model's emulated layers share; None when it has none."""
    return next((module.log for module in model.modules() if isinstance(module, EmulatedLinear)), None)
