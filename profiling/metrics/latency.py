"""Latency of generation: TTFT, ITL, TPOT, and step times.

Definitions as vLLM and NVIDIA's GenAI-Perf documentation use them:

* TTFT, time to first token: the prefill step, which ends with the first token.
* ITL, inter-token latency: from the end of one token to the end of the next, per sequence. It includes whatever lies
  between two steps, because a reader of the text waits for that too. Tokens that come together (speculative decoding)
  share the time since the step before evenly.
* TPOT, time per output token: (time of the last token - time of the first) / (tokens per sequence - 1).
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from gptscope.profiling.metrics.slices import Slice, Steps
from gptscope.profiling.metrics.statistics import (
    Floats,
    clustered_interval,
    interquartile_range,
    median,
    median_absolute_deviation,
    quantile,
)
from gptscope.profiling.records import StepKind

NS_PER_MS = 1e6


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds of many steps."""

    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    iqr_ms: float
    mad_ms: float
    low_ms: float | None
    """95 % interval of the median, resampling slices; None with fewer than three slices."""
    high_ms: float | None


def describe(clusters_ms: Sequence[Floats], *, with_interval: bool = True) -> Distribution | None:
    """Percentiles, spread and the median's interval of times that come slice by slice; None without any time."""
    clusters = [c for c in clusters_ms if c.size]
    if not clusters:
        return None
    pooled = np.concatenate(clusters)
    interval = clustered_interval(clusters, _fast_median) if with_interval else None
    low, high = interval if interval is not None else (None, None)
    return Distribution(
        count=int(pooled.size),
        p50_ms=median(pooled),
        p95_ms=quantile(pooled, 0.95),
        p99_ms=quantile(pooled, 0.99),
        iqr_ms=interquartile_range(pooled),
        mad_ms=median_absolute_deviation(pooled),
        low_ms=low,
        high_ms=high,
    )


def _fast_median(values: Floats) -> float:
    return float(np.median(values))


def step_times_ms(slices: Sequence[Slice], kind: StepKind) -> list[Floats]:
    """Duration of every step of one kind, one array per slice."""
    return [s.steps(kind).duration_ns / NS_PER_MS for s in slices]


def inter_token_latencies_ms(slices: Sequence[Slice]) -> list[Floats]:
    """ITL of every token but the first of each sequence, one array per slice.

    A decode slice is prefill followed by decode steps. The first decode step's latency counts from the end of the
    prefill that came before it; without a prefill (nothing to count from) it is the step's own duration.
    """
    return [_token_gaps_ms(s.steps("prefill"), s.steps("decode")) for s in slices]


def _token_gaps_ms(prefill: Steps, decode: Steps) -> Floats:
    if not decode.count:
        return np.empty(0)
    ends = np.sort(np.concatenate((prefill.end_ns, decode.end_ns)))
    previous = np.searchsorted(ends, decode.end_ns, side="left") - 1
    # Counting from a prefill's end where one came last: its own time is TTFT, not ITL.
    gaps = decode.end_ns - np.where(previous >= 0, ends[np.maximum(previous, 0)], decode.start_ns)
    if decode.drafted.size:
        return np.repeat(gaps / decode.tokens, decode.tokens) / NS_PER_MS
    return gaps / NS_PER_MS


def time_per_output_token_ms(slices: Sequence[Slice]) -> float | None:
    """TPOT: median over slices of the mean time of the tokens after the first; None without a decode step."""
    means = [float(gaps.mean()) for gaps in inter_token_latencies_ms(slices) if gaps.size]
    return median(means) if means else None
