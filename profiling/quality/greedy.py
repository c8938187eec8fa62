"""Greedy continuations of the same prompt: equal, parted at a near-tie, or really changed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from gptscope.profiling.records import ForcedGaps, GreedyTokens, PromptComparison

NOISE_MULTIPLE = 4.0
"""A gap within four standard deviations of the candidate's own rounding noise can be turned over by it."""
LARGEST_TIE = 0.125
"""Logits. At most this gap is a tie, however noisy the candidate: the odds of the two tokens differ by e^0.125 = 1.13,
and it is the distance of neighbouring bfloat16 numbers between 16 and 32, where logits lie. Without this bound a
badly quantised model, whose noise is large, could pass off every change as a tie."""
SMALLEST_TIE = 1e-5
"""Logits. Two orders of summation in FP32 differ by this much at logits of about 30."""
_CONTEXT_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Continuation:
    """How one candidate's continuation relates to the baseline's."""

    tokens: int
    equal: int
    """Tokens before the first difference."""
    outcome: Literal["equal", "near_tie", "changed"]
    margin: float | None
    """How far the baseline finds the candidate's token below its own at the first difference, in logits; without
    teacher-forcing the gap between its best two, which is at most that. None when there is no difference."""
    sentence: str | None
    """Both texts around the first difference."""


def near_tie_margin(gap_shift_R: npt.NDArray[np.float64]) -> float:
    """Gap of the baseline's best two logits below which a different greedy token is no real change.

    At the first difference both models have read the same tokens, so the candidate chose another token because its
    rounding moved the gap between the best two by more than the gap itself. How far it usually moves that gap is seen
    on the evaluation text: σ = median |shift| / 0.6745 (robust against the few positions where more went wrong).

    Args:
        gap_shift_R: |shift| of that gap at each evaluated position, in logits; may be empty.

    Returns:
        `NOISE_MULTIPLE` σ, kept between `SMALLEST_TIE` and `LARGEST_TIE`; `SMALLEST_TIE` without positions.
    """
    sigma = float(np.median(gap_shift_R)) / 0.6745 if len(gap_shift_R) else 0.0
    return min(max(NOISE_MULTIPLE * sigma, SMALLEST_TIE), LARGEST_TIE)


def compare_continuations(
    baseline: GreedyTokens, candidate: GreedyTokens, tie_margin: float, forced: ForcedGaps | None = None
) -> Continuation:
    """Find the first token where the candidate's greedy text leaves the baseline's.

    A candidate's other token is a near-tie only if the baseline, reading the same text, finds it nearly as good as its
    own: the baseline's best two may be close together and the candidate may still say a third one.

    Args:
        baseline: The baseline's continuation with its top-2 margins.
        candidate: The candidate's continuation of the same prompt.
        tie_margin: See `near_tie_margin`.
        forced: What the baseline finds of the candidate's tokens; None: it was not asked.

    Raises:
        ValueError: The continuations belong to different prompts.
    """
    if baseline.prompt != candidate.prompt:
        raise ValueError(f"Continuations of prompts {baseline.prompt} and {candidate.prompt} cannot be compared.")
    tokens = min(len(baseline.token_ids), len(candidate.token_ids))
    pairs = zip(baseline.token_ids, candidate.token_ids, strict=False)
    equal = next((i for i, (ours, theirs) in enumerate(pairs) if ours != theirs), tokens)
    if equal == tokens:
        return Continuation(tokens, equal, "equal", None, None)
    margin = baseline.margins[equal] if forced is None else forced.gaps[equal]
    before = "".join(baseline.texts[max(0, equal - _CONTEXT_TOKENS) : equal])
    sentence = (
        f"Prompt {baseline.prompt + 1}, token {equal + 1}: …{before} | baseline: {_after(baseline, equal)!r}"
        f" | candidate: {_after(candidate, equal)!r}"
    )
    tie = 0.0 <= margin < tie_margin  # a negative margin is an unknown one
    return Continuation(tokens, equal, "near_tie" if tie else "changed", margin, sentence)


@dataclass(frozen=True, slots=True)
class Forced:
    """The candidate's tokens as the baseline judges them, all prompts together."""

    tokens: int
    near_ties: int
    changes: int


def judge_forced(gaps: Iterable[ForcedGaps], tie_margin: float) -> Forced:
    """Count the tokens that the baseline would not have said: nearly as good, or really worse; unknown gaps do not."""
    known = np.array([gap for one in gaps for gap in one.gaps if gap >= 0.0])
    off = known > 0.0
    return Forced(len(known), int((off & (known < tie_margin)).sum()), int((known >= tie_margin).sum()))


def prompt_comparison(
    baseline: GreedyTokens, candidate: GreedyTokens, forced: ForcedGaps | None, found: Continuation
) -> PromptComparison:
    """Both continuations side by side, for people."""
    return PromptComparison(
        prompt=baseline.prompt_text,
        baseline=baseline.texts,
        candidate=candidate.texts,
        equal=found.equal,
        outcome=found.outcome,
        margins=baseline.margins,
        forced_gaps=forced.gaps if forced is not None else (),
    )


def _after(tokens: GreedyTokens, start: int) -> str:
    return "".join(tokens.texts[start : start + _CONTEXT_TOKENS])
