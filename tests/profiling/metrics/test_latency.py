"""TTFT, ITL and TPOT as their definitions say."""

import pytest

from gptscope.profiling.metrics.latency import (
    describe,
    inter_token_latencies_ms,
    step_times_ms,
    time_per_output_token_ms,
)
from gptscope.profiling.metrics.slices import SliceBook


def slices_of(make, *batches):
    """One finished slice from batches of samples."""
    book = SliceBook()
    for batch in batches:
        book.add_samples(batch)
    book.end_slice(make.done(0))
    return book.counted()


def test_the_second_tokens_latency_counts_from_the_end_of_the_prefill(make):
    slices = slices_of(
        make,
        make.samples([100.0], kind="prefill", start_ms=0),
        make.samples([10.0, 10.0], start_ms=105, gap_ms=2.0),  # tokens at 115 and 127 ms
    )
    (itl,) = inter_token_latencies_ms(slices)
    assert itl.tolist() == pytest.approx([15.0, 12.0])
    assert time_per_output_token_ms(slices) == pytest.approx((127.0 - 100.0) / 2)
    (ttft,) = step_times_ms(slices, "prefill")
    assert ttft.tolist() == pytest.approx([100.0])


def test_two_sequences_in_one_slice_do_not_mix(make):
    slices = slices_of(
        make,
        make.samples([100.0], kind="prefill", start_ms=0),
        make.samples([10.0], start_ms=100),
        make.samples([100.0], kind="prefill", start_ms=110),
        make.samples([20.0], start_ms=210),
    )
    (itl,) = inter_token_latencies_ms(slices)
    assert itl.tolist() == pytest.approx([10.0, 20.0])  # the second prefill's 100 ms are no token gap


def test_without_a_prefill_a_first_token_has_its_own_duration(make):
    (itl,) = inter_token_latencies_ms(slices_of(make, make.samples([10.0, 30.0])))
    assert itl.tolist() == pytest.approx([10.0, 30.0])


def test_percentiles_and_spread(make):
    found = describe(step_times_ms(slices_of(make, make.samples([float(n) for n in range(1, 101)])), "decode"))
    assert found.count == 100
    assert found.p50_ms == pytest.approx(50.5)
    assert found.p95_ms == pytest.approx(95.05)
    assert found.p99_ms == pytest.approx(99.01)
    assert found.iqr_ms == pytest.approx(49.5)
    assert found.mad_ms == pytest.approx(25.0)
    assert describe([]) is None


def test_a_stream_of_batches_equals_one_batch(make):
    whole = slices_of(make, make.samples([1.0, 2.0, 3.0, 4.0]))
    parts = slices_of(make, make.samples([1.0, 2.0]), make.samples([3.0, 4.0], start_ms=3.0))
    assert inter_token_latencies_ms(whole)[0].tolist() == inter_token_latencies_ms(parts)[0].tolist()
