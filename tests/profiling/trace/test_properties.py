"""Intervals, nesting, pairs and lanes against plain programs that cannot be wrong."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gptscope.profiling.trace.grouping import group_by, heaviest
from gptscope.profiling.trace.intervals import Cover, merged, overlap_ns, union_ns
from gptscope.profiling.trace.lanes import free_lanes
from gptscope.profiling.trace.matching import look_up
from gptscope.profiling.trace.nested import above, depths, nearest, nest_rows
from gptscope.profiling.trace.pairs import BEGIN, END, pair_up
from gptscope.profiling.trace.times import MISSING_NS, decimal_ns

intervals = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=30)


def columns(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    start = np.array([s for s, _ in rows], dtype=np.int64)
    return start, start + np.array([n for _, n in rows], dtype=np.int64)


@settings(deadline=None)
@given(intervals, intervals)
def test_a_cover_knows_how_much_of_any_interval_it_covers(held: list[tuple[int, int]], asked: list[tuple[int, int]]):
    covered = {t for s, n in held for t in range(s, s + n)}
    cover = Cover(*columns(held))
    assert cover.total_ns == len(covered)
    expected = [len(covered & set(range(s, s + n))) for s, n in asked]
    assert cover.within(*columns(asked)).tolist() == expected
    start, end = merged(*columns(held))
    assert (end > start).all()
    assert (start[1:] > end[:-1]).all()
    assert {t for s, e in zip(start.tolist(), end.tolist(), strict=True) for t in range(s, e)} == covered
    assert union_ns(*columns(held)) == len(covered)
    open_at = [sum(s <= t < s + n for s, n in held) for t in covered]
    assert overlap_ns(*columns(held)) == sum(count >= 2 for count in open_at)


@st.composite
def nested_rows(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Rows that only nest: (track, start, duration)."""
    rows: list[tuple[int, int, int]] = []

    def fill(track: int, start: int, end: int, depth: int) -> None:
        at = start
        while at < end and draw(st.booleans()):
            begin = draw(st.integers(at, end))
            stop = draw(st.integers(begin, end))
            rows.append((track, begin, stop - begin))
            if depth and stop > begin:
                fill(track, begin, stop, depth - 1)
            at = stop + 1

    for track in range(draw(st.integers(1, 3))):
        fill(track, 0, 60, 3)
    return draw(st.permutations(rows))


def parents_by_hand(rows: list[tuple[int, int, int]]) -> dict[int, int]:
    """Innermost longer row around each, on the same track."""
    order = sorted(range(len(rows)), key=lambda i: (rows[i][0], rows[i][1], -rows[i][2], i))
    place = {row: i for i, row in enumerate(order)}
    found = {}
    for one in range(len(rows)):
        track, start, _ = rows[one]
        around = [
            other
            for other in range(len(rows))
            if rows[other][0] == track and place[other] < place[one] and rows[other][1] <= start < sum(rows[other][1:])
        ]
        found[one] = max(around, key=lambda o: place[o]) if around else -1
    return found


@settings(deadline=None)
@given(nested_rows())
def test_nesting_finds_the_innermost_row_around_each(rows: list[tuple[int, int, int]]):
    track, start, duration = (np.array([r[i] for r in rows], dtype=np.int64) for i in range(3))
    nested = nest_rows(track, start, duration)
    assert not nested.crossing
    parent = {}
    for place, up in enumerate(nested.parent.tolist()):
        parent[int(nested.order[place])] = int(nested.order[up]) if up >= 0 else -1
    assert parent == parents_by_hand(rows)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 30)), max_size=25))
def test_nesting_of_crossing_rows_keeps_order_and_knows_it(rows: list[tuple[int, int, int]]):
    track, start, duration = (np.array([r[i] for r in rows], dtype=np.int64) for i in range(3))
    nested = nest_rows(track, start, duration)
    inside = nested.parent >= 0
    assert (nested.parent[inside] < np.flatnonzero(inside)).all()
    child, outer = nested.order[inside], nested.order[nested.parent[inside]]
    assert (track[child] == track[outer]).all()
    assert (start[outer] <= start[child]).all()
    assert (start[child] < start[outer] + duration[outer]).all()
    crosses = any(a[0] == b[0] and a[1] < b[1] < a[1] + a[2] < b[1] + b[2] for a in rows for b in rows)
    assert nested.crossing == crosses


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 20), st.booleans()), max_size=20))
def test_the_nearest_stop_is_found_along_the_parents(nodes: list[tuple[int, bool]]):
    parent = np.array([min(up, i - 1) for i, (up, _) in enumerate(nodes)], dtype=np.int64)
    stops = np.array([stop for _, stop in nodes], dtype=bool)

    def climb(at: int) -> int:
        while at >= 0 and not stops[at]:
            at = int(parent[at])
        return at

    assert nearest(stops, parent).tolist() == [climb(i) for i in range(len(nodes))]
    assert above(stops, parent).tolist() == [climb(int(parent[i])) for i in range(len(nodes))]
    depth: list[int] = []
    for up in parent.tolist():
        depth.append(depth[up] + 1 if up >= 0 else 0)
    assert depths(parent).tolist() == depth


