"""Quality figures against scipy and against an independent perplexity; near-ties told apart from real changes."""

import math

import numpy as np
import pytest
import scipy.spatial
import scipy.stats

from gptscope.profiling.quality.comparison import QualityComparison, why_not_evaluated
from gptscope.profiling.quality.greedy import (
    LARGEST_TIE,
    SMALLEST_TIE,
    compare_continuations,
    judge_forced,
    near_tie_margin,
)
from gptscope.profiling.quality.perplexity import blocks, perplexity, perplexity_change
from gptscope.profiling.quality.rows import LogitWindow, compare_rows
from gptscope.profiling.records import ForcedGaps, GreedyTokens, Logits, ModelInfo


def piece(rows: np.ndarray, targets: np.ndarray, window: int = 0, offset: int = 0, windows: int = 1) -> Logits:
    return Logits(
        window=window, windows=windows, vocab_size=rows.shape[1], targets=tuple(map(int, targets)), offset_row=offset
    )


def compare(baseline: list[np.ndarray], candidate: list[np.ndarray], targets: list[np.ndarray], step: int = 7):
    """Feed windows in pieces of `step` rows, as two workers would send them."""
    comparison = QualityComparison("cand", "base", "a text")
    for number, (ours, theirs, wanted) in enumerate(zip(baseline, candidate, targets, strict=True)):
        window = LogitWindow()
        for start in range(0, len(ours), step + 2):  # the baseline's pieces are cut elsewhere
            rows = ours[start : start + step + 2].astype("<f4")
            window.add(piece(rows, wanted[start : start + step + 2], number, start), rows.tobytes())
        for start in range(0, len(theirs), step):
            rows = theirs[start : start + step].astype("<f4")
            comparison.add_piece(window, piece(rows, wanted[start : start + step], number, start), rows.tobytes())
    return comparison


@pytest.fixture
def text():
    random = np.random.default_rng(7)
    windows, rows, vocabulary = 9, 40, 31
    baseline = [random.normal(0, 2, (rows, vocabulary)).astype(np.float32) for _ in range(windows)]
    candidate = [rows + random.normal(0, 0.3, rows.shape).astype(np.float32) for rows in baseline]
    targets = [random.integers(0, vocabulary, rows) for _ in range(windows)]
    return baseline, candidate, targets


def test_divergence_agreement_and_perplexity_match_scipy(text):
    targets = text[2]
    result = compare(*text).result()
    p, q = (np.concatenate([scipy.special.softmax(rows.astype(float), axis=1) for rows in side]) for side in text[:2])
    kl = scipy.stats.entropy(p, q, axis=1)
    wanted = np.concatenate(targets)
    rows = np.arange(len(wanted))
    assert result.tokens == len(wanted)
    assert result.kl_mean == pytest.approx(kl.mean(), rel=1e-9)
    assert result.kl_median == pytest.approx(np.median(kl), rel=1e-9)
    assert result.kl_p99 == pytest.approx(np.quantile(kl, 0.99), rel=1e-9)
    assert result.top1_agreement == pytest.approx((p.argmax(1) == q.argmax(1)).mean())
    assert result.baseline_perplexity == pytest.approx(scipy.stats.gmean(1 / p[rows, wanted]), rel=1e-9)
    assert result.perplexity == pytest.approx(scipy.stats.gmean(1 / q[rows, wanted]), rel=1e-9)
    assert result.perplexity_change == pytest.approx(result.perplexity - result.baseline_perplexity, rel=1e-6)
    assert result.perplexity_change_error < result.perplexity_error
    assert result.unknown == {}


def test_the_same_logits_have_no_divergence_at_all(text):
    baseline, _, targets = text
    result = compare(baseline, baseline, targets).result()
    assert (result.kl_mean, result.kl_p99, result.top1_agreement) == (0.0, 0.0, 1.0)
    assert (result.perplexity_change, result.perplexity_change_error) == (0.0, 0.0)


def test_shifting_all_logits_of_a_position_changes_nothing(text):
    baseline, _, targets = text
    shifted = [(rows + np.linspace(-5, 5, len(rows))[:, None]).astype(np.float32) for rows in baseline]
    result = compare(baseline, shifted, targets).result()
    assert result.kl_mean == pytest.approx(0.0, abs=1e-10)
    assert result.perplexity == pytest.approx(result.baseline_perplexity, rel=1e-6)


def test_the_way_pieces_are_cut_does_not_matter(text):
    assert compare(*text, step=3).result() == compare(*text, step=40).result()


def test_positions_with_nan_or_infinity_are_left_out_and_counted(text):
    baseline, candidate, targets = text
    broken = [rows.copy() for rows in candidate]
    broken[0][5, 3] = np.nan
    broken[2][7, 0] = np.inf
    result = compare(baseline, broken, targets).result()
    assert result.broken_positions == 2
    assert result.tokens == 9 * 40 - 2
    assert "2 positions" in result.unknown["broken_positions"]
    assert math.isfinite(result.kl_mean)


