"""The difference of two variants' final losses over several seeds, each seed paired with itself.

Both variants of a pair see the same data from the same weights, so what seeds have in common cancels; what is left
differs from seed to seed and is summed up as Student's t does it (Student 1908, "The Probable Error of a Mean").
"""

import math
from collections.abc import Mapping

import msgspec

_T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""97.5 % quantile of Student's t distribution for 1, 2, … degrees of freedom."""
_NORMAL_975 = 1.95996


class SeedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Final loss of a candidate minus that of the baseline, in nats per token, over seeds."""

    seeds: tuple[int, ...]
    differences: tuple[float, ...]
    """Of each seed."""
    difference: float
    """Their mean."""
    low: float | None
    high: float | None
    """95 % interval of the mean (Student's t); None with a single seed."""

    @property
    def differs(self) -> bool | None:
        """Whether the interval leaves zero out; None without one."""
        if self.low is None or self.high is None:
            return None
        return not self.low <= 0.0 <= self.high


def over_seeds(differences: Mapping[int, float]) -> SeedComparison | None:
    """Sum up the difference of each seed; None when there is none."""
    if not differences:
        return None
    values = tuple(differences.values())
    count = len(values)
    mean = sum(values) / count
    low = high = None
    if count > 1:
        variance = sum((value - mean) ** 2 for value in values) / (count - 1)
        half = t_975(count - 1) * math.sqrt(variance / count)
        low, high = mean - half, mean + half
    return SeedComparison(seeds=tuple(differences), differences=values, difference=mean, low=low, high=high)


def t_975(degrees: int) -> float:
    """97.5 % quantile of Student's t; above the table by its expansion around the normal quantile (Fisher 1925)."""
    if degrees <= len(_T_975):
        return _T_975[degrees - 1]
    z = _NORMAL_975
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
