"""After how many tokens compiling has paid off."""

import pytest

from gptscope.profiling.metrics.payoff import payoff
from gptscope.profiling.metrics.statistics import Estimate
from gptscope.profiling.metrics.summary import summarise
from gptscope.profiling.records import Compiled


def run(make, step_ms, compile_s=None):
    stream = [make.started("a"), make.loaded("a"), make.samples([step_ms] * 4), make.done(0)]
    if compile_s is not None:
        stream.insert(2, Compiled(run_id="a", compile_s=compile_s, graph_breaks=1, regions=4))
    return summarise(stream)


def test_the_seconds_spent_are_divided_by_those_saved_per_token(make):
    won_back = payoff(run(make, 10.0), run(make, 6.0, 8.0))
    assert won_back.tokens == pytest.approx(8.0 / 0.004)
    assert won_back.sentence == (
        "Compiling took 8.0 s longer (4 regions, 1 graph break), which is won back after 2000 tokens."
    )


def test_what_both_compiled_cancels(make):
    assert payoff(run(make, 10.0, 3.0), run(make, 6.0, 8.0)).tokens == pytest.approx(5.0 / 0.004)
    assert payoff(run(make, 10.0, 8.0), run(make, 6.0, 8.0)) is None


def test_a_slower_candidate_never_wins_it_back(make):
    never = payoff(run(make, 6.0), run(make, 10.0, 8.0))
    assert never.tokens is None
    assert "is not won back" in never.sentence


def test_the_speedup_of_pairs_counts_where_there_is_one(make):
    spoiled = run(make, 30.0, 8.0)
    won_back = payoff(run(make, 10.0), spoiled, Estimate(value=2.0, low=1.8, high=2.2))
    assert won_back.tokens == pytest.approx(8.0 / 0.005)
    unsure = payoff(run(make, 10.0), run(make, 6.0, 8.0), Estimate(value=1.1, low=0.9, high=1.3))
    assert unsure.tokens is None


def test_nothing_compiled_is_nothing_to_win_back(make):
    assert payoff(run(make, 10.0), run(make, 6.0)) is None
