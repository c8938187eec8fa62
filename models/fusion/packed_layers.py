"""Products with weights that a CPU matrix library has reordered, in eager mode and inside compiled regions."""

from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn


class PackedLayer(nn.Module):
    """A layer with packed weights.

    torch.compile cannot look at a tensor in a library's own layout, so a compiled region calls an operator of ours with
    the number of the layer. The number is a tensor: as a constant it would make every layer a region of its own.
    """

    def __init__(self, weight_NK: Tensor, bias: Tensor | None, output: torch.dtype) -> None:
        super().__init__()
        self.out_features, self.in_features = weight_NK.shape
        self.output = output
        """Type of the result."""
        self.packed_bytes = weight_NK.nbytes
        self.bias = None if bias is None else nn.Parameter(bias.detach(), requires_grad=False)
        number = max(_LAYERS, default=0) + 1
        _LAYERS[number] = self
        self.number = torch.tensor(number)

    def product(self, x_BLD: Tensor) -> Tensor:
        """The layer's output by the library's own kernel."""
        raise NotImplementedError

    def forward(self, x_BLD: Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            return torch.ops.gptscope.packed_product.default(x_BLD, self.number, self.out_features, self.output)
        return self.product(x_BLD)


def rows_of_layout(rows: int) -> int:
    """The number of rows to pack for.

    oneDNN only chooses the layout by it, any number works later. The layout for sixteen is never slower for a single
    row than the layout for one, and up to twice as fast (measured with AMX).
    """
    return max(rows, 16)


class OneDnnLinear(PackedLayer):
    """A linear layer whose weight exists only in oneDNN's blocked layout; the plain one is released."""

    def __init__(self, linear: nn.Linear, rows: int) -> None:
        super().__init__(linear.weight, linear.bias, linear.weight.dtype)
        weight = linear.weight.detach().contiguous()
        expected = rows_of_layout(rows)
        self._packed = torch.ops.mkldnn._reorder_linear_weight.default(weight, expected)  # noqa: SLF001  has no other name
        self._product = torch.ops.mkldnn._linear_pointwise.default  # noqa: SLF001  has no other name

    def product(self, x_BLD: Tensor) -> Tensor:
        return self._product(x_BLD, self._packed, self.bias, "none", [], "")


class MklLinear(PackedLayer):
    """An FP32 linear layer with a copy of its weight in MKL's packed layout for exactly `rows` rows.

    MKL's layout holds for one number of rows, so the plain weight stays for all others: twice the memory.
    """

    def __init__(self, linear: nn.Linear, rows: int) -> None:
        super().__init__(linear.weight, linear.bias, linear.weight.dtype)
        self.rows = rows
        self.weight = linear.weight
        weight = linear.weight.detach().contiguous()
        self._packed = torch.ops.mkl._mkl_reorder_linear_weight.default(weight, rows)  # noqa: SLF001  has no other name
        self._product = torch.ops.mkl._mkl_linear.default  # noqa: SLF001  has no other name

    def product(self, x_BLD: Tensor) -> Tensor:
        return self._product(x_BLD, self._packed, self.weight, self.bias, self.rows)


_LAYERS: WeakValueDictionary[int, PackedLayer] = WeakValueDictionary()
"""Number -> layer, for `packed_product`; a layer that is gone takes its entry with it."""


def _packed_product(x_BLD: Tensor, number: Tensor, out_features: int, output: torch.dtype) -> Tensor:
    del out_features, output
    return _LAYERS[int(number)].product(x_BLD)


def _shape_only(x_BLD: Tensor, number: Tensor, out_features: int, output: torch.dtype) -> Tensor:
    del number
    return x_BLD.new_empty(*x_BLD.shape[:-1], out_features, dtype=output)


_LIBRARY = torch.library.Library("gptscope", "FRAGMENT")
_LIBRARY.define("packed_product(Tensor x, Tensor number, int out_features, ScalarType output) -> Tensor")
_LIBRARY.impl("packed_product", _packed_product, "CPU")
_LIBRARY.impl("packed_product", _shape_only, "Meta")