def test_a_candidate_that_is_nan_everywhere_gets_reasons_instead_of_numbers(text):
    baseline, candidate, targets = text
    result = compare(baseline, [rows * np.nan for rows in candidate], targets).result()
    assert result.tokens == 0
    for field in ("perplexity", "kl_mean", "top1_agreement", "perplexity_change"):
        assert getattr(result, field) is None
        assert "NaN" in result.unknown[field]


def test_different_vocabularies_are_refused():
    with pytest.raises(ValueError, match=r"5 logits .* 6"):
        compare_rows(np.zeros((2, 5), "f4"), np.zeros((2, 6), "f4"), np.zeros(2, np.int64))


def test_missing_baseline_rows_are_refused():
    window = LogitWindow()
    rows = np.zeros((3, 4), "<f4")
    window.add(piece(rows, np.zeros(3)), rows.tobytes())
    with pytest.raises(ValueError, match="positions 2 to 4"):
        window.take(2, 3)


def test_a_payload_of_the_wrong_size_is_refused():
    rows = np.zeros((3, 4), "<f4")
    with pytest.raises(ValueError, match=r"47 bytes .*48 bytes expected"):
        LogitWindow().add(piece(rows, np.zeros(3)), rows.tobytes()[:-1])


def test_standard_error_covers_the_truth_when_tokens_come_in_correlated_runs():
    """Windows share a common surprise; a per-token error would be far too small. Truth lies inside 2 errors ~95 %."""
    random = np.random.default_rng(3)
    hits, trials = 0, 400
    for _ in range(trials):
        windows = [2.0 + random.normal(0, 0.2) + random.normal(0, 0.5, 128) for _ in range(16)]
        estimate = perplexity(windows)
        hits += abs(estimate.value - math.exp(2.0)) < 2 * estimate.error
        naive = estimate.value * np.concatenate(windows).std() / math.sqrt(16 * 128)
        assert estimate.error > 1.5 * naive
    assert 0.90 < hits / trials < 0.98


def test_paired_error_covers_the_true_change():
    random = np.random.default_rng(4)
    hits, trials = 0, 400
    for _ in range(trials):
        ours = [2.0 + random.normal(0, 0.2, 64) for _ in range(16)]
        theirs = [nll + random.normal(0.05, 0.02) + random.normal(0, 0.02, 64) for nll in ours]
        change = perplexity_change(ours, theirs)
        hits += abs(change.value - (math.exp(2.05) - math.exp(2.0))) < 2 * change.error
    assert 0.90 < hits / trials < 0.98


def test_few_windows_are_cut_into_blocks_and_one_token_has_no_error():
    assert [len(block) for block in blocks([np.zeros(256)] * 2)] == [64] * 8
    assert len(blocks([np.zeros(256)] * 8)) == 8
    assert perplexity([np.array([0.5])]).error is None
    assert perplexity([]).value is None


def test_overflowing_perplexity_is_a_reason_not_infinity(text):
    baseline, _, targets = text
    terrible = [np.where(np.arange(31) == wanted[:, None], -1e4, 0.0) for wanted in targets]
    result = compare(baseline, terrible, targets).result()
    assert result.perplexity is None
    assert "e^300" in result.unknown["perplexity"]


def continuation(ids: list[int], margins: float | list[float] = 1.0, prompt: int = 0) -> GreedyTokens:
    gaps = margins if isinstance(margins, list) else [margins] * len(ids)
    texts = tuple(f" w{token}" for token in ids)
    return GreedyTokens(prompt=prompt, prompts=2, token_ids=tuple(ids), margins=tuple(gaps), texts=texts)


def test_equal_continuations_are_counted_in_full():
    one = compare_continuations(continuation([1, 2, 3]), continuation([1, 2, 3]), 0.1)
    assert (one.tokens, one.equal, one.outcome) == (3, 3, "equal")


@pytest.mark.parametrize(("gap", "outcome"), [(0.05, "near_tie"), (0.15, "changed"), (-1.0, "changed")])
def test_the_baselines_gap_at_the_first_difference_decides(gap: float, outcome: str):
    ours = continuation([1, 2, 3, 4], [9.0, 9.0, gap, 0.0])
    one = compare_continuations(ours, continuation([1, 2, 7, 8], 0.0), 0.1)
    assert (one.equal, one.outcome, one.margin) == (2, outcome, gap)
    assert "baseline: ' w3 w4'" in one.sentence
    assert "candidate: ' w7 w8'" in one.sentence


def forced(*gaps: float) -> ForcedGaps:
    return ForcedGaps(prompt=0, gaps=gaps)


