"""How good guesses were: accepted tokens and tokens per step of speculative decoding."""

from collections.abc import Sequence
from dataclasses import dataclass

from gptscope.profiling.metrics.slices import Slice, joined


@dataclass(frozen=True, slots=True)
class Guesses:
    """All counted decode steps together."""

    acceptance: float | None
    """Guesses that were right over all guesses; None when nothing was guessed."""
    tokens_per_step: float


def guesses(slices: Sequence[Slice]) -> Guesses | None:
    """Of one text (guessing works on one sequence at a time); None without speculation."""
    steps = joined(slices, "decode")
    if not steps.drafted.size:
        return None
    drafted, accepted = int(steps.drafted.sum()), int((steps.tokens - 1).sum())
    return Guesses(accepted / drafted if drafted else None, float(steps.tokens.mean()))
