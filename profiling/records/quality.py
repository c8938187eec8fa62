"""A candidate's output beside the baseline's, as a whole and by module, and the scales behind it."""

from typing import Literal

import msgspec

from gptscope.profiling.records.message import Message


class PromptComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt continued greedily by the baseline and by a candidate."""

    prompt: str
    """The prompt's text."""
    baseline: tuple[str, ...]
    """Text of each token of the baseline's continuation."""
    candidate: tuple[str, ...]
    equal: int
    """Tokens before the first difference."""
    outcome: Literal["equal", "near_tie", "changed"]
    margins: tuple[float, ...] = ()
    """The baseline's gap between its best two logits at each of its own tokens; -1.0 where unknown."""
    forced_gaps: tuple[float, ...] = ()
    """The baseline reads the candidate's text: its best logit minus that of the candidate's token, at each of the
    candidate's tokens (0: the baseline would have said the same); -1.0 where unknown, empty when it was not asked."""


class Quality(Message, frozen=True):
    """A candidate's output beside the baseline's, on the same text and prompts. None = n/a, reason in `unknown`."""

    run_id: str
    baseline_run_id: str
    tokens: int
    perplexity: float | None
    perplexity_error: float | None
    """Standard error."""
    baseline_perplexity: float | None
    baseline_perplexity_error: float | None
    kl_mean: float | None
    kl_median: float | None
    kl_p99: float | None
    top1_agreement: float | None
    """0 to 1."""
    greedy_tokens: int
    greedy_equal: int
    """Greedy tokens equal to the baseline's before the first difference, over all prompts."""
    near_ties: int
    """Prompts whose first difference is a near-tie of the baseline (not a real change)."""
    real_changes: int
    first_divergence: str | None = None
    """Baseline text and candidate text around the first real change."""
    text: str = ""
    """Which text was evaluated."""
    unknown: dict[str, str] = msgspec.field(default_factory=dict)
    perplexity_change: float | None = None
    """Perplexity minus the baseline's."""
    perplexity_change_error: float | None = None
    """Standard error of the change, paired window by window (far smaller than the two errors above)."""
    near_tie_margin: float | None = None
    """Top-2 logit gap of the baseline below which a first difference counts as a near-tie."""
    broken_positions: int = 0
    """Positions where the candidate's logits hold NaN or infinity; they are left out of every figure above."""
    logit_sqnr_db: float | None = None
    """Signal to quantization noise of all logits, each position's mean taken off: 10 log10(sum b² / sum (b - c)²).
    None also when there is no noise at all."""
    logit_cosine: float | None = None
    """Mean over positions of the cosine between both models' logits, each position's mean taken off."""
    forced_tokens: int = 0
    """The candidate's greedy tokens that the baseline judged while reading the candidate's own text."""
    forced_near_ties: int = 0
    """Of these: not the baseline's choice, but within `near_tie_margin` of it."""
    forced_changes: int = 0
    """Of these: tokens that the baseline finds really worse."""
    prompts: tuple[PromptComparison, ...] = ()
    text_tokens: int = 0
    """Tokens of the whole text, of which the first `tokens` and the prompts were used; 0: unknown."""


class ModuleError(msgspec.Struct, frozen=True, kw_only=True):
    """What one module of the candidate costs and saves while all others stay as in the reference."""

    module: str
    """Path in the model, such as `blocks.3.mlp.down`."""
    layer: int | None
    """None outside the layers (`lm_head`)."""
    part: str
    """The path within its layer, such as `mlp.down`."""
    parameters: int
    kl_mean: float | None
    """KL divergence of the whole model's next-token distributions to the reference's, nats; None: broken output."""
    logit_sqnr_db: float | None
    """Of the whole model's logits, as in `Quality`; None also when nothing changed."""
    output_sqnr_db: float | None
    """Of this module's own output for the reference's input; None also when nothing changed."""
    output_cosine: float | None
    reference_us: float
    """Time of one call on `LayerErrors.timed_tokens` tokens, all modules called in turn as in a real step."""
    candidate_us: float


class LayerErrors(Message, frozen=True):
    """The layer map: error added and time saved by each module of a candidate, one at a time."""

    run_id: str
    baseline_run_id: str
    modules: tuple[ModuleError, ...]
    """In the model's order."""
    stream_sqnr_db: tuple[float | None, ...]
    """Signal to error of the residual stream behind each layer, with all of the candidate's modules together."""
    tokens: int
    """Evaluated, of the evaluation text."""
    timed_tokens: int
    """Rows of each timed call: the batch when decoding, all prompt tokens else."""
    kl_all: float | None
    """KL divergence with all of the candidate's modules together; single ones do not add up to it exactly."""
    reference: str
    """What the modules are compared with, for people."""
    text: str = ""
    seconds: float = 0.0
    """How long the map took."""


class ScaleSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor of one layer over its steps (training) or calls (inference); long ones have steps left out."""

    layer: str
    tensor: Literal["input", "weight", "grad"]
    largest: float
    """The number format's largest value: where amax times scale is above it, values were clipped."""
    steps: tuple[int, ...]
    amax: tuple[float, ...]
    """Largest magnitude."""
    scale: tuple[float, ...]
    """What values were multiplied by before they were rounded; the smallest where rows or blocks have their own."""


class SeedLosses(Message, frozen=True):
    """An untimed training of the variant with another seed: as many steps as the warm-up and the measurement."""

    run_id: str
    seed: int
    loss: tuple[float, ...]


class ScaleHistory(Message, frozen=True):
    """How large the tensors of narrow layers were, and their scales, since the run's last record of this kind."""

    run_id: str
    recipe: str
    series: tuple[ScaleSeries, ...]
