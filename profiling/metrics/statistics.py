"""Robust statistics of step times: quantiles, spread, and bootstrap intervals. Pure and seeded.

Step times are skewed and have outliers, so the middle is the median and the spread the interquartile range or the
median absolute deviation; intervals come from resampling (Efron and Tibshirani, "An Introduction to the Bootstrap",
1993, percentile method), not from a normal distribution.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BOOTSTRAP_SEED = 20_240_229
"""Fixed, so that opening a stored run shows the numbers it showed when it ran."""
RESAMPLES = 2_000
MIN_SLICES = 3
"""With fewer independent slices no interval is given."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its 95 % interval; `low` and `high` are None when there are too few slices for one."""

    value: float
    low: float | None = None
    high: float | None = None


def median(values: Sequence[float] | Floats) -> float:
    """The middle value; the mean of the two middle ones for an even count."""
    return quantile(values, 0.5)


def quantile(values: Sequence[float] | Floats, fraction: float) -> float:
    """The value below which `fraction` (0 to 1) of the values lie, interpolated linearly (Hyndman and Fan type 7).

    Raises:
        ValueError: There are no values.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError("A quantile needs at least one value.")
    return float(np.quantile(array, fraction))


def interquartile_range(values: Sequence[float] | Floats) -> float:
    """Width of the middle half of the values."""
    return quantile(values, 0.75) - quantile(values, 0.25)


def median_absolute_deviation(values: Sequence[float] | Floats) -> float:
    """Median distance from the median, not scaled to a standard deviation."""
    array = np.asarray(values, dtype=np.float64)
    return median(np.abs(array - median(array)))


def bootstrap_interval(
    values: Sequence[float] | Floats, *, seed: int = BOOTSTRAP_SEED, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """95 % interval of the median of independent values.

    Args:
        values: Independent measurements, e.g. one ratio per pair of slices.
        seed: Of the random numbers.
        resamples: How many times the values are drawn again, with replacement.

    Returns:
        The 2.5 % and 97.5 % quantiles of the medians of the resamples.

    Raises:
        ValueError: There are no values.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError("A bootstrap interval needs at least one value.")
    drawn = np.random.default_rng(seed).integers(0, array.size, size=(resamples, array.size))
    return _middle_95(np.median(array[drawn], axis=1))


def clustered_interval(
    clusters: Sequence[Floats],
    statistic: Callable[[Floats], float],
    *,
    seed: int = BOOTSTRAP_SEED,
    resamples: int = 400,
) -> tuple[float, float] | None:
    """95 % interval of a statistic of pooled values that come in clusters (steps of one slice resemble each other).

    Whole clusters are drawn again with replacement and pooled, so neighbouring steps are not taken for independent
    evidence (Davison and Hinkley 1997, section 3.8).

    Returns:
        Low and high, or None with fewer than `MIN_SLICES` clusters.
    """
    if len(clusters) < MIN_SLICES:
        return None
    drawn = np.random.default_rng(seed).integers(0, len(clusters), size=(resamples, len(clusters)))
    values = [statistic(np.concatenate([clusters[i] for i in row])) for row in drawn]
    return _middle_95(np.asarray(values))


def ratio_interval(
    numerators: Sequence[float] | Floats,
    denominators: Sequence[float] | Floats,
    *,
    seed: int = BOOTSTRAP_SEED,
    resamples: int = RESAMPLES,
) -> tuple[float, float] | None:
    """95 % interval of a ratio of sums (tokens over seconds), resampling slices; None below `MIN_SLICES`."""
    top, bottom = np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)
    if top.size < MIN_SLICES:
        return None
    drawn = np.random.default_rng(seed).integers(0, top.size, size=(resamples, top.size))
    return _middle_95(top[drawn].sum(axis=1) / bottom[drawn].sum(axis=1))


def _middle_95(values: Floats) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)
