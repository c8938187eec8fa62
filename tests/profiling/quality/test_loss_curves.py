"""Ends of loss curves: paired by step, with an interval that knows what a real difference is."""

import math

import numpy as np
import pytest

from gptscope.profiling.quality.loss_curves import compare_all, compare_losses, losses_of
from gptscope.profiling.records import StepSamples


def samples(run_id: str, losses: list[float], phase: str = "measure", kind: str = "train") -> StepSamples:
    count = len(losses)
    return StepSamples(
        run_id=run_id,
        slice=0,
        phase=phase,
        kind=kind,
        start_ns=tuple(range(count)),
        duration_ns=(1,) * count,
        tokens=(8,) * count,
        loss=tuple(losses),
    )


def compare(ours, theirs):
    return compare_losses(list(ours), list(theirs), run_id="b", baseline_run_id="a")


def test_all_steps_count_in_the_order_in_which_they_were_done() -> None:
    records = [
        samples("a", [5.0], "warmup"),
        samples("b", [9.0]),
        samples("a", [4.0, 3.0]),
        samples("a", [2.0], "profile"),
    ]
    assert losses_of(records, "a") == [5.0, 4.0, 3.0, 2.0]


def test_the_last_quarter_of_the_common_steps_is_compared() -> None:
    baseline = [10.0 - step for step in range(16)]
    found = compare([loss + 0.5 for loss in baseline] + [99.0] * 5, baseline)
    assert (found.steps, found.compared) == (16, 4)
    assert found.baseline == pytest.approx(np.mean(baseline[-4:]))
    assert found.difference == pytest.approx(0.5)


def test_noise_is_told_from_a_difference() -> None:
    generator = np.random.default_rng(1)
    shared = 3.0 + generator.normal(0, 0.5, 200)  # batches differ far more than variants
    noise = generator.normal(0, 0.01, 200)
    same, worse = compare(shared + noise, shared), compare(shared + noise + 0.05, shared)
    assert same.differs is False
    assert worse.differs is True
    assert worse.low < 0.05 < worse.high
    assert worse.high - worse.low < 0.05


def test_neighbouring_steps_are_not_taken_for_independent_ones() -> None:
    generator = np.random.default_rng(2)
    drift = np.cumsum(generator.normal(0, 0.01, 400))
    found = compare(3.0 + drift, np.full(400, 3.0))
    single = 2 * 1.96 * np.std(drift[-100:]) / math.sqrt(100)
    assert found.high - found.low > 1.5 * single


def test_equal_curves_do_not_differ() -> None:
    found = compare([3.0, 2.0, 1.5] * 20, [3.0, 2.0, 1.5] * 20)
    assert (found.difference, found.low, found.high, found.differs) == (0.0, 0.0, 0.0, False)


def test_few_steps_have_no_interval() -> None:
    found = compare([3.0, 2.5], [3.0, 2.0])
    assert (found.compared, found.low, found.differs) == (2, None, None)


def test_broken_losses_are_left_out_and_counted() -> None:
    found = compare([3.0, math.nan, math.inf, 2.0], [3.0, 2.5, 2.2, 2.0])
    assert (found.broken, found.compared, found.difference) == (2, 2, 0.0)
    assert compare([math.nan], [1.0]) is None
    assert compare([], [1.0]) is None


def test_runs_that_did_not_train_have_nothing_to_compare() -> None:
    records = [samples("a", [2.0] * 8), samples("b", [2.1] * 8), samples("c", [], kind="decode")]
    assert [one.run_id for one in compare_all(records, ["a", "b", "c"])] == ["b"]
    assert compare_all(records, ["a"]) == []
