"""Every rule of how numbers are written, by example."""

import datetime as dt
import math
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptscope.app.viewmodels import formatting as f

T = f.THIN_SPACE


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.19, "0.190"),
        (8.224, "8.22"),
        (57, "57.0"),
        (269.4, "269"),
        (0, "0"),
        (9.996, "10.0"),
        (99.96, "100"),
        (999.6, f"1{T}000"),
        (12345, f"12{T}300"),
        (1.5e6, f"1{T}500{T}000"),
        (-3.14159, "−3.14"),
        (0.00123456, "0.00123"),
        (0.000099, "9.90e−5"),
        (-2.5e-7, "−2.50e−7"),
        (0.99951, "1.00"),
    ],
)
def test_numbers_have_three_significant_digits(value: float, text: str) -> None:
    assert f.number(value) == text


@given(st.floats(min_value=1e-3, max_value=999))
def test_a_written_number_is_within_half_a_unit_of_its_third_digit(value: float) -> None:
    shown = float(f.number(value).replace(T, "").replace("−", "-"))
    assert shown == pytest.approx(value, rel=0.00501)
    assert len(f.number(value).replace(".", "").lstrip("0").replace(T, "")) in (3, 4)


def test_unknown_is_na_with_its_reason_and_never_zero() -> None:
    assert f.number(None, "no NVIDIA driver") == "n/a: no NVIDIA driver"
    assert f.number(None) == "n/a"
    assert f.number(math.nan, "no steps") == "n/a: no steps"
    assert f.quantity(None, "bytes", "not reported") == "n/a: not reported"
    assert f.ratio(None, reason="one run only") == "n/a: one run only"
    assert f.percent(math.inf) == "n/a"
    assert f.signed(None) == "n/a"
    assert f.change(1.0, None, reason="no baseline") == "n/a: no baseline"
    assert f.interval(None, 1, 2, reason="x") == "n/a: x"
    assert f.count(None, "y") == "n/a: y"
    assert f.duration(None) == "n/a"


@pytest.mark.parametrize(
    ("value", "family", "text"),
    [
        (0.0082, "time", "8.20 ms"),
        (0.0009996, "time", "1.00 ms"),
        (41.2e-6, "time", "41.2 µs"),
        (2e-9, "time", "0.00200 µs"),
        (3.5, "time", "3.50 s"),
        (512, "bytes", "512 B"),
        (8192, "bytes", "8.19 kB"),
        (269e6, "bytes", "269 MB"),
        (2.5e9, "bytes", "2.50 GB"),
        (41.2e9, "bandwidth", "41.2 GB/s"),
        (0.412e12, "flops", "0.412 TFLOP/s"),
        (57, "rate", "57.0 tok/s"),
        (12.25, "plain", "12.2"),
    ],
)
def test_quantities_take_the_unit_that_suits_them(value: float, family: f.Family, text: str) -> None:
    assert f.quantity(value, family) == text


def test_a_count_is_whole_with_thin_spaces() -> None:
    assert f.count(8192) == f"8{T}192"
    assert f.count(134_515_008) == f"134{T}515{T}008"
    assert f.count(7) == "7"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.5, "500 ms"),
        (59.96, "60.0 s"),
        (119, "119 s"),
        (125, "2 min 5 s"),
        (7384, "2 h 3 min"),
        (-130, "−2 min 10 s"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert f.duration(seconds) == text


def test_a_column_has_one_unit_chosen_by_its_largest_value() -> None:
    column = f.column([0.0123, 0.00045, None, 2e-6], "time", "not timed")
    assert column.unit == "ms"
    assert column.texts == ("12.3", "0.450", "n/a: not timed", "0.00200")
    assert f.column([], "bytes") == f.Column(unit="B", texts=())


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((2.314, 2.249, 2.381), "2.31x [2.25, 2.38]"),
        ((0.47,), "0.47x"),
        ((12.34, 12.0, 12.71), "12.3x [12.0, 12.7]"),
        ((1.0,), "1.00x"),
        ((123.4,), "123x"),
        ((9.996,), "10.0x"),
        ((0.0047,), "0.00470x"),
    ],
)
def test_ratios_carry_their_interval(args: tuple[float, ...], text: str) -> None:
    assert f.ratio(*args) == text


def test_an_interval_has_the_digits_of_its_value() -> None:
    assert f.interval(57.04, 56.08, 57.94, "tok/s") == "57.0 [56.1, 57.9] tok/s"
    assert f.interval(57.04, None, None, "tok/s") == "57.0 tok/s"
    assert f.interval(1234.0, 1201.0, 1264.0) == f"1{T}230 [1{T}200, 1{T}260]"


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.34, "34 %"),
        (0.042, "4.2 %"),
        (0.0996, "10 %"),
        (0.0034, "0.34 %"),
        (0, "0 %"),
        (1.04, "104 %"),
        (-0.12, "−12 %"),
    ],
)
def test_percentages(fraction: float, text: str) -> None:
    assert f.percent(fraction) == text


