"""A linear layer that can use the matrix-vector kernel for a single BF16 row on a CPU."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

_LIBRARY = torch.library.Library("gptscope", "FRAGMENT")
_LIBRARY.define("row_product(Tensor weight, Tensor x) -> Tensor")
_LIBRARY.impl("row_product", torch.mv, "CPU")
_LIBRARY.impl("row_product", lambda weight, x: x.new_empty(weight.shape[0]), "Meta")
# An operator of its own, because torch.compile would write torch.mv anew as a loop, which runs at half the speed.


class RowLinear(nn.Linear):
    """`nn.Linear` for fused modules.

    torch sends a BF16 product with a single row to oneDNN's general product with unpacked weights. On some CPUs (with
    AMX) its matrix-vector kernel reads the same weights at up to twice the bandwidth, on others it is slower.
    """

    by_rows = False
    """Use the matrix-vector kernel for a single row; `choose_row_kernels` finds out whether it is quicker here."""

    def forward(self, x_BLD: Tensor) -> Tensor:
        weight = self.weight
        one_row = self.by_rows and x_BLD.numel() == self.in_features
        if one_row and x_BLD.dtype is torch.bfloat16 and x_BLD.device.type == "cpu" and not torch.is_grad_enabled():
            x_D = x_BLD.reshape(-1)
            compiling = torch.compiler.is_compiling()
            y_D = torch.ops.gptscope.row_product.default(weight, x_D) if compiling else torch.mv(weight, x_D)
            if self.bias is not None:  # addmv has no fast path, so the bias is added apart
                y_D = y_D + self.bias
            return y_D.view(*x_BLD.shape[:-1], -1)
        return nn.functional.linear(x_BLD, weight, self.bias)


def row_linear(linear: nn.Module) -> nn.Module:
    """The same layer as `RowLinear`, sharing its parameters; anything that is no plain `nn.Linear` stays as it is."""
    return stack_linears([linear]) if type(linear) is nn.Linear else linear


def stack_linears(parts: Sequence[nn.Linear]) -> RowLinear:
    """One linear layer that computes all `parts`, their outputs one after another; a single part is shared."""
    first = parts[0]
    out_features = sum(part.out_features for part in parts)
    # built without memory: the weights below replace the parameters
    stacked = RowLinear(first.in_features, out_features, bias=first.bias is not None, device="meta")
    if len(parts) == 1:
        stacked.weight, stacked.bias = first.weight, first.bias
        return stacked
    with torch.no_grad():
        stacked.weight = nn.Parameter(torch.cat([part.weight for part in parts]), first.weight.requires_grad)
        if first.bias is not None:
            stacked.bias = nn.Parameter(torch.cat([part.bias for part in parts]), first.bias.requires_grad)
    return stacked
