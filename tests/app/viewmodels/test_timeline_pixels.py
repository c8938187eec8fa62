"""Pixels of a lane against brute force: what touches a column, how busy it is, what is longest in it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gptscope.app.viewmodels.timeline_pixels import MIN_INK, LaneEvents, columns, wide_events

GAPS_AND_LENGTHS = st.lists(
    st.tuples(st.integers(0, 12), st.one_of(st.just(0), st.integers(0, 40))), min_size=0, max_size=300
)


def lane_of(gaps_and_lengths: list[tuple[int, int]]) -> LaneEvents:
    """Events one after another; two of no length never stand at one moment, as the lanes of a trace have it."""
    starts, ends, now = [], [], 0
    for gap, length in gaps_and_lengths:
        start = now + gap
        if starts and ends[-1] == start == starts[-1]:
            start += 1
        starts.append(start)
        ends.append(start + length)
        now = start + length
    code = (np.arange(len(starts)) * 7 % 13).astype(np.uint8)
    return LaneEvents.build(
        np.arange(len(starts), dtype=np.int32), np.array(starts, float), np.array(ends, float), code
    )


@settings(max_examples=250, deadline=None)
@given(
    GAPS_AND_LENGTHS,
    st.floats(-20, 400, allow_nan=False),
    st.sampled_from([0.01, 0.3, 1.0, 2.5, 7.0, 60.0, 1000.0]),
    st.integers(1, 60),
)
def test_nothing_that_exists_in_a_pixel_column_is_invisible(
    events: list[tuple[int, int]], left: float, per_pixel: float, pixels: int
) -> None:
    lane = lane_of(events)
    edges = left + per_pixel * np.arange(pixels + 1)
    shown = columns(lane, edges)
    for p in range(pixels):
        a, b = edges[p], edges[p + 1]
        inside = [
            i
            for i in range(len(lane))
            if lane.start[i] < b and (lane.end[i] > a or (lane.start[i] == lane.end[i] and lane.start[i] >= a))
        ]
        assert bool(shown.touched[p]) == bool(inside)
        assert list(range(shown.first[p], shown.after[p])) == inside
        if not inside:
            assert shown.ink[p] == 0
            continue
        busy = sum(max(0.0, min(lane.end[i], b) - max(lane.start[i], a)) for i in inside)
        assert shown.ink[p] >= MIN_INK - 1e-6
        np.testing.assert_allclose(shown.ink[p], min(max(busy / (b - a), MIN_INK), 1), atol=1e-4)
        longest = max(lane.end[i] - lane.start[i] for i in inside)
        assert shown.code[p] in {lane.code[i] for i in inside if lane.end[i] - lane.start[i] == longest}


@settings(max_examples=150, deadline=None)
@given(GAPS_AND_LENGTHS, st.floats(-20, 400, allow_nan=False), st.sampled_from([0.3, 1.0, 2.5, 7.0]))
def test_every_event_of_four_pixels_or_more_is_found(
    events: list[tuple[int, int]], left: float, per_pixel: float
) -> None:
    lane = lane_of(events)
    edges = left + per_pixel * np.arange(41)
    found = set(wide_events(lane, columns(lane, edges), 4 * per_pixel).tolist())
    for i in range(len(lane)):
        whole = lane.start[i] >= edges[0] and lane.end[i] <= edges[-1]
        if whole and lane.end[i] - lane.start[i] >= 4 * per_pixel:
            assert i in found
    assert all(lane.end[i] - lane.start[i] >= 4 * per_pixel for i in found)


def test_many_events_in_one_column_give_the_longest_one_s_colour() -> None:
    length = np.ones(100_000)
    length[54_321] = 5
    end = np.cumsum(length)
    code = np.zeros(length.size, np.uint8)
    code[54_321] = 9
    lane = LaneEvents.build(np.arange(length.size, dtype=np.int32), end - length, end, code)
    shown = columns(lane, np.linspace(0, end[-1], 11))
    assert shown.code.tolist() == [0, 0, 0, 0, 0, 9, 0, 0, 0, 0]
    assert shown.ink.tolist() == [1.0] * 10


def test_the_event_under_a_moment_or_near_it() -> None:
    lane = lane_of([(10, 5), (10, 0), (3, 20)])  # [10, 15], [25, 25], [28, 48]
    assert lane.at(12, 0) == 0
    assert lane.at(24, 0) is None
    assert lane.at(24, 2) == 1
    assert lane.at(27, 2.5) == 2
    assert lane.at(100, 5) is None
