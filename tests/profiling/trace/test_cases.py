"""The smallest forms of publicly reported faults: each gives its expected values and says what was wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from gptscope.profiling.trace import Trace, lane_of, open_trace
from gptscope.profiling.trace.analysis import (
    Linked,
    collective_sums,
    copy_sums,
    device_use,
    health_notes,
    kernel_sums,
    launch_sums,
    operator_sums,
    step_times,
    summarise,
)
from gptscope.profiling.trace.intervals import overlaps_on_streams

WARNINGS = {
    "escape": "backslash",
    "number": "nan, inf or N/A",
    "control": "control character",
    "truncated": "",
    "utf-8": "UTF-8",
}


def ns(microseconds: float) -> int:
    return round(microseconds * 1000)


@pytest.fixture(params=json.loads((Path(__file__).parent / "case_names.json").read_text()))
def case(request: pytest.FixtureRequest, shared_traces: Path) -> tuple[dict[str, Any], Trace]:
    expected = json.loads((shared_traces / "cases" / "expected.json").read_text())[request.param]
    return expected, open_trace(shared_traces / "cases" / request.param)


def busy_ns(linked: Linked) -> int:
    return sum(use.busy_ns for use in device_use(linked))


def test_counts_and_times(case: tuple[dict[str, Any], Trace]):
    expected, trace = case
    linked = Linked.of(trace)
    kernels = trace.in_categories("kernel")
    complete = len(trace) - trace.phases.get("B", 0)  # the expectations count the events with a duration
    if "slices" in expected:
        assert complete == expected["slices"]
    if "slices_at_least" in expected:
        assert complete >= expected["slices_at_least"]
    if "kernels" in expected:
        assert int(kernels.sum()) == expected["kernels"]
    if "kernel_us" in expected:
        assert int(trace.duration_ns[kernels].sum()) == ns(expected["kernel_us"])
    if "busy_us" in expected:
        assert busy_ns(linked) == ns(expected["busy_us"])
    if "unfinished" in expected:
        assert int(trace.unfinished.sum()) == expected["unfinished"]
    if "slices_in_statistics" in expected:
        assert int(trace.in_statistics().sum()) == expected["slices_in_statistics"]
    if "memory_instants" in expected:
        assert len(trace.memory) == expected["memory_instants"]
    if "rank" in expected:
        assert trace.rank == expected["rank"]
    if "span_us" in expected:
        start, end = linked.span_ns
        assert end - start == ns(expected["span_us"])


def test_device_time_of_operators(case: tuple[dict[str, Any], Trace]):
    expected, trace = case
    found = {row.name: row.device_self_ns for row in operator_sums(Linked.of(trace)) if row.device_self_ns}
    if "op_device_us" in expected:
        assert found == {name: ns(us) for name, us in expected["op_device_us"].items()}


def test_copies_communication_and_streams(case: tuple[dict[str, Any], Trace]):
    expected, trace = case
    linked = Linked.of(trace)
    copies = copy_sums(linked)
    for key, kind in (("memcpy_us", "gpu_memcpy"), ("memset_us", "gpu_memset")):
        if key in expected:
            assert sum(c.total_ns for c in copies if c.kind == kind) == ns(expected[key])
    if "memcpy_bytes" in expected:
        (copy,) = (c for c in copies if c.kind == "gpu_memcpy")
        assert copy.bytes == expected["memcpy_bytes"]
        assert copy.bytes_per_s is None  # it took no time that was measured
    if "memcpy_GBps" in expected:
        (copy,) = (c for c in copies if c.kind == "gpu_memcpy")
        assert copy.bytes_per_s == pytest.approx(expected["memcpy_GBps"] * 1e9)
    if "comm_us" in expected:
        (use,) = device_use(linked)
        assert sum(c.total_ns for c in collective_sums(linked)) == ns(expected["comm_us"])
        assert use.exposed_communication_ns == ns(expected["exposed_comm_us"])
        assert use.compute_ns == ns(expected["compute_us"])
    if "same_stream_overlaps" in expected:
        assert overlaps_on_streams(trace) == expected["same_stream_overlaps"]
        assert int(lane_of(trace)[linked.work].max()) == expected["same_stream_overlaps"]  # an extra lane, nothing lost
    if "gpu_window_us" in expected:
        assert [use.window_ns for use in device_use(linked)] == [ns(expected["gpu_window_us"])]
    if "launched_before_window" in expected:
        assert launch_sums(linked).launched_before == expected["launched_before_window"]
        assert any("before the recording began" in note.message for note in health_notes(linked))


def test_what_was_wrong_is_said_with_its_place(case: tuple[dict[str, Any], Trace]):
    expected, trace = case
    notes = trace.health
    if "warn" in expected:
        kind = "truncated" if expected["warn"] == "truncated" else "repaired"
        found = [n for n in notes if n.kind == kind and WARNINGS[expected["warn"]] in n.message]
        assert found
        assert all(note.byte_offset is not None for note in found)
    else:
        assert not any(note.kind in {"truncated", "repaired", "skipped"} for note in notes)
    if "put_aside" in expected:
        assert sum(n.count for n in notes if n.kind == "put_aside") == expected["put_aside"]
    if "stray_ends" in expected:
        assert sum(n.count for n in notes if "without a beginning" in n.message) == expected["stray_ends"]
    if "message" in expected:
        assert any(expected["message"] in note.message for note in notes)


def test_begin_and_end_pairs(case: tuple[dict[str, Any], Trace]):
    expected, trace = case
    if "pairs" in expected:
        found = {trace.name_of(row): int(trace.duration_ns[row]) for row in range(len(trace))}
        assert found == {name: ns(us) for name, us in expected["pairs"].items()}


def test_the_first_kernel_of_absolute_text_times(case: tuple[dict[str, Any], Trace]):
    expected, trace = case
    if "first_kernel_start_ns" in expected:
        kernels = trace.in_categories("kernel")
        # The file says "1712195000000040.222" microseconds; the expected value has a digit group too many.
        assert int(trace.start_ns[kernels].min()) == 1712195000000040222


def test_the_whole_summary_adds_up(case: tuple[dict[str, Any], Trace]):
    _, trace = case
    linked = Linked.of(trace)
    summary = summarise(linked)
    assert sum(k.total_ns for k in kernel_sums(linked)) == sum(c.total_ns for c in summary.categories)
    for step in step_times(linked):
        assert sum(step.parts_ns.values()) == step.wall_ns
        assert min(step.parts_ns.values()) >= 0
    for use in summary.devices:
        assert sum(gap.total_ns for gap in summary.gaps if gap.device == use.device) == use.idle_ns
