"""Steps that give several tokens: acceptance, time per token, and a speedup that counts tokens, not steps."""

import msgspec
import pytest

from gptscope.profiling.experiment import Variant
from gptscope.profiling.metrics.compare import compare_runs
from gptscope.profiling.metrics.summary import summarise


def speculative(make, number, *, run_id="b"):
    """Three steps of 10 ms: 4, 1 and 3 tokens of 3, 2 and 3 guesses."""
    plain = make.samples([10.0, 10.0, 10.0], run_id=run_id, number=number, context=(9, 13, 14))
    return msgspec.structs.replace(plain, tokens=(4, 1, 3), drafted=(3, 2, 3))


def run_of(make, *, slices=1):
    stream = [make.started("b", variant=Variant(speculation="prompt-lookup")), make.loaded("b")]
    for number in range(slices):
        stream += [speculative(make, number), make.done(number, run_id="b")]
    return stream


def test_accepted_guesses_and_tokens_per_step_are_summed_over_all_steps(make):
    summary = summarise(run_of(make))
    assert summary.acceptance == pytest.approx(5 / 8)
    assert summary.tokens_per_step == pytest.approx(8 / 3)
    assert summary.tokens_per_s.value == pytest.approx(8 / 0.030)


def test_tokens_that_come_together_share_their_steps_time(make):
    summary = summarise(run_of(make))
    assert summary.itl.count == 8
    assert summary.tpot_ms == pytest.approx(30 / 8)
    assert summary.itl.p95_ms == pytest.approx(10.0, rel=0.3)


def test_the_products_work_on_the_guesses_too(make):
    stream = run_of(make)
    plain = [msgspec.structs.replace(one, drafted=()) if getattr(one, "drafted", None) else one for one in stream]
    assert summarise(stream).flops_per_step == pytest.approx(summarise(plain).flops_per_step * (1 + 8 / 3))
    assert summarise(stream).step_bytes == summarise(plain).step_bytes


def test_without_speculation_there_is_nothing_to_say(make):
    summary = summarise(
        [make.started("b"), make.loaded("b"), make.samples([5.0], run_id="b"), make.done(0, run_id="b")]
    )
    assert summary.acceptance is None
    assert "no speculation" in summary.unknown["acceptance"]
    assert summary.tokens_per_step is None


def test_the_speedup_is_that_of_a_token(make):
    baseline = [make.started("a"), make.loaded("a")]
    for number in range(6):
        baseline += [make.samples([6.0] * 8, run_id="a", number=number), make.done(number, run_id="a")]
    verdict = compare_runs(baseline, run_of(make, slices=6))
    assert verdict.speedup.value == pytest.approx(6.0 / (30 / 8))  # although a step takes longer
    assert verdict.plain_ratio == pytest.approx(6.0 / (30 / 8))
