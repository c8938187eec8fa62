"""The timeline of a trace: groups, lanes, colours, sums of ranges, links, search, counters."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_app_traces import LAYERS, STEPS, write_trace

from gptscope.app.cli.trace_opening import open_linked
from gptscope.app.viewmodels.timeline_axis import Axis, ticks
from gptscope.app.viewmodels.timeline_codes import NAMES
from gptscope.app.viewmodels.timeline_counters import CounterLane, counter_columns
from gptscope.app.viewmodels.timeline_links import links_of
from gptscope.app.viewmodels.timeline_model import Timeline
from gptscope.app.viewmodels.timeline_search import alike, find
from gptscope.app.viewmodels.timeline_work import Pieces, WorkSums
from gptscope.app.viewmodels.trace_details import argument_lines, event_lines
from gptscope.profiling.trace import open_trace


@pytest.fixture(scope="module")
def timeline(tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    return Timeline(open_trace(write_trace(tmp_path_factory.mktemp("trace") / "trace.json")))


def cpu_timeline(folder: Path, events: list[dict[str, Any]]) -> Timeline:
    path = folder / "cpu.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return Timeline(open_trace(path))


def op(name: str, start: float, length: float, tid: int = 1) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": tid, "ts": start, "dur": length}


def test_steps_and_modules_stand_above_streams_and_these_above_threads(timeline: Timeline) -> None:
    assert [(g.kind, g.title) for g in timeline.groups] == [
        ("steps", "Steps"),
        ("modules", "Modules"),
        ("stream", "stream 7"),
        ("thread", "thread 10 (main)"),
        ("thread", "thread 11"),
    ]
    modules = timeline.groups[1]
    assert [len(lane) for lane in modules.lanes] == [STEPS * LAYERS, STEPS * LAYERS * 5]
    assert timeline.label(int(modules.lanes[0].rows[0])) == "blocks.0"


def test_labels_and_titles_are_one_line_and_steer_nothing(tmp_path: Path) -> None:
    named = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "a\nb"}}
    timeline = cpu_timeline(tmp_path, [op("x\ny\u202e", 0, 5), named])
    assert timeline.label(0) == "x\\ny\\u202e"
    assert "a\\nb" in timeline.groups[0].title
    assert timeline.trace.names[timeline.trace.name[0]] == "x\ny\u202e"
    lines = event_lines(timeline, 0)
    assert lines[0] == ("Event", "x\\ny\\u202e")
    assert lines[-1] == ("Whole name", "x\\ny\\u202e")
    assert argument_lines({"a\n": "\x1b[2J"}) == (("a\\n", "\\x1b[2J"),)


def test_times_count_from_the_program_s_first_event_as_in_the_terminal(tmp_path: Path) -> None:
    frame = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": 1, "tid": 1, "ts": 100, "dur": 9_000}
    hidden = frame | {"tid": 9, "ts": 1}
    timeline = cpu_timeline(tmp_path, [hidden, frame, op("early", 3_100, 50), op("late", 5_100, 900)])
    _, around, _, late = range(4)
    assert timeline.span == 2_900e3
    assert timeline.times(late) == (2_000e3, 2_900e3)
    assert (
        dict(event_lines(timeline, late))["Begins at"].replace("\N{NARROW NO-BREAK SPACE}", "")
        == "2.00 ms (2000000 ns)"
    )
    low, high = (moment / 1e6 for moment in timeline.times(late))
    assert open_linked(tmp_path / "cpu.json", (low, high)).operators.tolist() == [late]
    assert timeline.times(around) == (-3_000e3, 6_000e3), "what lies around the program stays visible"
    assert (timeline.first, timeline.last) == timeline.times(around)
    assert timeline.place_of(around) is not None
    axis = Axis.whole(timeline.first, timeline.last)
    assert axis.is_whole
    assert axis.to(-2_900e3, -2_800e3).start == -2_900e3
    assert ticks(axis, 10).labels[:2] == ("\N{MINUS SIGN}3", "\N{MINUS SIGN}2")


def test_every_event_is_in_exactly_one_lane_and_lanes_do_not_overlap(timeline: Timeline) -> None:
    rows = np.concatenate([lane.rows for group in timeline.groups for lane in group.lanes])
    assert sorted(rows[rows >= 0].tolist()) == list(range(len(timeline.trace)))
    for group in timeline.groups:
        for lane in group.lanes:
            assert (lane.start[1:] >= lane.end[:-1]).all()
    for row in range(0, len(timeline.trace), 7):
        place = timeline.place_of(row)
        assert place is not None
        assert row in timeline.groups[place[0]].lanes[place[1]].rows


def test_work_has_its_category_s_colour_and_containers_have_none(timeline: Timeline) -> None:
    kinds = {timeline.trace.name_of(row): NAMES[timeline.codes[row]] for row in range(len(timeline.trace))}
    assert kinds["flash_fwd_kernel"] == "attention"
    assert kinds["ampere_bf16_s16816gemm_bf16_128x128_tn"] == "GEMM"
    assert kinds["aten::linear"] == "container"
    assert kinds["ProfilerStep#1"] == "step"
    assert kinds["cudaDeviceSynchronize"] == "waiting"


def test_an_operator_has_its_colour_when_it_does_most_of_its_time_itself(tmp_path: Path) -> None:
    events = [op("aten::mm", 0, 100), op("aten::view", 10, 2), op("aten::linear", 200, 100), op("aten::addmm", 205, 90)]
    made = cpu_timeline(tmp_path, events)
    kinds = {made.trace.name_of(row): NAMES[made.codes[row]] for row in range(len(made.trace))}
    assert kinds == {"aten::mm": "GEMM", "aten::view": "GEMM", "aten::linear": "container", "aten::addmm": "GEMM"}


def test_links_lead_from_kernel_to_launch_and_operator_and_back(timeline: Timeline) -> None:
    trace = timeline.trace
    kernel = int(np.flatnonzero(trace.named_so("flash_fwd_kernel".__eq__))[3])
    found = {link.relation: trace.name_of(link.row) for link in links_of(timeline, kernel).links}
    assert found == {"launch": "cudaLaunchKernel", "operator": "aten::scaled_dot_product_attention"}
    operator = next(link.row for link in links_of(timeline, kernel).links if link.relation == "operator")
    assert kernel in [link.row for link in links_of(timeline, operator).links if link.relation == "kernel"]


def test_flows_without_correlation_are_followed(tmp_path: Path) -> None:
    arrows = [
        {"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": 5, "pid": 1, "tid": 1, "ts": 12},
        {"ph": "f", "cat": "fwdbwd", "name": "fwdbwd", "id": 5, "pid": 1, "tid": 2, "ts": 40, "bp": "e"},
    ]
    made = cpu_timeline(tmp_path, [op("aten::mm", 10, 5), op("MmBackward0", 40, 9, 2), *arrows])
    assert [(link.relation, link.row) for link in links_of(made, 0).links] == [("sent", 1)]
    assert [(link.relation, link.row) for link in links_of(made, 1).links] == [("flow", 0)]


def test_search_goes_round_and_alike_finds_the_same_name(timeline: Timeline) -> None:
    found = find(timeline, "FLASH fwd")
    assert len(found) == STEPS * LAYERS
    first = found.step(None, -1.0, 1)
    assert first == found.rows[0]
    assert found.step(first, 0, -1) == found.rows[-1]
    assert found.step(int(found.rows[-1]), 0, 1) == found.rows[0]
    assert alike(timeline, int(found.rows[4])).rows.tolist() == found.rows.tolist()
    assert len(find(timeline, "   ")) == 0


def test_own_time_of_operators_is_what_a_range_sums_up(tmp_path: Path) -> None:
    events = [op("aten::outer", 0, 100), op("aten::mm", 10, 30), op("aten::add", 50, 20), op("aten::mm", 5, 50, 2)]
    made = cpu_timeline(tmp_path, events)
    whole = {one.category: (one.calls, one.ns) for one in made.sums.in_range(0, 100_000).categories}
    assert whole == {"GEMM": (2, 80_000), "elementwise": (1, 20_000), "other": (1, 50_000)}
    part = made.sums.in_range(20_000, 60_000)
    assert {one.category: one.ns for one in part.categories} == {
        "GEMM": 20_000 + 35_000,
        "elementwise": 10_000,
        "other": 10_000,
    }
    assert (part.busy_ns, part.gap_ns, part.gaps) == (40_000, 0, 0)


SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 25), st.integers(0, 2)), max_size=30)


@settings(max_examples=200, deadline=None)
@given(SPANS, st.integers(0, 80), st.integers(1, 40))
def test_range_sums_equal_brute_force_moment_by_moment(
    spans: list[tuple[int, int, int]], low: int, length: int
) -> None:
    start = np.array([s for s, _, _ in spans], np.int64)
    end = start + np.array([d for _, d, _ in spans], np.int64)
    code = np.array([c for _, _, c in spans], np.int8)
    sums = WorkSums(Pieces(start, end, code, np.ones(code.size, bool)), 0).in_range(low, low + length)
    moments = range(low, low + length)
    for kind in range(3):
        expected = sum(s <= t < s + d for s, d, c in spans if c == kind for t in moments)
        assert sum(one.ns for one in sums.categories if one.category == NAMES[kind]) == expected
    busy = [any(s <= t < s + d for s, d, _ in spans) for t in moments]
    assert sums.busy_ns == sum(busy)
    runs = sum(not now and (i == 0 or busy[i - 1]) for i, now in enumerate(busy))
    assert sums.gaps == runs
    assert sums.gap_ns == busy.count(False)


def test_shares_of_the_minimap_never_exceed_the_pixel(timeline: Timeline) -> None:
    codes, shares = timeline.sums.shares(np.linspace(0, timeline.span, 301))
    assert len(codes) == len(shares)
    assert (shares >= 0).all()
    assert shares.sum(axis=0).max() <= 1 + 1e-9


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(-5, 5)), min_size=1, max_size=20), st.integers(1, 12))
def test_every_counter_sample_is_in_some_column(samples: list[tuple[int, int]], pixels: int) -> None:
    samples = sorted(samples, key=lambda one: one[0])
    time, value = (np.array(column, float) for column in zip(*samples, strict=True))
    low, high, known = counter_columns(CounterLane("c", "", time, value), np.linspace(-1, 51, pixels + 1))
    for when, what in samples:
        column = min(int((when + 1) / 52 * pixels), pixels - 1)
        assert known[column]
        assert low[column] <= what <= high[column]


def test_counters_and_memory_of_the_trace_have_lanes(timeline: Timeline) -> None:
    assert [(c.name, len(c.time)) for c in timeline.counters] == [
        ("GPU Utilization, percent", STEPS * LAYERS),
        ("Memory, GPU 0", STEPS * LAYERS),
    ]


def test_a_trace_of_another_program_is_coloured_by_its_leaves(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    rows = [
        {"ph": "X", "name": n, "pid": 1, "tid": 1, "ts": s, "dur": d} for n, s, d in (("run", 0, 9), ("gemm", 2, 3))
    ]
    path.write_text(json.dumps(rows))
    made = Timeline(open_trace(path))
    assert [NAMES[code] for code in made.codes] == ["container", "GEMM"]
    assert made.sums.in_range(0, 9000).busy_ns == 3000


@pytest.mark.parametrize("name", ["07-truncated.json", "13-pdl-same-stream-overlap.json", "15-unfinished.json",
                                  "31-empty-events.json", "32-be-pairs.json", "34-mixed-pid-tid.json"])  # fmt: skip
def test_odd_traces_have_a_timeline_too(name: str, shared_traces: Path) -> None:
    made = Timeline(open_trace(shared_traces / "cases" / name))
    shown = sum((lane.rows >= 0).sum() for group in made.groups for lane in group.lanes)
    assert shown == int(made.trace.in_statistics().sum())
    made.sums.in_range(0, round(made.span))
