"""The typed result of comparing a candidate with its baseline."""

from typing import Literal

import msgspec

from gptscope.profiling.metrics.statistics import Estimate
from gptscope.profiling.metrics.waterfall import Waterfall

VerdictKind = Literal[
    "faster_same_output",
    "faster_output_changed",
    "faster_output_unknown",  # the output was not compared (random weights, no tokenizer, training, not asked for)
    "no_real_difference",
    "slower",
    "not_comparable",
]
TITLES: dict[VerdictKind, str] = {
    "faster_same_output": "Faster, same output",
    "faster_output_changed": "Faster, output changed",
    "faster_output_unknown": "Faster, output not compared",
    "no_real_difference": "No real difference",
    "slower": "Slower",
    "not_comparable": "Not comparable",
}


class PairRatio(msgspec.Struct, frozen=True, kw_only=True):
    """Two slices that were measured next to each other."""

    pair: int
    baseline_ms: float
    """Median step."""
    candidate_ms: float
    disturbed: bool

    @property
    def speedup(self) -> float:
        """Above 1: the candidate is faster."""
        return self.baseline_ms / self.candidate_ms


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Candidate over baseline. None = not known; the sentence or a warning says why."""

    baseline_run_id: str | None
    candidate_run_id: str | None
    kind: VerdictKind
    title: str
    sentence: str
    """One plain sentence with the number behind it."""
    speedup: Estimate | None
    """Median over pairs of the ratio of median step times, with its bootstrap 95 % interval."""
    plain_ratio: float | None
    """Ratio of the two runs' median steps when there are no pairs: measured at different times, so no interval."""
    pairs: tuple[PairRatio, ...]
    output_changed: bool | None
    """None: not compared."""
    output_sentence: str
    by_category: Waterfall | None
    by_module: Waterfall | None
    warnings: tuple[str, ...]
