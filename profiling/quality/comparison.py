"""Gather one candidate's comparison with the baseline, piece by piece, into a `Quality` record."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gptscope.profiling.quality.greedy import (
    Continuation,
    compare_continuations,
    judge_forced,
    near_tie_margin,
    prompt_comparison,
)
from gptscope.profiling.quality.perplexity import Estimate, perplexity, perplexity_change
from gptscope.profiling.quality.rows import LogitWindow, RowFigures, compare_rows, decode_rows
from gptscope.profiling.records import ForcedGaps, GreedyTokens, Logits, ModelInfo, Quality

Float64 = npt.NDArray[np.float64]


def why_not_evaluated(model: ModelInfo, workload: str) -> str | None:
    """A sentence why this model's output cannot be judged, None when it can.

    Args:
        model: The loaded model.
        workload: `train`, `prefill`, `decode` or `generate`.
    """
    if model.random_weights:
        return (
            f"Output quality was not evaluated: {model.name} has random weights, which say nothing. "
            "Take a trained model, such as 'bundled'."
        )
    if not model.has_tokenizer:
        return (
            f"Output quality was not evaluated: {model.name} has no tokenizer, so it cannot read the evaluation text."
        )
    if workload == "train":
        return "Output quality was not evaluated: training changes the model; compare the loss curves instead."
    return None


class QualityComparison:
    """Accumulates what the baseline and one candidate say about the same text.

    Feed every piece of every window, then every prompt, then ask for `result`. The baseline's logits are only looked
    at while a piece is compared, so memory holds one `LogitWindow` of the baseline and one piece of the candidate.
    """

    def __init__(self, run_id: str, baseline_run_id: str, text: str = "") -> None:
        """Begin with nothing compared.

        Args:
            run_id: The candidate's run.
            baseline_run_id: The baseline's run.
            text: Which text is evaluated, for people.
        """
        self._run_id, self._baseline_run_id, self._text = run_id, baseline_run_id, text
        self._by_window: dict[int, list[RowFigures]] = {}
        self._prompts: list[tuple[GreedyTokens, GreedyTokens, ForcedGaps | None]] = []
        self._text_tokens = 0

    def add_piece(self, baseline: LogitWindow, piece: Logits, payload: bytes) -> None:
        """Compare one piece of the candidate's logits with the baseline's window.

        Args:
            baseline: The same window of the baseline, complete.
            piece: The candidate's piece.
            payload: Its logits, float32 little-endian.

        Raises:
            ValueError: The pieces do not belong together or are damaged.
        """
        candidate_RV = decode_rows(piece, payload)
        baseline_RV = baseline.take(piece.offset_row, len(candidate_RV))
        figures = compare_rows(baseline_RV, candidate_RV, np.array(piece.targets, dtype=np.int64))
        self._text_tokens = piece.text_tokens
        self._by_window.setdefault(piece.window, []).append(figures)

    def add_prompt(self, baseline: GreedyTokens, candidate: GreedyTokens, forced: ForcedGaps | None = None) -> None:
        """Keep the two continuations of one prompt.

        Args:
            baseline: The baseline's.
            candidate: The candidate's.
            forced: What the baseline finds of the candidate's tokens; None: it was not asked.
        """
        self._prompts.append((baseline, candidate, forced))

    def result(self) -> Quality:
        """Everything compared so far as one record; what the data cannot give is None with its reason."""
        figures = [figure for window in self._by_window.values() for figure in window]
        baseline_nll = self._nll("baseline_nll")
        candidate_nll = self._nll("candidate_nll")
        kl_R = _join([figure.kl for figure in figures])
        same_R = _join([figure.same_top1.astype(np.float64) for figure in figures])
        tie_margin = near_tie_margin(_join([figure.gap_shift for figure in figures]))
        greedy = [compare_continuations(ours, theirs, tie_margin, gaps) for ours, theirs, gaps in self._prompts]
        forced = judge_forced([gaps for _, _, gaps in self._prompts if gaps is not None], tie_margin)
        sides = zip(self._prompts, greedy, strict=True)
        signal, noise = (float(_join([getattr(one, side) for one in figures]).sum()) for side in ("signal", "noise"))
        cosine_R = _join([figure.cosine for figure in figures])
        ours, theirs = perplexity(baseline_nll), perplexity(candidate_nll)
        change = perplexity_change(baseline_nll, candidate_nll)
        broken = sum(figure.broken_candidate for figure in figures)
        broken_baseline = sum(figure.broken_baseline for figure in figures)
        return Quality(
            run_id=self._run_id,
            baseline_run_id=self._baseline_run_id,
            tokens=len(kl_R),
            perplexity=theirs.value,
            perplexity_error=theirs.error,
            baseline_perplexity=ours.value,
            baseline_perplexity_error=ours.error,
            perplexity_change=change.value,
            perplexity_change_error=change.error,
            kl_mean=float(kl_R.mean()) if len(kl_R) else None,
            kl_median=float(np.median(kl_R)) if len(kl_R) else None,
            kl_p99=float(np.quantile(kl_R, 0.99)) if len(kl_R) else None,
            top1_agreement=float(same_R.mean()) if len(same_R) else None,
            greedy_tokens=sum(one.tokens for one in greedy),
            greedy_equal=sum(one.equal for one in greedy),
            near_ties=sum(one.outcome == "near_tie" for one in greedy),
            real_changes=sum(one.outcome == "changed" for one in greedy),
            near_tie_margin=tie_margin,
            first_divergence=_first_change(greedy),
            broken_positions=broken,
            text=self._text,
            text_tokens=self._text_tokens,
            logit_sqnr_db=10.0 * math.log10(signal / noise) if signal > 0.0 and noise > 0.0 else None,
            logit_cosine=float(cosine_R.mean()) if len(cosine_R) else None,
            forced_tokens=forced.tokens,
            forced_near_ties=forced.near_ties,
            forced_changes=forced.changes,
            prompts=tuple(prompt_comparison(*prompt, found) for prompt, found in sides),
            unknown=_reasons(len(kl_R), (ours, theirs, change), broken, broken_baseline)
            | _signal_reason(len(kl_R), noise)
            | _forced_reason(len(self._prompts), forced.tokens),
        )

    def _nll(self, field: str) -> list[Float64]:
        return [_join([getattr(figure, field) for figure in window]) for _, window in sorted(self._by_window.items())]


def _signal_reason(tokens: int, noise: float) -> dict[str, str]:
    if tokens and noise == 0.0:
        return {"logit_sqnr_db": "the logits are equal bit by bit, so there is no noise."}
    return {} if tokens else {"logit_sqnr_db": "no text was evaluated."}


def _forced_reason(prompts: int, tokens: int) -> dict[str, str]:
    if prompts and not tokens:
        return {"forced_tokens": "the baseline was not loaded any more when the candidate had spoken."}
    return {}


def _join(parts: Sequence[Float64]) -> Float64:
    return np.concatenate(parts) if parts else np.empty(0)


def _first_change(greedy: Sequence[Continuation]) -> str | None:
    return next((one.sentence for one in greedy if one.outcome == "changed"), None)


def _reasons(
    tokens: int, estimates: tuple[Estimate, Estimate, Estimate], broken: int, broken_baseline: int
) -> dict[str, str]:
    """Why figures are None or rest on fewer positions, by field."""
    reasons: dict[str, str] = {}
    fields = ("baseline_perplexity", "perplexity", "perplexity_change")
    if tokens == 0:
        side = "candidate" if broken else "baseline" if broken_baseline else ""
        why = f"every position's logits of the {side} hold NaN or infinity" if side else "no text was evaluated"
        reasons.update(dict.fromkeys((*fields, "kl_mean", "kl_median", "kl_p99", "top1_agreement"), f"{why}."))
    for field, estimate in zip(fields, estimates, strict=True):
        if tokens and estimate.value is None:
            reasons[field] = "the model is so surprised by the text that its perplexity exceeds e^300."
        if estimate.error is None:
            reasons[f"{field}_error"] = reasons.get(field, "one block of text gives no standard error.")
    for name, count in (("broken_positions", broken), ("broken_baseline", broken_baseline)):
        if count:
            side = "candidate" if name == "broken_positions" else "baseline"
            reasons[name] = f"{count} positions where the {side}'s logits hold NaN or infinity are left out."
    return reasons
