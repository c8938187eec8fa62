"""Where one layer's scales come from: each recipe has one of these per layer."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gptscope.models.formats import (
    E2M1,
    E4M3,
    Minifloat,
    Quantized,
    mx_blocks,
    nv_blocks,
    per_row,
    per_tensor,
    tensor_scale,
)
from gptscope.models.formats.scaling import NV_BLOCK, stochastic
from gptscope.models.precision.scale_log import ROLES, Role

Formats = Mapping[Role, Minifloat]


class LayerScaling(ABC):
    """Quantizes the three tensors of a linear layer: input, weight, and the gradient of the output."""

    directional: ClassVar[bool]
    """True when scales run along the summed dimension, so that a transposed matrix is quantized anew."""

    def begin_step(self) -> None:
        """A training step begins."""
        return

    def paused(self) -> AbstractContextManager[None]:
        """Inside, nothing that is quantized leaves a trace in the scales."""
        return nullcontext()

    @abstractmethod
    def largest(self, role: Role) -> float:
        """Largest value of the tensor's format."""

    @abstractmethod
    def quantize(self, role: Role, x_RK: Tensor) -> Quantized:
        """Quantize a matrix whose last dimension will be summed over."""

    def turn(self, a_MN: Tensor, b_KN: Tensor) -> tuple[Tensor, Tensor]:
        """What may be done to both operands of the weight gradient without changing their product."""
        return a_MN, b_KN


class CurrentScaling(LayerScaling):
    """One scale per tensor, from the tensor itself."""

    directional = False

    def __init__(self, formats: Formats) -> None:
        self._formats = formats

    def largest(self, role: Role) -> float:
        return self._formats[role].largest

    def quantize(self, role: Role, x_RK: Tensor) -> Quantized:
        amax = x_RK.abs().amax().float()
        return per_tensor(x_RK, self._formats[role], tensor_scale(amax, torch.ones_like(amax), self.largest(role)))


@dataclass(slots=True)
class _Delayed:
    """State of one tensor."""

    history: Tensor
    """The largest magnitudes of earlier steps; the first one is collecting."""
    factor: Tensor


class DelayedScaling(LayerScaling):
    """One scale per tensor, from the largest magnitudes of earlier steps, so that no pass over the data has to wait.

    The rules are Transformer Engine's (`DelayedScaling`): factors start at 1; a step's largest magnitudes are collected
    while it quantizes with the factors that it found; when it is over, the history is shifted and the factors follow
    the history's largest (`max`) or latest (`most_recent`) entry. Without gradients nothing changes.
    """

    directional = False

    def __init__(self, formats: Formats, *, history: int, margin: int, algorithm: str) -> None:
        self._formats, self._margin, self._algorithm = formats, margin, algorithm
        self._state = {role: _Delayed(torch.zeros(history), torch.ones(())) for role in ROLES}
        self._collects = False

    def largest(self, role: Role) -> float:
        return self._formats[role].largest

    def begin_step(self) -> None:
        """Take over what the step before has collected."""
        if self._collects:
            self._update()
        self._collects = True

    def observe(self, role: Role, amax: Tensor) -> None:
        """Count a magnitude as one whole step, for calibration."""
        self._collect(role, amax)
        self._update()

    def factor(self, role: Role) -> Tensor:
        """What this tensor is multiplied by now."""
        return self._state[role].factor

    def quantize(self, role: Role, x_RK: Tensor) -> Quantized:
        if self._collects:
            self._collect(role, x_RK.abs().amax().float())
        return per_tensor(x_RK, self._formats[role], self._state[role].factor)

    @contextmanager
    def paused(self) -> Iterator[None]:
        collected, self._collects = self._collects, False
        try:
            yield
        finally:
            self._collects = collected

    def _collect(self, role: Role, amax: Tensor) -> None:
        history = self._state[role].history
        history[0] = torch.maximum(history[0], amax)

    def _update(self) -> None:
        for role, state in self._state.items():
            amax = state.history.amax() if self._algorithm == "max" else state.history[0].clone()
            state.factor = tensor_scale(amax, state.factor, self.largest(role), self._margin)
            state.history = state.history.roll(-1)
            state.history[0] = 0.0


class RowScaling(LayerScaling):
    """One scale per row of each operand."""

    directional = True

    def __init__(self, formats: Formats, *, power_of_two: bool) -> None:
        self._formats, self._power_of_two = formats, power_of_two

    def largest(self, role: Role) -> float:
        return self._formats[role].largest

    def quantize(self, role: Role, x_RK: Tensor) -> Quantized:
        return per_row(x_RK, self._formats[role], power_of_two=self._power_of_two)


class MxScaling(LayerScaling):
    """A power of two per 32 neighbours."""

    directional = True

    def __init__(self, formats: Formats, *, up: bool) -> None:
        self._formats, self._up = formats, up

    def largest(self, role: Role) -> float:
        return self._formats[role].largest

    def quantize(self, role: Role, x_RK: Tensor) -> Quantized:
        return mx_blocks(x_RK, self._formats[role], up=self._up)


class NvFp4Scaling(LayerScaling):
    """FP4 with an E4M3 scale per 16 neighbours, and what keeps its training from drifting.

    Gradients are rounded at random; both operands of the weight gradient are turned by a random Hadamard matrix, which
    spreads outliers over a block and cancels in the product; weights share a scale per 16 x 16 block, so that forward
    and backward pass see the same ones (NVIDIA, "Pretraining Large Language Models with NVFP4", 2025).
    """

    directional = True

    def __init__(self, *, seed: int, random_rounding: bool, hadamard: bool, square_weights: bool) -> None:
        generator = torch.Generator().manual_seed(seed)
        self._square_weights = square_weights
        self._round_grad = stochastic(E2M1, generator) if random_rounding else E2M1.round
        self._turn = _hadamard(generator) if hadamard else None

    def largest(self, role: Role) -> float:
        del role
        return E2M1.largest * E4M3.largest  # the matrix's scale brings its largest value to a block's largest

    def quantize(self, role: Role, x_RK: Tensor) -> Quantized:
        round_to = self._round_grad if role == "grad" else E2M1.round
        return nv_blocks(x_RK, square=role == "weight" and self._square_weights, round_to=round_to)

    def turn(self, a_MN: Tensor, b_KN: Tensor) -> tuple[Tensor, Tensor]:
        if self._turn is None:
            return a_MN, b_KN
        return _turned(a_MN, self._turn), _turned(b_KN, self._turn)


def _hadamard(generator: torch.Generator) -> Tensor:
    """A 16 x 16 Hadamard matrix with random signs, orthogonal."""
    matrix = torch.ones(1, 1)
    while matrix.shape[0] < NV_BLOCK:
        matrix = torch.cat((torch.cat((matrix, matrix), 1), torch.cat((matrix, -matrix), 1)))
    signs = torch.randint(0, 2, (NV_BLOCK,), generator=generator).float() * 2 - 1
    return signs[:, None] * matrix / NV_BLOCK**0.5


def _turned(x_RK: Tensor, matrix: Tensor) -> Tensor:
    """Each block of 16 neighbours times the matrix; a last block that is not full is filled with zeros."""
    padded = torch.nn.functional.pad(x_RK.float(), (0, -x_RK.shape[1] % NV_BLOCK))
    return (padded.unflatten(1, (-1, NV_BLOCK)) @ matrix).flatten(1)
