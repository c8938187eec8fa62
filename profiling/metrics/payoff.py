"""Compilation costs seconds before the first step: after how many tokens is that won back?"""

from dataclasses import dataclass

from gptscope.profiling.metrics.run_summary import RunSummary
from gptscope.profiling.metrics.statistics import Estimate


@dataclass(frozen=True, slots=True)
class Payoff:
    """What compiling cost and when it is won back."""

    tokens: float | None
    """None: never, because the candidate is not faster."""
    sentence: str


def payoff(baseline: RunSummary, candidate: RunSummary, speedup: Estimate | None = None) -> Payoff | None:
    """When the candidate's longer compilation is won back by its speed; None when it compiled no longer.

    Seconds of compiling over seconds saved per token; tokens of all sequences count.

    Args:
        baseline: The baseline's numbers.
        candidate: The candidate's.
        speedup: From pairs of neighbouring slices, if there are enough of them; the plain ratio of both speeds is more
            easily spoiled by what else the machine did.
    """
    if not candidate.compile_s or baseline.tokens_per_s is None or candidate.tokens_per_s is None:
        return None
    extra_s = candidate.compile_s - (baseline.compile_s or 0.0)
    ratio = speedup.value if speedup is not None else candidate.tokens_per_s.value / baseline.tokens_per_s.value
    saved_s = (1.0 - 1.0 / ratio) / baseline.tokens_per_s.value
    if extra_s <= 0:
        return None
    breaks = f"{candidate.graph_breaks} graph break{'' if candidate.graph_breaks == 1 else 's'}"
    regions = f"{candidate.compiled_regions} region{'' if candidate.compiled_regions == 1 else 's'}"
    cost = f"Compiling took {extra_s:.1f} s longer ({regions}, {breaks})"
    if saved_s <= 0 or (speedup is not None and speedup.low is not None and speedup.low <= 1.0):
        return Payoff(None, f"{cost} and is not won back: a token takes no less time.")
    return Payoff(extra_s / saved_s, f"{cost}, which is won back after {extra_s / saved_s:.0f} tokens.")
