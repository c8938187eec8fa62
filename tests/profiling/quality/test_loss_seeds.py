"""A difference over seeds: each seed is paired with itself, and the interval is Student's."""

import numpy as np
import pytest
import scipy.stats

from gptscope.profiling.quality.loss_curves import compare_seeds, with_measured
from gptscope.profiling.quality.loss_seeds import over_seeds, t_975


@pytest.mark.parametrize("degrees", [1, 2, 5, 30, 31, 40, 100, 1000])
def test_the_quantile_is_that_of_students_distribution(degrees: int) -> None:
    assert t_975(degrees) == pytest.approx(scipy.stats.t.ppf(0.975, degrees), rel=2e-4)


def test_the_interval_is_that_of_a_paired_t_test() -> None:
    differences = {7: 0.02, 8: -0.01, 9: 0.03, 10: 0.015}
    found = over_seeds(differences)
    values = list(differences.values())
    low, high = scipy.stats.t.interval(0.95, 3, loc=np.mean(values), scale=scipy.stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-3)
    assert found.difference == pytest.approx(np.mean(values))
    assert (found.seeds, found.differences, found.differs) == ((7, 8, 9, 10), tuple(values), False)
    assert over_seeds(dict.fromkeys(range(3), 0.5)).differs is True


def test_one_seed_has_no_interval_and_none_no_comparison() -> None:
    assert over_seeds({7: 0.5}).differs is None
    assert over_seeds({}) is None


def test_what_seeds_have_in_common_cancels() -> None:
    generator = np.random.default_rng(3)
    curves = {seed: list(generator.normal(3.0, 1.0, 40)) for seed in range(4)}  # seeds differ far more than variants
    worse = {seed: [loss + 0.01 + 0.001 * seed for loss in curve] for seed, curve in curves.items()}
    found = compare_seeds(worse, curves)
    assert found.difference == pytest.approx(0.0115)
    assert found.differs is True
    assert compare_seeds({1: worse[1]}, curves) is None, "one pair says nothing about seeds"
    assert compare_seeds({1: worse[1], 2: [float("nan")] * 40}, curves) is None


def test_the_measured_seed_is_cut_to_the_steps_of_the_others() -> None:
    """Repeated slices and profiled steps train on."""
    assert with_measured(1, [4.0, 3.0, 2.0, 1.0], {2: (4.1, 3.1)}) == {1: [4.0, 3.0], 2: (4.1, 3.1)}
    assert with_measured(None, [4.0], {}) == {}
