"""How large a magnitude INT8 should still reach: everything (min-max), or less, so that the steps are finer.

Four ways for activations, which are seen as histograms of |x|; three of them for weights, which are all there to be
looked at. Min-max and percentile need no explanation. `mse` takes the limit with the least mean squared error.
`entropy` takes the one whose quantized histogram has the least KL divergence from the seen one (Migacz 2017, "8-bit
Inference with TensorRT"); the few hundred values of a weight's channel make no histogram, so weights do not have it.
"""

import torch
from torch import Tensor

from gptscope.models.quantization.integers import LARGEST, scale_of

PERCENTILES = ("99", "99.9", "99.99", "99.999")
ACTIVATION_METHODS = ("minmax", "percentile", "mse", "entropy")
WEIGHT_METHODS = ("minmax", "percentile", "mse")
_BINS = 2048
_LEVELS = LARGEST + 1
"""Magnitudes that INT8 tells apart, zero included."""
_FRACTIONS = tuple(1.0 - 0.025 * number for number in range(29))
"""Of the largest weight, tried as limits: 1 down to 0.3."""
_CHUNK_VALUES = 1 << 22


class Histogram:
    """Magnitudes of a tensor that comes piece by piece. The bins double in width when a larger value comes."""

    def __init__(self) -> None:
        self.counts = torch.zeros(_BINS, dtype=torch.float64)
        self.width = 0.0
        """Of one bin."""
        self.largest = 0.0

    def add(self, x: Tensor) -> None:
        """Count the magnitudes of a piece."""
        magnitudes = x.detach().float().abs().flatten()
        largest = float(magnitudes.max()) if magnitudes.numel() else 0.0
        self.largest = max(self.largest, largest)
        if largest == 0.0:
            self.counts[0] += magnitudes.numel()
            return
        if self.width == 0.0:
            self.width = largest / _BINS
        while largest > self.width * _BINS:
            merged = self.counts.view(-1, 2).sum(-1)
            self.counts = torch.cat((merged, torch.zeros(_BINS // 2, dtype=torch.float64)))
            self.width *= 2
        self.counts += torch.histc(magnitudes, _BINS, 0.0, self.width * _BINS).double()

    def limit(self, method: str, percentile: float = 99.9) -> float:
        """The largest magnitude that INT8 should reach.

        Args:
            method: One of `ACTIVATION_METHODS`.
            percentile: Percent of the values that must lie inside, for the method `percentile`.
        """
        if method == "minmax" or self.largest == 0.0:
            return self.largest
        if method == "percentile":
            share = self.counts.cumsum(0) / self.counts.sum()
            index = int(torch.searchsorted(share, percentile / 100.0))
            return min(self.largest, (min(index, _BINS - 1) + 1) * self.width)
        candidates = range(_LEVELS, _BINS + 1, 16)
        cost = self._squared_error if method == "mse" else self._divergence
        best = min(candidates, key=cost)
        return min(self.largest, best * self.width)

    def _squared_error(self, bins: int) -> float:
        """Expected squared error with a limit of so many bins: step²/12 inside, the distance to the limit outside."""
        limit = bins * self.width
        inside = float(self.counts[:bins].sum()) * (limit / LARGEST) ** 2 / 12
        centres = (torch.arange(bins, _BINS, dtype=torch.float64) + 0.5) * self.width
        return inside + float((self.counts[bins:] * (centres - limit).square()).sum())

    def _divergence(self, bins: int) -> float:
        """KL divergence of the quantized histogram from the seen one, clipped values counted at the limit."""
        seen = self.counts[:bins].clone()
        group = torch.arange(bins) * _LEVELS // bins
        filled = (seen > 0).double()
        sums = torch.zeros(_LEVELS, dtype=torch.float64).index_add_(0, group, seen)
        used = torch.zeros(_LEVELS, dtype=torch.float64).index_add_(0, group, filled)
        rounded = (sums / used.clamp(min=1.0))[group] * filled
        seen[-1] += float(self.counts[bins:].sum())
        total, rounded_total = float(seen.sum()), float(rounded.sum())
        if rounded_total == 0.0:
            return float("inf")
        p, q = seen / total, rounded / rounded_total
        if bool(((p > 0) & (q == 0)).any()):
            # only the last bin can be hit by clipped values alone; a tiny chance stands for it
            q = torch.where((p > 0) & (q == 0), 1e-9, q)
        return float(torch.special.xlogy(p, p / q.clamp(min=1e-30)).sum())


def weight_limits(weight_NK: Tensor, method: str, *, per_channel: bool, percentile: float = 99.9) -> Tensor:
    """The largest magnitude that INT8 should reach, one for each row of a weight: `[N, 1]`.

    Args:
        weight_NK: One output channel per row.
        method: One of `WEIGHT_METHODS`.
        per_channel: A limit of its own for each row; else the same for all of them.
        percentile: For the method `percentile`.
    """
    rows, columns = weight_NK.shape
    if not per_channel:
        limit_11 = _limits(weight_NK.reshape(1, -1).float(), method, percentile)
        return limit_11.expand(rows, 1).contiguous()
    step = max(1, _CHUNK_VALUES // columns)
    return torch.cat([_limits(part.float(), method, percentile) for part in weight_NK.split(step)])


def _limits(weight_NK: Tensor, method: str, percentile: float) -> Tensor:
    magnitudes = weight_NK.abs()
    largest_N1 = magnitudes.amax(-1, keepdim=True)
    if method == "minmax":
        return largest_N1
    if method == "percentile":
        place = max(1, round(percentile / 100.0 * magnitudes.shape[-1]))
        return magnitudes.kthvalue(place, -1, keepdim=True).values
    best_N1, least_N1 = largest_N1, torch.full_like(largest_N1, float("inf"))
    for fraction in _FRACTIONS:
        limit_N1 = largest_N1 * fraction
        scale_N1 = scale_of(limit_N1)
        restored = (weight_NK / scale_N1).round_().clamp_(-LARGEST, LARGEST).mul_(scale_N1)
        error_N1 = restored.sub_(weight_NK).square_().sum(-1, keepdim=True)
        better_N1 = error_N1 < least_N1
        best_N1 = torch.where(better_N1, limit_N1, best_N1)
        least_N1 = torch.where(better_N1, error_N1, least_N1)
    return best_N1
