"""Which of several kernels for the same product is the quickest here: measured, because CPUs differ too much.

For one BF16 row, for example, torch's matrix-vector kernel is twice as fast as `F.linear` on a CPU with AMX and a third
slower on one without.
"""

import functools
import time
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from gptscope.models.fusion.linear import RowLinear, row_linear
from gptscope.models.fusion.packed_layers import MklLinear, OneDnnLinear
from gptscope.models.levers import LeverContext

_SAMPLE_BYTES = 48 << 20
"""Weights that one kernel reads in a round: more than most caches hold, as in a model."""
_MOST_LAYERS = 24
_FEW_ROWS = 16
_CHECKED_ROWS = 4
"""Rows of each text that stand for a step of speculative decoding, which checks another number of guesses each time."""
_PREFILL_ROWS = 256
"""Rows that stand for a prefill; with that many, the exact number hardly matters."""
_ROUNDS = 5
_CLEARLY = 0.95
"""A later kernel is chosen only if it takes less than this part of the time of the ones before it."""


def _row(linear: nn.Linear, rows: int) -> nn.Module:
    del rows
    layer = row_linear(linear)
    assert isinstance(layer, RowLinear)
    layer.by_rows = True
    return layer


_KERNELS: dict[str, Callable[[nn.Linear, int], nn.Module]] = {
    "plain": lambda linear, rows: linear,
    "row": _row,
    "onednn": OneDnnLinear,
    "mkl": MklLinear,
}


@functools.cache
def quickest(kernels: tuple[str, ...], out_features: int, in_features: int, dtype: torch.dtype, rows: int) -> str:
    """Time kernels against each other on random weights.

    Args:
        kernels: Names: `plain`, `row`, `onednn`, `mkl`; an earlier one wins a draw.
        out_features: Rows of the weight.
        in_features: Columns of the weight.
        dtype: Type of weights and activations.
        rows: Rows of the activations.

    Returns:
        The name of the quickest.
    """
    layers = sample_layers(out_features, in_features, rows, dtype)
    with torch.inference_mode():
        plain = [nn.Linear(in_features, out_features, bias=False, dtype=dtype) for _ in range(layers)]
        sides = {name: [_KERNELS[name](linear, rows) for linear in plain] for name in kernels}
        return quickest_side(sides, torch.randn(rows, in_features, dtype=dtype))


def usual_rows(context: LeverContext) -> int:
    """With how many rows the products of this run are mostly called."""
    if context.workload not in ("decode", "generate") or context.kv_cache == "none":
        return context.batch * _PREFILL_ROWS
    return context.batch * (1 if context.speculation == "none" else _CHECKED_ROWS)


def sample_layers(out_features: int, in_features: int, rows: int, dtype: torch.dtype) -> int:
    """How many layers to run one after the other, so that few rows find the weights in memory and not in a cache."""
    layers = _SAMPLE_BYTES // (out_features * in_features * dtype.itemsize)
    return max(1, min(_MOST_LAYERS if rows < _FEW_ROWS else 2, layers))


def quickest_side(sides: Mapping[str, Sequence[nn.Module]], x_RD: Tensor) -> str:
    """Run the layers of each side in turns and name the quickest; an earlier one wins a draw."""
    taken = {name: _round(layers, x_RD) for name, layers in sides.items()}  # a first, slow round
    for number in range(_ROUNDS):
        for name, layers in sides.items():
            seconds = _round(layers, x_RD)
            taken[name] = seconds if number == 0 else min(taken[name], seconds)
    best, *others = sides
    for name in others:
        if taken[name] < _CLEARLY * taken[best]:
            best = name
    return best


def choose_row_kernels(model: nn.Module) -> None:
    """Let every `RowLinear` in `model` use the matrix-vector kernel where that one is quicker here."""
    for layer in model.modules():
        if isinstance(layer, RowLinear) and layer.weight.dtype is torch.bfloat16 and layer.weight.device.type == "cpu":
            kernel = quickest(("plain", "row"), layer.out_features, layer.in_features, layer.weight.dtype, 1)
            layer.by_rows = kernel == "row"


def _round(layers: Sequence[nn.Module], x_RD: Tensor) -> float:
    begun = time.perf_counter()
    for layer in layers:
        layer(x_RD)
    return time.perf_counter() - begun