def test_a_close_second_does_not_excuse_a_third_token():
    """The baseline's best two are nearly equal, but the candidate said neither of them."""
    ours, theirs = continuation([1, 2, 3], 0.01), continuation([1, 9, 3])
    assert compare_continuations(ours, theirs, 0.1).outcome == "near_tie", "all that the baseline's own text tells"
    one = compare_continuations(ours, theirs, 0.1, forced(0.0, 2.5, 0.0))
    assert (one.outcome, one.margin) == ("changed", 2.5)
    assert compare_continuations(ours, theirs, 0.1, forced(0.0, 0.05, 0.0)).outcome == "near_tie"
    assert compare_continuations(ours, theirs, 0.1, forced(0.0, -1.0, 0.0)).outcome == "changed", "unknown"


def test_each_token_of_the_candidates_text_is_judged_by_the_baseline():
    judged = judge_forced([forced(0.0, 0.0, 0.05, 0.3), forced(0.1, -1.0)], 0.1)
    assert (judged.tokens, judged.near_ties, judged.changes) == (5, 1, 2), "one gap is unknown"
    assert judge_forced([], 0.1).tokens == 0


def test_a_result_holds_every_prompt_with_what_the_baseline_found(text):
    comparison = compare(*text)
    comparison.add_prompt(continuation([1, 2, 3]), continuation([1, 2, 3]), forced(0.0, 0.0, 0.0))
    comparison.add_prompt(continuation([1, 2, 3]), continuation([1, 4, 5]), forced(0.0, 3.0, 0.0))
    result = comparison.result()
    assert [one.outcome for one in result.prompts] == ["equal", "changed"]
    assert result.prompts[1].forced_gaps == (0.0, 3.0, 0.0)
    assert result.prompts[1].candidate == (" w1", " w4", " w5")
    assert (result.forced_tokens, result.forced_near_ties, result.forced_changes) == (6, 0, 1)


def test_a_baseline_that_was_not_asked_is_said(text):
    comparison = compare(*text)
    comparison.add_prompt(continuation([1, 2, 3]), continuation([1, 2, 3]))
    assert "not loaded any more" in comparison.result().unknown["forced_tokens"]


def test_signal_to_noise_and_cosine_ignore_what_softmax_ignores(text):
    baseline, candidate, targets = text
    result = compare(baseline, [rows + 7.0 for rows in candidate], targets).result()
    ours, theirs = (np.concatenate([rows.astype(float) for rows in side]) for side in (baseline, candidate))
    ours, theirs = (rows - rows.mean(1, keepdims=True) for rows in (ours, theirs))
    expected = 10 * np.log10(np.square(ours).sum() / np.square(ours - theirs).sum())
    assert result.logit_sqnr_db == pytest.approx(expected, abs=1e-3)
    cosines = [1 - scipy.spatial.distance.cosine(p, q) for p, q in zip(ours, theirs, strict=True)]
    assert result.logit_cosine == pytest.approx(np.mean(cosines), abs=1e-6)


def test_equal_logits_have_no_noise_to_compare_with(text):
    baseline, _, targets = text
    result = compare(baseline, baseline, targets).result()
    assert result.logit_sqnr_db is None
    assert "bit by bit" in result.unknown["logit_sqnr_db"]
    assert result.logit_cosine == pytest.approx(1.0)


def test_tie_margin_follows_the_noise_between_its_bounds():
    noise = np.abs(np.random.default_rng(1).normal(0, 0.01, 10_000))
    assert near_tie_margin(noise) == pytest.approx(0.04, rel=0.05)
    assert near_tie_margin(noise * 100) == LARGEST_TIE
    assert near_tie_margin(np.zeros(10)) == SMALLEST_TIE
    assert near_tie_margin(np.empty(0)) == SMALLEST_TIE


def test_a_tiny_noise_makes_even_a_small_gap_a_real_change(text):
    """A candidate that agrees to 1e-6 everywhere has no excuse for turning over a gap of 0.05."""
    baseline, candidate, targets = text
    nearly = [rows + 1e-6 for rows in baseline]
    for side, expected in ((nearly, (0, 1)), (candidate, (1, 0))):
        comparison = compare(baseline, side, targets)
        comparison.add_prompt(continuation([1, 2, 3], 0.05), continuation([1, 2, 4]))
        result = comparison.result()
        assert (result.near_ties, result.real_changes) == expected
        assert (result.first_divergence is None) == (expected == (1, 0))
        assert (result.greedy_tokens, result.greedy_equal) == (3, 2)


def test_random_weights_tokenizerless_models_and_training_are_not_judged():
    model = ModelInfo(
        name="m", source="bundled", family="llama", n_layer=1, d_model=8, n_head=1, n_kv_head=1, d_head=8, d_ff=8,
        vocab_size=9, context_length=8, parameters=1, weight_bytes=4, kv_bytes_per_token=1.0, random_weights=False,
        has_tokenizer=True,
    )  # fmt: skip
    import msgspec

    assert why_not_evaluated(model, "decode") is None
    assert "loss curves" in why_not_evaluated(model, "train")
    assert "random weights" in why_not_evaluated(msgspec.structs.replace(model, random_weights=True), "decode")
    assert "no tokenizer" in why_not_evaluated(msgspec.structs.replace(model, has_tokenizer=False), "decode")