def test_rows_nested_beyond_all_measure_are_placed_all_the_same():
    deep = 3000
    start = np.append(np.arange(deep), 2 * deep)
    end = np.append(4 * deep - np.arange(deep), 2 * deep + 1)
    end[1:deep] -= 2 * deep  # all but the first have ended when the last one begins
    nested = nest_rows(np.zeros(deep + 1, dtype=np.int32), start, end - start)
    assert nested.order.tolist() == list(range(deep + 1))
    assert nested.parent.tolist() == [*range(-1, deep - 1), 0]
    assert nested.depth.tolist() == [*range(deep), 1]
    assert not nested.crossing


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from([BEGIN, END]), st.integers(0, 3)), max_size=30))
def test_ends_close_the_newest_open_beginning(events: list[tuple[int, int, int]]):
    group, kind, name = (np.array([e[i] for e in events], dtype=np.int64) for i in range(3))
    pairs = pair_up(kind.astype(np.int8), group, name.astype(np.int32), np.arange(len(events)), unnamed=0)
    opened: dict[int, list[int]] = {0: [], 1: []}
    expected, stray = {}, 0
    for i, (thread, what, called) in enumerate(events):
        if what == BEGIN:
            opened[thread].append(i)
            expected[i] = -1
            continue
        fitting = [o for o in opened[thread] if called in {0, events[o][2]}]
        if fitting:
            opened[thread].remove(fitting[-1])
            expected[fitting[-1]] = i
        else:
            stray += 1
    assert dict(zip(pairs.begin.tolist(), pairs.end.tolist(), strict=True)) == expected
    assert pairs.stray_ends == stray


@settings(deadline=None)
@given(intervals)
def test_no_two_intervals_of_a_lane_overlap(rows: list[tuple[int, int]]):
    rows = sorted(rows, key=lambda r: (r[0], -r[1]))
    start, end = columns(rows)
    lanes = free_lanes(start, end)
    for lane in set(lanes.tolist()):
        here = lanes == lane
        assert (start[here][1:] >= end[here][:-1]).all()


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(-3, 4), st.sampled_from([0, 1, 2**61, -(2**61)]), st.integers(0, 9)), max_size=30)
)
def test_groups_add_up(entries: list[tuple[int, int, int]]):
    first, second, value = (np.array([e[i] for e in entries], dtype=np.int64) for i in range(3))
    groups = group_by(first, second)
    by_hand: dict[tuple[int, int], list[int]] = {}
    for a, b, v in entries:
        by_hand.setdefault((a, b), []).append(v)
    keys = [(int(first[i]), int(second[i])) for i in groups.first]
    assert keys == sorted(by_hand)
    pairs = [(a, b) for a, b, _ in entries]
    assert [keys[number] for number in groups.of] == pairs
    assert groups.first.tolist() == [pairs.index(key) for key in keys]
    assert {k: int(s) for k, s in zip(keys, groups.sums(value), strict=True)} == {k: sum(v) for k, v in by_hand.items()}
    assert {k: int(n) for k, n in zip(keys, groups.sizes(), strict=True)} == {k: len(v) for k, v in by_hand.items()}
    if entries:
        assert {k: int(m) for k, m in zip(keys, groups.most(value), strict=True)} == {
            k: max(v) for k, v in by_hand.items()
        }
        assert heaviest(groups, first, value).tolist() == [k[0] for k in keys]


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from([0, 1, -9, 120])] * 5), min_size=1, max_size=40))
def test_many_narrow_columns_group_like_one(entries: list[tuple[int, ...]]):
    columns = [np.array(column, dtype=np.int8) for column in zip(*entries, strict=True)]
    groups = group_by(*columns)
    assert [entries[i] for i in groups.first] == sorted(set(entries))
    assert [sorted(set(entries))[number] for number in groups.of] == entries


ids = st.sampled_from([0, 1, 2, 5, -3, 100, 127, -128])


@settings(deadline=None)
@given(st.lists(ids, max_size=20), st.lists(ids, max_size=20), st.sampled_from([1, 2**40]))
def test_ids_are_found_in_the_last_row_that_has_them(keys: list[int], wanted: list[int], factor: int):
    kind = np.int8 if factor == 1 else np.int64
    rows = np.arange(len(keys), dtype=np.int64) * 3
    found = look_up(np.array(keys, dtype=kind) * factor, rows, np.array(wanted, dtype=kind) * factor)
    last = dict(zip(keys, rows.tolist(), strict=True))
    assert found.tolist() == [last.get(one, -1) if one else -1 for one in wanted]


@settings(deadline=None)
@given(st.decimals(-(10**15), 10**15, places=6, allow_nan=False))
def test_decimal_times_round_to_the_nearest_nanosecond(microseconds):
    exact = microseconds * 1000
    assert abs(decimal_ns(format(microseconds, "f")) - exact) <= 0.5
    assert decimal_ns("x") == MISSING_NS


@pytest.mark.skipif(sys.platform == "win32", reason="the script forks")
def test_damaged_traces_are_read_or_refused(shared_traces: Path, tmp_path: Path, repository: Path):
    names = ("hta-a100-eventsync.json.gz", "tl-mi300x-compile-triton.json.gz", "chrome-tf-traceviewer.json")
    files = [str(shared_traces / "real" / name) for name in names]
    command = [sys.executable, "benchmarks/trace_fuzz.py", *files, "--rounds", "25", "--keep", str(tmp_path)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
