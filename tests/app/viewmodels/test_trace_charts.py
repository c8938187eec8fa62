"""Charts of a trace hold what the tables hold: sums that add up, keys of rows, and reasons where there is nothing."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests_app_traces import LAYERS, STEPS, gpu_trace, write_trace

from gptscope.app.viewmodels.chart_data import ChartData
from gptscope.app.viewmodels.charts.bars import BarChart, ColumnChart
from gptscope.app.viewmodels.trace_page import TracePage
from gptscope.app.viewmodels.trace_tables import TABLES
from gptscope.profiling.trace import open_trace
from gptscope.profiling.trace.analysis import Linked


@pytest.fixture
def linked(tmp_path: Path) -> Linked:
    return Linked.of(open_trace(write_trace(tmp_path / "run.json")))


def chart_of(page: TracePage) -> BarChart | ColumnChart | ChartData:
    assert page.chart is not None
    return page.chart.chart


def bars_of(linked: Linked, tab: str) -> BarChart:
    chart = chart_of(TABLES[tab].make(linked))
    assert isinstance(chart, BarChart)
    return chart


@pytest.mark.parametrize("tab", ["kernels", "operators", "modules", "devices", "gaps"])
def test_every_part_of_a_bar_is_a_row_and_no_time_is_lost(linked: Linked, tab: str) -> None:
    page = TABLES[tab].make(linked)
    chart = chart_of(page)
    assert isinstance(chart, BarChart)
    keys = {part.key for row in chart.rows for part in row.parts} | {row.key for row in chart.rows}
    assert keys <= set(page.table.keys)
    title = {"kernels": "Total ms", "operators": "Device self ms", "modules": "Device self ms"}.get(tab, "Total ms")
    title = "Window ms" if tab == "devices" else title
    (column,) = [column for column in page.table.columns if column.title == title]
    assert sum(row.length for row in chart.rows) == pytest.approx(float(np.sum(column.values)))
    assert len({row.key for row in chart.rows}) == len(chart.rows)


def test_steps_are_filled_by_parts_that_add_up_to_them(linked: Linked) -> None:
    page = TABLES["steps"].make(linked)
    chart = chart_of(page)
    assert isinstance(chart, ColumnChart)
    assert chart.keys == tuple(page.table.keys)
    filled = np.sum([layer.heights for layer in chart.layers], axis=0)
    assert filled == pytest.approx(page.table.columns[1].values)
    assert [text for _, text in chart.x_axis.ticks] == ["0", "1", "2"]


def test_launches_are_counted_once_in_columns_of_round_times(linked: Linked) -> None:
    chart = chart_of(TABLES["launches"].make(linked))
    assert isinstance(chart, ColumnChart)
    assert sum(chart.layers[0].heights) == STEPS * LAYERS * 5
    first = chart.keys[0].split("\n")
    assert float(first[1]) <= 8_000 < float(first[2])
    assert chart.x_axis.ticks[0][1] == "5 µs"


def test_memory_over_time_has_its_peak_where_the_trace_has_it(linked: Linked) -> None:
    page = TABLES["memory"].make(linked)
    chart = chart_of(page)
    assert isinstance(chart, ChartData)
    assert chart.points[0].y == pytest.approx((1e6 + STEPS * LAYERS * 5 * 4096) / 1e6)
    assert chart.lines[0].end_label == "CUDA 0 at most 1.25 MB"
    assert page.chart is not None
    assert page.chart.read_out is not None
    assert page.chart.read_out(chart, chart.points[0].x).endswith("CUDA 0 1.25 MB")


def test_many_allocations_keep_their_extremes_and_the_value_that_holds_between_them(tmp_path: Path) -> None:
    trace = gpu_trace()
    trace["traceEvents"] = [event for event in trace["traceEvents"] if event["name"] != "[memory]"]
    for burst in (1_000_100, 1_000_900):
        for number in range(600):
            total = 9_000_000 if number % 2 else 5_000_000
            args = {
                "Device Type": 1,
                "Device Id": 0,
                "Bytes": 1,
                "Total Allocated": 1_000_000 if number == 599 else total,
            }
            event = {
                "ph": "i",
                "s": "t",
                "name": "[memory]",
                "pid": 1,
                "tid": 10,
                "ts": burst + number / 10,
                "args": args,
            }
            trace["traceEvents"].append(event)
    path = tmp_path / "many.json"
    path.write_text(json.dumps(trace))
    chart = chart_of(TABLES["memory"].make(Linked.of(open_trace(path))))
    assert isinstance(chart, ChartData)
    (line,) = chart.lines
    assert line.x.size < 850
    assert (line.y.min(), line.y.max()) == (1, 9)
    between = (line.x > 0.17) & (line.x < 0.89)
    assert not between.any()
    left, right = np.flatnonzero(line.x < 0.5)[-1], np.flatnonzero(line.x > 0.5)[0]
    assert line.y[left] == line.y[right] == 1


def gpu(name: str, tmp_path: Path, *more: dict[str, Any]) -> Linked:
    """A matrix product with types and shapes on a device of this name."""
    trace = gpu_trace()
    trace["deviceProperties"][0]["name"] = name
    for event in trace["traceEvents"]:
        if event["name"] == "aten::linear":
            event["name"] = "aten::mm"
            event["args"]["Input type"] = ["c10::BFloat16", "c10::BFloat16"]
    trace["traceEvents"] += more
    path = tmp_path / "typed.json"
    path.write_text(json.dumps(trace))
    return Linked.of(open_trace(path))


def test_the_roofline_has_roofs_only_for_a_device_that_is_known_by_its_name(tmp_path: Path) -> None:
    known, unknown = (gpu(name, tmp_path) for name in ("NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-81GB"))
    for linked in (known, unknown):
        page = TABLES["roofline"].make(linked)
        chart = chart_of(page)
        assert isinstance(chart, ChartData)
        assert {point.key for point in chart.points} == set(page.table.keys)
        assert {point.category for point in chart.points} == {"GEMM"}
        flops, n_bytes = 2 * 8 * 64 * 64, 2 * (8 * 64 + 64 * 64 + 8 * 64)
        assert chart.points[0].x == pytest.approx(flops / n_bytes)
        assert bool(chart.lines) == (linked is known)
        assert page.chart is not None
        assert page.chart.chip == ("roofs published" if linked is known else "roofs not known")
    top = chart_of(TABLES["roofline"].make(known)).lines[0]  # type: ignore[union-attr]
    assert float(top.y.max()) == 312_000
    assert float(top.y[0] / top.x[0]) == pytest.approx(2039)


def test_copies_of_one_size_are_one_point_of_their_common_bandwidth(tmp_path: Path) -> None:
    copies = [
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 9, "ts": ts,
         "dur": dur, "args": {"device": 0, "stream": 9, "bytes": size}}
        for ts, dur, size in ((1_000_000, 10, 1_000_000), (1_000_050, 30, 1_000_000), (1_000_090, 1, 8))
    ]  # fmt: skip
    page = TABLES["copies"].make(gpu("GPU", tmp_path, *copies))
    chart = chart_of(page)
    assert isinstance(chart, ChartData)
    assert [(point.x, point.y) for point in chart.points] == [(1.0, pytest.approx(50.0)), (8e-6, pytest.approx(0.008))]
    assert {point.key for point in chart.points} == set(page.table.keys)


def test_what_a_trace_lacks_is_said_with_the_option_that_records_it(tmp_path: Path) -> None:
    path = tmp_path / "cpu.json"
    operator = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5, "args": {}}
    path.write_text(json.dumps({"traceEvents": [operator]}))
    linked = Linked.of(open_trace(path))
    reasons = {tab: chart_of(page).empty for tab in TABLES if (page := TABLES[tab].make(linked)).chart is not None}
    assert "profile_memory=True" in reasons["memory"]
    assert "record_shapes=True" in reasons["roofline"]
    for tab in ("devices", "gaps", "launches"):
        assert "profiler activity CUDA" in reasons[tab]
    assert all(not reason or reason.startswith("n/a: ") for reason in reasons.values())
    assert bars_of(linked, "kernels").rows[0].text == "0.00500 ms, 100 %"
