import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptscope.app.viewmodels.series import LogHistogram, RateSeries, TimeSeries

MS = 1_000_000


def steps(count: int, ms: float, begin_ms: float = 0.0) -> tuple[list[int], list[int], list[int], np.ndarray]:
    starts = [int(MS * (begin_ms + ms * i)) for i in range(count)]
    return starts, [int(MS * ms)] * count, [1] * count, np.full(count, 2e6)


def test_rate_is_tokens_over_busy_time() -> None:
    series = RateSeries()
    series.add(*steps(400, 10))
    x, y = series.tokens_per_second(0)
    assert np.nanmedian(y) == pytest.approx(100, rel=0.01)
    _, gbps = series.gigabytes_per_second(0)
    assert np.nanmedian(gbps) == pytest.approx(0.2, rel=0.01)
    assert x[-1] == pytest.approx(4.0, abs=0.1)


def test_time_without_steps_is_a_gap_and_not_a_line() -> None:
    series = RateSeries()
    series.add(*steps(100, 10))
    series.add(*steps(100, 10, begin_ms=3000))
    _, y = series.tokens_per_second(0)
    assert np.isnan(y).sum() == 1


def test_slow_steps_are_joined() -> None:
    series = RateSeries()
    series.add(*steps(8, 1500))
    _, y = series.tokens_per_second(0)
    assert not np.isnan(y).any()


def test_hours_of_steps_stay_small_and_lose_nothing() -> None:
    series = RateSeries()
    for hour in range(5):
        for minute in range(0, 60, 10):
            series.add(*steps(20, 25, begin_ms=1000 * (3600 * hour + 60 * minute)))
    x, y = series.tokens_per_second(0)
    assert x.size <= 2 * 4096
    assert series._tokens.sum() == 5 * 6 * 20
    assert np.nanmin(y) > 0


@given(st.lists(st.integers(200, 10**11), min_size=1, max_size=200))
def test_quantiles_are_exact_to_a_bin(durations: list[int]) -> None:
    histogram = LogHistogram()
    histogram.add(durations)
    exact = sorted(durations)[max(0, int(np.ceil(0.5 * len(durations))) - 1)] / MS
    assert histogram.quantile_ms(0.5) == pytest.approx(exact, rel=0.0051)


def test_no_step_is_lost_outside_the_shown_range() -> None:
    histogram = LogHistogram()
    histogram.add([5 * MS, 10 * MS, 500 * MS])
    assert histogram.binned(np.linspace(8, 12, 5)).sum() == pytest.approx(1.0)
    assert LogHistogram().quantile_ms(0.5) is None


def test_a_sensor_keeps_its_newest_and_highest_value_however_long_it_runs() -> None:
    series = TimeSeries(capacity=64)
    for index in range(1000):
        series.add(index * MS, float(index % 500))
    series.add(1001 * MS, None)
    x, _ = series.points(0)
    assert x.size < 64
    assert (series.last, series.peak) == (499.0, 499.0)
    assert np.all(np.diff(x) > 0)
