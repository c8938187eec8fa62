"""Perplexity with an honest standard error: neighbouring tokens are correlated, so whole blocks of text are counted.

The mean negative log-likelihood m = Σ sᵢ / Σ cᵢ over blocks i (sᵢ summed nats, cᵢ tokens) is a ratio estimate; its
variance is n/(n-1) · Σ (sᵢ - m cᵢ)² / (Σ cᵢ)² (linearised cluster estimate; Cochran, "Sampling Techniques", 3rd ed.,
section 9A). Perplexity is exp(m), so its standard error is exp(m) times that of m (delta method).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]

ENOUGH_WINDOWS = 8
"""From this many windows on, each window is one block; with fewer, windows are cut into shorter blocks."""
BLOCK_TOKENS = 64
"""Length of those shorter blocks: longer than the few words over which surprises cluster."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its standard error; None where the data cannot give it."""

    value: float | None
    error: float | None


def blocks(nll_by_window: Sequence[Float64]) -> list[Float64]:
    """Cut windows of per-token nats into the blocks that count as independent."""
    windows = [window for window in nll_by_window if len(window)]
    if len(windows) >= ENOUGH_WINDOWS:
        return windows
    return [part for window in windows for part in np.array_split(window, max(1, round(len(window) / BLOCK_TOKENS)))]


def perplexity(nll_by_window: Sequence[Float64]) -> Estimate:
    """Exp of the mean negative log-likelihood.

    Args:
        nll_by_window: For each window of text, the nats of each token.

    Returns:
        Perplexity and its standard error; None when there is no token, fewer than two blocks, or an overflow.
    """
    return _estimate((1.0, blocks(nll_by_window)))


def perplexity_change(baseline_by_window: Sequence[Float64], candidate_by_window: Sequence[Float64]) -> Estimate:
    """Candidate's perplexity minus the baseline's, block by block on the same text, so that shared surprises cancel.

    Args:
        baseline_by_window: For each window, the baseline's nats of each token.
        candidate_by_window: The candidate's nats of the same tokens.
    """
    return _estimate((-1.0, blocks(baseline_by_window)), (1.0, blocks(candidate_by_window)))


def _estimate(*signed_sides: tuple[float, list[Float64]]) -> Estimate:
    """Sum over the sides of sign times perplexity, with the standard error of that sum."""
    first = signed_sides[0][1]
    tokens, n = sum(map(len, first)), len(first)
    if tokens == 0:
        return Estimate(None, None)
    value, residual_N = 0.0, np.zeros(n)
    for sign, parts in signed_sides:
        sums_N = np.array([part.sum() for part in parts])
        counts_N = np.array([len(part) for part in parts], dtype=np.float64)
        mean = float(sums_N.sum() / tokens)
        if mean > _LARGEST_MEAN:
            return Estimate(None, None)
        value += sign * math.exp(mean)
        residual_N += sign * math.exp(mean) * (sums_N - mean * counts_N)
    if n < 2:
        return Estimate(value, None)
    return Estimate(value, math.sqrt(n / (n - 1) * float(np.square(residual_N).sum())) / tokens)


_LARGEST_MEAN = 300.0  # nats; the square of exp(300) still fits into float64
