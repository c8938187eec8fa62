"""Tokens per second, defined once.

* Decode: generated tokens of all sequences / wall time of the decode steps. Prefill is apart: TTFT and prompt tokens/s.
* Training: batch x sequence length / step time.
* Prefill: prompt tokens of all sequences / prefill time.

The wall time of a slice's decode steps runs from the start of the first to the end of the last, so that time lost
between two steps is not hidden.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gptscope.profiling.metrics.slices import Slice, Steps
from gptscope.profiling.metrics.statistics import Estimate, ratio_interval
from gptscope.profiling.records import StepKind

NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class Work:
    """Tokens and seconds of one kind of step, one entry per slice."""

    tokens: tuple[int, ...]
    seconds: tuple[float, ...]
    between_steps: float
    """Share of the time that lay between steps, 0 to 1 (decode only; 0 for other kinds)."""

    @property
    def total_seconds(self) -> float:
        """Over all slices."""
        return float(sum(self.seconds))


def work_done(slices: Sequence[Slice], kind: StepKind) -> Work:
    """Add up each slice's tokens and seconds; slices without such steps are left out."""
    tokens: list[int] = []
    seconds: list[float] = []
    inside = 0.0
    for one in slices:
        steps = one.steps(kind)
        if not steps.count:
            continue
        own_s = float(steps.duration_ns.sum()) / NS_PER_S
        wall_s = _decode_wall_s(one.steps("prefill"), steps) if kind == "decode" else own_s
        tokens.append(int(steps.tokens.sum()))
        seconds.append(wall_s)
        inside += own_s
    total = sum(seconds)
    return Work(tuple(tokens), tuple(seconds), max(0.0, 1.0 - inside / total) if total > 0 else 0.0)


def _decode_wall_s(prefill: Steps, decode: Steps) -> float:
    """Start of the first decode step to the end of the last, less any prefill that lay between them."""
    start, end = int(decode.start_ns[0]), int(decode.end_ns[-1])
    between = np.minimum(prefill.end_ns, end) - np.maximum(prefill.start_ns, start)
    return (end - start - int(np.maximum(between, 0).sum())) / NS_PER_S


def tokens_per_second(work: Work, *, with_interval: bool = True) -> Estimate | None:
    """All tokens over all seconds with the 95 % interval over slices; None when nothing was measured."""
    if work.total_seconds <= 0:
        return None
    interval = ratio_interval(work.tokens, work.seconds) if with_interval else None
    low, high = interval if interval is not None else (None, None)
    return Estimate(value=sum(work.tokens) / work.total_seconds, low=low, high=high)
