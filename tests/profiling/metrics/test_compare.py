"""Verdicts: interval, output, one sentence; and a waterfall that adds up."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gptscope.profiling.metrics.compare import MIN_PAIRS, compare_runs
from gptscope.profiling.metrics.statistics import bootstrap_interval, median_absolute_deviation, quantile
from gptscope.profiling.metrics.waterfall import GAPS, UNATTRIBUTED, by_category, by_module, waterfall
from gptscope.profiling.records import Failure, KernelRow, Profile, Quality


def experiment(make, baseline_ms, candidate_ms, *, disturbed=(), **started):
    """Two runs of one experiment with one decode slice of three alike steps per pair."""
    records = [make.started("b", **started), make.started("c", **started)]
    for pair, (ours, theirs) in enumerate(zip(baseline_ms, candidate_ms, strict=True)):
        for run_id, step_ms in (("b", ours), ("c", theirs)):
            records.append(make.samples([step_ms] * 3, run_id=run_id, number=pair, start_ms=pair * 1000))
            why = "busy" if pair in disturbed else None
            records.append(make.done(pair, run_id=run_id, disturbed=why))
    return records


def compare(records, quality=None):
    return compare_runs(records, records, quality, baseline_id="b", candidate_id="c")


def quality(**changes):
    values = {
        "run_id": "c",
        "baseline_run_id": "b",
        "tokens": 1000,
        "perplexity": 15.0,
        "perplexity_error": 0.1,
        "baseline_perplexity": 15.0,
        "baseline_perplexity_error": 0.1,
        "kl_mean": 0.001,
        "kl_median": 0.001,
        "kl_p99": 0.01,
        "top1_agreement": 0.99,
        "greedy_tokens": 400,
        "greedy_equal": 400,
        "near_ties": 0,
        "real_changes": 0,
    }
    return Quality(**(values | changes))


NOISE = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99]


def test_the_speedup_is_the_median_of_the_pairs_ratios(make):
    # The machine slows down fourfold half-way: pairs see it on both sides, so the ratio does not.
    base = [20.0 * n for n in NOISE[:4]] + [80.0 * n for n in NOISE[4:]]
    records = experiment(make, base, [10.0] * 4 + [40.0] * 4)
    verdict = compare(records, quality())
    assert verdict.speedup.value == pytest.approx(2.0, rel=0.02)
    assert 1.9 < verdict.speedup.low <= verdict.speedup.value <= verdict.speedup.high < 2.1
    assert verdict.kind == "faster_same_output"
    assert verdict.title == "Faster, same output"
    assert verdict.sentence.startswith("2.00x faster, 95 % interval [1.9")
    assert verdict.sentence.endswith("of 8 pairs; the output is the same.")


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({}, "faster_same_output", "the output is the same"),
        ({"near_ties": 2}, "faster_same_output", "apart from 2 near-ties"),
        ({"real_changes": 3}, "faster_output_changed", "3 prompts continue differently"),
        ({"kl_mean": 0.19}, "faster_output_changed", "moved by 0.19 nats"),
        ({"broken_positions": 5}, "faster_output_changed", "NaN or infinity"),
        ({"kl_mean": None, "greedy_tokens": 0}, "faster_output_unknown", "not compared"),
    ],
)
def test_the_output_decides_between_the_kinds_of_faster(changes, kind, words, make):
    verdict = compare(experiment(make, [20.0 * n for n in NOISE], [10.0] * 8), quality(**changes))
    assert verdict.kind == kind
    assert words in verdict.sentence


def test_without_quality_nothing_is_claimed_about_the_output(make):
    records = experiment(make, [20.0 * n for n in NOISE], [10.0] * 8)
    verdict = compare([*records, make.loaded("c")])
    assert verdict.kind == "faster_output_unknown"
    assert verdict.output_changed is None
    assert "random weights" in verdict.sentence


def test_an_interval_that_holds_one_is_no_real_difference(make):
    verdict = compare(experiment(make, [10.0 * n for n in NOISE], [10.0 * n for n in NOISE[::-1]]), quality())
    assert verdict.kind == "no_real_difference"
    assert verdict.speedup.low <= 1.0 <= verdict.speedup.high


def test_slower_is_called_slower(make):
    verdict = compare(experiment(make, [10.0 * n for n in NOISE], [20.0] * 8), quality(real_changes=1))
    assert verdict.kind == "slower"
    assert verdict.sentence.startswith("Slower: 0.50x")
    assert "1 prompt continues differently" in verdict.sentence


def test_runs_of_the_same_thing_are_rarely_called_different(make):
    rng = np.random.default_rng(7)
    called = 0
    for _ in range(60):
        base, same = 10 * np.exp(rng.normal(0, 0.03, (2, 8)))
        called += compare(experiment(make, base.tolist(), same.tolist())).kind != "no_real_difference"
    assert called <= 9  # about 8 % of 60 are expected


def test_disturbed_pairs_are_left_out_while_enough_remain(make):
    base = [20.0 * n for n in NOISE]
    base[0] = 500.0
    verdict = compare(experiment(make, base, [10.0] * 8, disturbed=(0,)))
    assert len(verdict.pairs) == 7
    assert verdict.warnings == ("1 of 8 pairs were disturbed and are left out.",)
    verdict = compare(experiment(make, base, [10.0] * 8, disturbed=(0, 1, 2, 3)))
    assert len(verdict.pairs) == 8
    assert "too few are left" in verdict.warnings[0]


def test_too_few_pairs_are_not_comparable_but_the_ratio_is_shown(make):
    verdict = compare(experiment(make, [20.0] * (MIN_PAIRS - 1), [10.0] * (MIN_PAIRS - 1)))
    assert verdict.kind == "not_comparable"
    assert verdict.speedup is None
    assert verdict.plain_ratio == pytest.approx(2.0)
    assert (
        verdict.sentence
        == "Not comparable: only 4 pairs of slices were measured, and an interval needs 5; use more steps."
    )


def test_what_cannot_be_compared_says_why(make):
    good = experiment(make, [20.0] * 8, [10.0] * 8)
    other_work = [make.started("x", batch=4), make.samples([1.0], run_id="x"), make.done(0, run_id="x")]
    verdict = compare_runs(good, other_work, baseline_id="b", candidate_id="x")
    assert verdict.sentence == "Not comparable: the workloads differ."
    elsewhen = [msgspec.structs.replace(r, experiment_id="e2") if hasattr(r, "experiment_id") else r for r in good]
    verdict = compare_runs(good, elsewhen, baseline_id="b", candidate_id="c")
    assert "different times" in verdict.sentence
    assert verdict.plain_ratio == pytest.approx(2.0)
    dead = [make.started("d"), Failure(kind="memory", message="It does not fit.", run_id="d")]
    verdict = compare_runs(good, dead, baseline_id="b", candidate_id="d")
    assert verdict.sentence == "Not comparable: the candidate was not measured: It does not fit."
    assert compare_runs(good, [], baseline_id="b").sentence == "Not comparable: the candidate did not start."


def test_a_verdict_survives_json(make):
    verdict = compare(experiment(make, [20.0 * n for n in NOISE], [10.0] * 8), quality())
    assert msgspec.json.decode(msgspec.json.encode(verdict), type=type(verdict)) == verdict


def kernel(module, category, self_us, name="k"):
    return KernelRow(
        name=name, category=category, calls=1, self_time_us=self_us, total_time_us=self_us, share=0.1, module=module
    )


def profile(kernels, *, run_id="b", steps=2, wall_us=2000.0, busy_us=1500.0):
    return Profile(
        run_id=run_id, steps=steps, overhead=1.1, wall_us=wall_us, busy_us=busy_us, kernels=tuple(kernels), device="cpu"
    )


kernels = st.lists(
    st.builds(
        kernel,
        st.sampled_from(["", "embed", "blocks.*", "blocks.*.attn.qkv.q", "blocks.*.mlp.down", "lm_head", "odd.path"]),
        st.sampled_from(["GEMM", "attention", "other"]),
        st.floats(0, 1e5),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(kernels, kernels, st.integers(1, 10**8), st.integers(1, 10**8), st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_waterfall_adds_up_exactly(ours, theirs, baseline_ns, candidate_ns, wall_us, busy_us):
    for group in (by_category, by_module):
        fall = waterfall(
            profile(ours, wall_us=wall_us, busy_us=busy_us),
            profile(theirs, run_id="c", steps=3, wall_us=busy_us, busy_us=wall_us),
            baseline_step_ns=baseline_ns,
            candidate_step_ns=candidate_ns,
            group=group,
        )
        assert sum(row.baseline_ns for row in fall.rows) == baseline_ns
        assert sum(row.candidate_ns for row in fall.rows) == candidate_ns
        assert sum(row.change_ns for row in fall.rows) == candidate_ns - baseline_ns
        assert [row.name for row in fall.rows[-2:]] == [GAPS, UNATTRIBUTED]


def test_profiler_overhead_comes_out_of_the_gaps_and_the_rest_is_shown():
    # Two profiled steps: 1000 us wall and 750 us busy each; 900 us without profiler.
    ours = profile([kernel("", "GEMM", 1400.0)])
    fall = waterfall(ours, ours, baseline_step_ns=900_000, candidate_step_ns=900_000)
    rows = {row.name: row.baseline_ns for row in fall.rows}
    assert rows["GEMM"] == 700_000
    assert rows[GAPS] == 150_000  # 250 us between kernels, 100 of them the profiler's
    assert rows[UNATTRIBUTED] == 50_000
    assert fall.baseline_overhead_ns == 100_000


@pytest.mark.parametrize(
    ("module", "group"),
    [
        ("blocks.*.attn.qkv.q", "qkv"),
        ("blocks.3.attn.qkv", "qkv"),
        ("blocks.*.attn.core", "attention, KV"),
        ("blocks.*.attn", "qkv"),  # a product directly in there is the joint projection
        ("blocks.*.attn.out", "attention out"),
        ("blocks.*.mlp.gate", "mlp gate, up"),
        ("blocks.*.mlp.gate_up", "mlp gate, up"),
        ("blocks.*.mlp.down", "mlp down"),
        ("blocks.*.mlp", "mlp activation"),
        ("blocks.*.attn_norm", "norms, residual"),
        ("norm", "norms, residual"),
        ("blocks.*", "norms, residual"),
        ("lm_head", "lm_head"),
        ("embed", "embedding"),
        ("", "outside the model"),
        ("vision.tower", "vision.tower"),
    ],
)
def test_fused_and_unfused_modules_meet_in_one_group(module, group):
    assert by_module(kernel(module, "GEMM", 1.0)) == group


def test_work_directly_in_attention_is_told_apart_by_its_kind():
    assert by_module(kernel("blocks.*.attn", "elementwise", 1.0)) == "rope"
    assert by_module(kernel("blocks.*.attn", "attention", 1.0)) == "attention, KV"
    assert by_module(kernel("blocks.*.attn", "copy", 1.0)) == "attention, KV"


def test_the_optimizer_is_its_own_group():
    assert by_module(kernel("", "optimizer", 1.0)) == "optimizer"


@settings(deadline=None)
@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=30))
def test_intervals_hold_their_median_and_repeat(values):
    low, high = bootstrap_interval(values)
    assert (low, high) == bootstrap_interval(values)
    assert min(values) <= low <= high <= max(values)
    assert low <= quantile(values, 0.5) * (1 + 1e-12)
    assert high >= quantile(values, 0.5) * (1 - 1e-12)


def test_spread_is_robust_against_one_outlier():
    assert median_absolute_deviation([1.0, 1.1, 0.9, 1.0, 100.0]) == pytest.approx(0.1)
    with pytest.raises(ValueError, match="at least one value"):
        quantile([], 0.5)
