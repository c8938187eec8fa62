import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptscope.app.viewmodels.scales import clock, linear_axis, log_axis, memory_axis, nice_step, time_axis


@given(st.floats(1e-6, 1e9), st.integers(2, 10))
def test_a_step_is_round_and_divides_the_span_into_about_the_wanted_parts(span: float, wanted: int) -> None:
    step = nice_step(span, wanted)
    mantissa = step / 10.0 ** math.floor(math.log10(step) + 1e-12)
    assert min(abs(mantissa - round_value) for round_value in (1, 2, 2.5, 5, 10)) < 1e-6
    assert wanted / 2.5 <= span / step <= wanted * 2.5


@given(st.floats(0.001, 1e7))
def test_a_linear_axis_begins_at_its_low_end_and_holds_the_high_one(high: float) -> None:
    axis = linear_axis(0, high)
    assert axis.low == 0
    assert axis.high >= high
    assert 2 <= len(axis.ticks) <= 9
    assert all(axis.low <= value <= axis.high * (1 + 1e-9) for value, _ in axis.ticks)
    assert len({text for _, text in axis.ticks}) == len(axis.ticks), "two ticks read the same"
    assert all(float(text) == pytest.approx(value, rel=1e-6) for value, text in axis.ticks), "a text tells its place"


def test_the_unit_stands_on_the_last_tick_only() -> None:
    texts = [text for _, text in linear_axis(0, 50, unit="ms").ticks]
    assert texts[-1].endswith(" ms")
    assert not any("ms" in text for text in texts[:-1])


def test_an_impossible_range_still_makes_an_axis() -> None:
    assert linear_axis(0, math.nan).high > 0
    assert linear_axis(5, 5).high > 5


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (32.4, "0:32"), (3723, "1:02:03"), (59.6, "1:00")])
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_long_time_axes_count_in_minutes() -> None:
    assert time_axis(0, 30).ticks[1][1].endswith(" s")
    assert [text for _, text in time_axis(0, 600).ticks][:2] == ["0:00", "2:00"]


def test_log_ticks_are_whole_decades_written_out() -> None:
    axis = log_axis(0.02, 40)
    assert (axis.low, axis.high) == (0.01, 100)
    assert [text for _, text in axis.ticks] == ["0.01", "0.1", "1", "10", "100"]
    assert math.isnan(axis.position(0)), "a log axis cannot show zero"
    assert axis.value(axis.position(3.3)) == pytest.approx(3.3)


@pytest.mark.parametrize(
    ("high_mb", "last", "title"), [(3e-5, "30 B", "bytes"), (380, "400 MB", "megabytes"), (4300, "5 GB", "gigabytes")]
)
def test_an_axis_of_memory_is_in_the_unit_of_its_size(high_mb: float, last: str, title: str) -> None:
    axis = memory_axis(high_mb)
    assert axis.ticks[-1][1] == last
    assert axis.title == title
    assert high_mb <= axis.high <= 2 * high_mb, "the values stay in megabytes"
    assert axis.ticks[-1][0] == pytest.approx(axis.high)
