"""Bounded series: however long a run lasts, memory and drawing stay small, and no sample is dropped, only merged."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gptscope.app.viewmodels.chart_data import Floats, floats

NS_PER_S = 1e9
_FIRST_BIN_NS = 100_000_000
_MAX_BINS = 4096
_MIN_GAP_S = 0.35


class RateSeries:
    """Tokens and bytes per second over time, in equal bins of time that double in width when there are too many."""

    def __init__(self) -> None:
        self._bin_ns = _FIRST_BIN_NS
        self._origin_ns: int | None = None
        self._tokens = np.zeros(256)
        self._bytes = np.zeros(256)
        self._busy_ns = np.zeros(256)
        self._steps = np.zeros(256)
        self.revision = 0

    def add(self, start_ns: Sequence[int], duration_ns: Sequence[int], tokens: Sequence[int], moved: Floats) -> None:
        """Add steps; `moved` = modelled bytes of each step (NaN when unknown). A step counts where it ends."""
        if not start_ns:
            return
        starts, durations = np.asarray(start_ns, np.int64), np.asarray(duration_ns, np.int64)
        if self._origin_ns is None:
            self._origin_ns = int(starts[0])
        ends = np.maximum(starts + durations - self._origin_ns, 0)
        while int(ends.max()) // self._bin_ns >= _MAX_BINS:
            self._halve()
        index = ends // self._bin_ns
        self._grow(int(index.max()) + 1)
        np.add.at(self._tokens, index, np.asarray(tokens, np.float64))
        np.add.at(self._bytes, index, moved)
        np.add.at(self._busy_ns, index, durations)
        np.add.at(self._steps, index, 1.0)
        self.revision += 1

    def _grow(self, needed: int) -> None:
        if needed > self._tokens.size:
            extra = np.zeros(max(needed, 2 * self._tokens.size) - self._tokens.size)
            for name in ("_tokens", "_bytes", "_busy_ns", "_steps"):
                setattr(self, name, np.concatenate((getattr(self, name), extra)))

    def _halve(self) -> None:
        for name in ("_tokens", "_bytes", "_busy_ns", "_steps"):
            column: Floats = getattr(self, name)
            column = np.concatenate((column, np.zeros(column.size % 2)))
            setattr(self, name, column[0::2] + column[1::2])
        self._bin_ns *= 2

    def tokens_per_second(self, zero_ns: int) -> tuple[Floats, Floats]:
        """Seconds since `zero_ns` and rates; NaN marks where nothing of this kind ran."""
        return self._points(self._tokens, zero_ns, 1.0)

    def gigabytes_per_second(self, zero_ns: int) -> tuple[Floats, Floats]:
        """Seconds since `zero_ns` and modelled GB/s."""
        return self._points(self._bytes, zero_ns, 1e-9)

    def _points(self, amount: Floats, zero_ns: int, factor: float) -> tuple[Floats, Floats]:
        used = np.flatnonzero(self._busy_ns > 0)
        if used.size == 0 or self._origin_ns is None:
            return floats(), floats()
        x = (self._origin_ns - zero_ns + (used + 0.5) * self._bin_ns) / NS_PER_S
        y = factor * amount[used] / (self._busy_ns[used] / NS_PER_S)
        step_s = self._busy_ns[used] / self._steps[used] / NS_PER_S
        limit = np.maximum(_MIN_GAP_S, np.maximum(2.5 * step_s, 2.5 * self._bin_ns / NS_PER_S))
        breaks = np.flatnonzero(np.diff(x) > np.maximum(limit[1:], limit[:-1])) + 1
        return np.insert(x, breaks, x[breaks] - 1e-6), np.insert(y, breaks, np.nan)


class LogHistogram:
    """Counts of durations in bins of equal ratio (0.5 %): any number of steps in constant memory."""

    _LOW_NS, _RATIO = 100.0, 1.005

    def __init__(self) -> None:
        size = int(np.ceil(np.log(1e13 / self._LOW_NS) / np.log(self._RATIO))) + 1
        self._counts: NDArray[np.int64] = np.zeros(size, np.int64)
        self._edges_ms: Floats = np.asarray(self._LOW_NS * self._RATIO ** np.arange(size + 1) / 1e6)
        self.total = 0

    def add(self, duration_ns: Sequence[int]) -> None:
        """Count durations."""
        if not duration_ns:
            return
        values = np.maximum(np.asarray(duration_ns, np.float64), self._LOW_NS)
        index = (np.log(values / self._LOW_NS) / np.log(self._RATIO)).astype(np.int64)
        np.add.at(self._counts, np.minimum(index, self._counts.size - 1), 1)
        self.total += len(duration_ns)

    def remove(self, duration_ns: Sequence[int]) -> None:
        """Take durations back that were added before: their slice does not count after all."""
        before = self._counts.copy()
        self.add(duration_ns)
        self._counts, self.total = 2 * before - self._counts, self.total - 2 * len(duration_ns)

    def quantile_ms(self, fraction: float) -> float | None:
        """The duration below which this share of the steps lies, exact to half a percent; None when empty."""
        if self.total == 0:
            return None
        cumulated = np.cumsum(self._counts)
        index = int(np.searchsorted(cumulated, fraction * self.total, side="left"))
        edges = self._edges_ms
        return float(np.sqrt(edges[index] * edges[index + 1]))

    def binned(self, edges_ms: Floats) -> Floats:
        """Shares of all steps in linear bins; what lies outside `edges_ms` is counted in the first or last bin."""
        if self.total == 0:
            return np.zeros(edges_ms.size - 1)
        edges = self._edges_ms
        middles = np.sqrt(edges[:-1] * edges[1:])
        index = np.clip(np.searchsorted(edges_ms, middles, side="right") - 1, 0, edges_ms.size - 2)
        return np.asarray(np.bincount(index, self._counts, minlength=edges_ms.size - 1) / self.total)


class TimeSeries:
    """Samples of one sensor over time; neighbours are averaged when there are too many."""

    def __init__(self, capacity: int = 2048) -> None:
        self._capacity = capacity
        self._time_ns: list[float] = []
        self._values: list[float] = []
        self.last: float | None = None
        self.peak: float | None = None

    def add(self, time_ns: int, value: float | None) -> None:
        """Add a sample; None (unknown) is skipped."""
        if value is None:
            return
        self.last = value
        self.peak = value if self.peak is None else max(self.peak, value)
        self._time_ns.append(float(time_ns))
        self._values.append(value)
        if len(self._values) >= self._capacity:
            half = self._capacity // 2 * 2
            self._time_ns = [(a + b) / 2 for a, b in zip(self._time_ns[0:half:2], self._time_ns[1:half:2], strict=True)]
            self._values = [(a + b) / 2 for a, b in zip(self._values[0:half:2], self._values[1:half:2], strict=True)]

    def points(self, zero_ns: int) -> tuple[Floats, Floats]:
        """Seconds since `zero_ns` and values."""
        return (floats(self._time_ns) - zero_ns) / NS_PER_S, floats(self._values)