def test_a_tiny_share_is_not_shown_as_zero() -> None:
    assert f.percent(0.00001) == "0.00100 %"


def test_above_peak_is_shown_and_explained() -> None:
    assert f.of_peak(1.12) == "112 % (cache-resident or model wrong)"
    assert f.of_peak(0.93) == "93 %"
    assert f.of_peak(None, "no peak") == "n/a: no peak"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((0.02, 0.11), "+0.02 ± 0.11"),
        ((-0.5, 0.11), "−0.50 ± 0.11"),
        ((-0.001, 0.11), "+0.00 ± 0.11"),
        ((12.3, 4.56), "+12.3 ± 4.6"),
        ((0.0201, None), "+0.0201"),
        ((0.0, None), "0"),
        ((-3.0, 0.0), "−3.00"),
        ((120.0, 34.0), "+120 ± 34"),
        ((0.0000312, 0.0000041), "+0.0000312 ± 0.0000041"),
        ((-5.8e-7, 7.1e-8), "−5.8e−7 ± 7.1e−8"),
    ],
)
def test_changes_carry_sign_and_error(args: tuple[float, float | None], text: str) -> None:
    assert f.signed(*args) == text


def test_before_and_after_show_enough_digits_to_differ() -> None:
    assert f.change(14.86, 14.88) == "14.86 → 14.88"
    assert f.change(14.86, 19.2, "ms") == "14.9 → 19.2 ms"
    assert f.change(2.0, 2.0) == "2.00 → 2.00"


def test_moments_are_local_to_a_zone() -> None:
    zone = dt.timezone(dt.timedelta(hours=2))
    assert f.when(1_790_000_000 * 10**9, zone) == "2026-09-21 16:13"


def test_ascii_fallback_keeps_the_meaning() -> None:
    assert f.to_ascii(f"8{T}192 × 2 µs ± 1 → −3 ✓ ✗ …") == "8 192 x 2 us +/- 1 -> -3 yes NO ..."
    assert f.to_ascii("日") == "?"


@pytest.fixture
def four_digits() -> Iterator[None]:
    f.show_digits(4)
    yield
    f.show_digits(3)


def test_more_digits_are_shown_everywhere_when_asked_for(four_digits: None) -> None:
    assert f.number(57.0234) == "57.02"
    assert f.number(12345.6) == f"12{T}350"
    assert f.number(1.23456e-7) == f"1.235e{f.MINUS}7"
    assert f.quantity(0.0082, "time") == "8.200 ms"
    assert f.interval(57.0234, 56.1, 57.9) == "57.02 [56.10, 57.90]"
    assert f.ratio(2.31234) == "2.312x"
    assert f.ratio(12.3456, 12.1, 12.5) == "12.35x [12.10, 12.50]"
    assert f.percent(0.34567) == "34.6 %"
    assert f.percent(0.0) == "0 %"
    assert f.change(14.8612, 14.8834) == "14.86 → 14.88"
    assert f.column((0.5, 12.0), "plain").texts == ("0.5000", "12.00")
    assert f.count(8192) == f"8{T}192", "counts are whole"


def test_three_digits_are_the_usual_number() -> None:
    assert f.digits() == 3
    assert f.number(57.0234) == "57.0"


@pytest.mark.parametrize(
    ("fraction", "text"), [(6.61e-6, "<0.01 %"), (0.0, "0 %"), (0.0004, "0.04 %"), (0.37, "37 %"), (None, "n/a")]
)
def test_shares_have_no_digits_far_behind_the_point(fraction: float | None, text: str) -> None:
    assert f.share(fraction) == text


@pytest.mark.parametrize(
    ("written", "kept_together"),
    [
        ("17 327 769 ns", "17 327 769_ns"),
        ("Calls take 8.20 ms, 34 % of the step.", "Calls take 8.20_ms, 34_% of the step."),
        ("57.0 [56.1, 57.9] tok/s and 1.20 GB/s", "57.0 [56.1, 57.9]_tok/s and 1.20_GB/s"),
        ("2 min 5 s later", "2_min 5_s later"),
        ("3 MBytes of 4 kernels, 5 hours", "3 MBytes of 4 kernels, 5 hours"),
    ],
)
def test_no_line_ends_between_a_number_and_its_unit(written: str, kept_together: str) -> None:
    assert f.unbroken(written) == kept_together.replace("_", "\u00a0")


def test_thousands_are_parted_by_a_space_at_which_no_line_ends() -> None:
    assert f.count(17_327_769) == "17\u202f327\u202f769"
