"""Exports of traces: nothing is lost, everything can be read back."""

import csv
import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptscope.profiling.export import ExportError
from gptscope.profiling.export.perfetto import export_perfetto, time_us
from gptscope.profiling.export.stacks import export_folded, export_speedscope, folded
from gptscope.profiling.export.tensorboard import export_tensorboard
from gptscope.profiling.export.trace_formats import TRACE_FORMATS
from gptscope.profiling.export.trace_markdown import trace_markdown
from gptscope.profiling.export.trace_rows import nesting_lanes, rows_in
from gptscope.profiling.export.trace_tables import export_difference, export_table_csv, export_table_npz
from gptscope.profiling.trace import Trace, open_trace
from gptscope.profiling.trace.analysis import (
    Linked,
    advise,
    diff_traces,
    health_notes,
    kernel_sums,
    operator_sums,
    summarise,
)
from gptscope.profiling.trace.analysis.diff import LEVELS
from gptscope.profiling.trace.nested import nest_rows

REAL = ("hta-a100-eventsync.json.gz", "tl-mi300x-compile-triton.json.gz", "kineto-gpumetrics-counters.json")


def slice_event(name: str, start: float, duration: float, tid: Any = 7, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": tid, "ts": start, "dur": duration, **more}


@pytest.fixture
def overlapping(tmp_path: Path) -> Trace:
    """Two kernels that cross on one stream, with arrows, odd characters and numbers that JSON lacks."""
    path = tmp_path / "in.json"
    events = [
        slice_event("a", 10, 20, args={"bandwidth": 1.5}),
        slice_event('b "quoted"\n', 20, 30),
        slice_event("inside b", 35, 5),
        slice_event("next", 60, 0),
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7"}},
        {"ph": "s", "id": 1, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 10},
        {"ph": "f", "id": 1, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 20},
        {"ph": "C", "name": "memory", "pid": 0, "ts": 11, "args": {"bytes": 5}},
        {"ph": "i", "name": "mark", "pid": 0, "tid": 7, "ts": 12, "args": {"x": 1}},
    ]
    path.write_text(json.dumps({"deviceProperties": [{"id": 0}], "traceEvents": events}).replace("1.5", "inf"))
    return open_trace(path)


def strict(text: str) -> Any:
    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_chrome_export_is_strict_and_its_tracks_only_nest(overlapping: Trace, tmp_path: Path):
    path = export_perfetto(overlapping, tmp_path / "out.json")
    document = strict(path.read_text())
    assert document["deviceProperties"] == [{"id": 0}]
    slices = [e for e in document["traceEvents"] if e["ph"] == "X"]
    assert len(slices) == 4
    by_name = {e["name"]: e for e in slices}
    assert by_name["a"]["tid"] == 7
    assert by_name['b "quoted"\n']["tid"] == by_name["inside b"]["tid"] != 7
    assert by_name["a"]["args"] == {"bandwidth": None}
    names = {e["tid"]: e["args"]["name"] for e in document["traceEvents"] if e["name"] == "thread_name"}
    assert names[by_name["inside b"]["tid"]] == "stream 7 (overlapping 1)"
    arrow = next(e for e in document["traceEvents"] if e["ph"] == "f")
    assert arrow["tid"] == by_name['b "quoted"\n']["tid"]  # it follows its slice


def test_the_chrome_export_read_back_is_the_same_trace(overlapping: Trace, tmp_path: Path):
    back = open_trace(export_perfetto(overlapping, tmp_path / "out.json.gz"))
    for column in ("start_ns", "duration_ns"):
        assert getattr(back, column).tolist() == getattr(overlapping, column).tolist()
    assert [back.name_of(i) for i in range(4)] == [overlapping.name_of(i) for i in range(4)]
    assert (len(back.flows), len(back.counters), len(back.instants)) == (2, 1, 1)
    assert not back.health


@pytest.mark.parametrize("name", REAL)
def test_real_traces_survive_the_chrome_export(name: str, shared_traces: Path, tmp_path: Path):
    trace = open_trace(shared_traces / "real" / name)
    back = open_trace(export_perfetto(trace, tmp_path / "out.json"))
    assert back.start_ns.tolist() == trace.start_ns.tolist()
    assert back.duration_ns.tolist() == trace.duration_ns.tolist()
    assert back.correlation.tolist() == trace.correlation.tolist()
    assert [back.args(i) for i in range(0, len(back), 7)] == [trace.args(i) for i in range(0, len(trace), 7)]
    assert (len(back.flows), len(back.counters)) == (len(trace.flows), len(trace.counters))
    assert kernel_sums(Linked.of(back)) == kernel_sums(Linked.of(trace))
    rows = rows_in(back, None)
    assert not nesting_lanes(back, rows).any()
    assert not nest_rows(back.track, back.start_ns, back.duration_ns).crossing


def test_a_range_holds_what_lies_in_it_at_least_partly(overlapping: Trace, tmp_path: Path):
    document = json.loads(export_perfetto(overlapping, tmp_path / "out.json", (26_000, 40_000)).read_text())
    assert sorted(e["name"] for e in document["traceEvents"] if e["ph"] == "X") == ["a", 'b "quoted"\n', "inside b"]


@pytest.mark.parametrize(
    ("ns", "text"), [(0, "0"), (1, "0.001"), (-1500, "-1.500"), (1712195000000040222, "1712195000000040.222")]
)
def test_times_are_written_with_every_digit(ns: int, text: str):
    assert bytes(time_us(ns)).decode() == text


def test_the_tensorboard_folder_has_the_names_that_the_plugin_knows(shared_traces: Path, tmp_path: Path):
    trace = open_trace(shared_traces / "real" / "tl-mi300x-compile-triton.json.gz")
    path = export_tensorboard(trace, tmp_path / "logs", "run")
    assert path == tmp_path / "logs" / "run" / "rank0.pt.trace.json.gz"
    back = open_trace(path)
    written = gzip.decompress(path.read_bytes())
    assert b'"Runtime"' in written
    assert b'"cuda_runtime"' not in written
    assert {row.name: row.device_self_ns for row in operator_sums(Linked.of(back))} == {
        row.name: row.device_self_ns for row in operator_sums(Linked.of(trace))
    }
    with pytest.raises(ExportError, match="a file of that name"):
        export_tensorboard(trace, tmp_path / "logs", "run")


def test_tables_are_written_as_csv_and_as_arrays(shared_traces: Path, tmp_path: Path):
    linked = Linked.of(open_trace(shared_traces / "real" / "tl-mi300x-compile-triton.json.gz"))
    kernels = kernel_sums(linked)
    with export_table_csv(linked, "kernels", tmp_path / "k.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == [k.name for k in kernels]
    assert [int(row["total_ns"]) for row in rows] == [k.total_ns for k in kernels]
    arrays = np.load(export_table_npz(linked, "kernels", tmp_path / "k.npz"))
    assert arrays["total_ns"].tolist() == [k.total_ns for k in kernels]
    assert all(math.isnan(x) for x, k in zip(arrays["flops"], kernels, strict=True) if k.flops is None)
    events = np.load(export_table_npz(linked, "events", tmp_path / "e.npz"))
    assert events["start_ns"].tolist() == linked.trace.start_ns.tolist()
    assert events["names"][events["name"][0]] == linked.trace.name_of(0)
    with pytest.raises(ExportError, match="There is no table"):
        export_table_csv(linked, "x", tmp_path / "x.csv")
    with pytest.raises(ExportError, match="The table collectives is empty"):
        export_table_csv(linked, "collectives", tmp_path / "x.csv")


def test_advice_and_health_are_tables_as_others(shared_traces: Path, tmp_path: Path):
    for file in sorted((shared_traces / "real").glob("[hkt]*-*"))[::4]:
        linked = Linked.of(open_trace(file))
        advice, notes = advise(linked), health_notes(linked)
        with export_table_csv(linked, "advice", tmp_path / "a.csv", overwrite=True).open(newline="") as table:
            rows = list(csv.DictReader(table))
        assert [row["sentence"] for row in rows] == [one.sentence for one in advice]
        assert [json.loads(row["numbers"]) for row in rows] == [one.numbers for one in advice]
        arrays = np.load(export_table_npz(linked, "advice", tmp_path / "a.npz", overwrite=True))
        assert arrays["weight"].tolist() == [one.weight for one in advice]
        with export_table_csv(linked, "health", tmp_path / "h.csv", overwrite=True).open(newline="") as table:
            found = list(csv.DictReader(table))
        assert [row["message"] for row in found] == [note.message for note in notes]
        assert [int(row["count"]) for row in found] == [note.count for note in notes]
        arrays = np.load(export_table_npz(linked, "health", tmp_path / "h.npz", overwrite=True))
        assert arrays["kind"].tolist() == [note.kind for note in notes]


@pytest.mark.parametrize(
    ("table", "heading"),
    [("advice", "topic,sentence,weight,numbers"), ("health", "kind,message,count,byte_offset")],
)
def test_no_advice_and_no_findings_are_tables_without_rows(
    shared_traces: Path, tmp_path: Path, table: str, heading: str
):
    linked = Linked.of(open_trace(shared_traces / "real" / "hta-callstack-nodur.json"))
    assert export_table_csv(linked, table, tmp_path / "t.csv").read_text() == f"{heading}\n"
    arrays = np.load(export_table_npz(linked, table, tmp_path / "t.npz"))
    assert {name: array.size for name, array in arrays.items()} == dict.fromkeys(heading.split(","), 0)


def test_a_difference_is_a_table(shared_traces: Path, tmp_path: Path):
    before, after = (
        Linked.of(open_trace(shared_traces / "real" / f"hta-cmp-{name}.json.gz")) for name in ("base", "test")
    )
    for level in LEVELS:
        diff = diff_traces(before, after, level)
        if not diff.rows:
            with pytest.raises(ExportError, match=f"by {level} is empty. Before: n/a, no modules recorded"):
                export_difference(diff, "csv", tmp_path / f"{level}.csv")
            continue
        with export_difference(diff, "csv", tmp_path / f"{level}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["name"] for row in rows] == [row.name for row in diff.rows]
        assert [row["per_step"] for row in rows] == [str(diff.per_step)] * len(rows)
        arrays = np.load(export_difference(diff, "npz", tmp_path / f"{level}.npz"))
        assert arrays["change_ns"].tolist() == [row.change_ns for row in diff.rows]
        assert arrays["change_ns"].sum() == pytest.approx(diff.change_ns)


def test_speedscope_events_open_and_close_in_order(overlapping: Trace, tmp_path: Path):
    document = json.loads(export_speedscope(overlapping, tmp_path / "s.json").read_text())
    assert len(document["profiles"]) == 2
    for profile in document["profiles"]:
        opened: list[int] = []
        last = 0
        for event in profile["events"]:
            assert event["at"] >= last
            last = event["at"]
            if event["type"] == "O":
                opened.append(event["frame"])
            else:
                assert opened.pop() == event["frame"]
        assert not opened


def test_folded_stacks_add_up_to_the_covered_time(overlapping: Trace, tmp_path: Path):
    sums = folded(overlapping)
    assert sum(sums.values()) == 20_000 + 30_000
    assert sums['GPU 0;stream 7 (overlapping 1);b "quoted";inside b'] == 5_000
    lines = export_folded(overlapping, tmp_path / "f.folded").read_text().splitlines()
    assert len(lines) == len(sums)
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == 50_000


@pytest.fixture
def strange(tmp_path: Path) -> Trace:
    """One event that never ends around another, names to stumble over, a track without a name."""
    names = ("", " a;b\u2028c\r\n", "=1+1", 'say "hi", twice', "\x00é中")
    events = [slice_event(name, 10 * i, 5, "", cat="cpu_op", pid=1) for i, name in enumerate(names)]
    endless = {k: v for k, v in slice_event("endless", 0, 0, 3, cat="cpu_op", pid=1).items() if k != "dur"}
    path = tmp_path / "strange.json"
    path.write_text(json.dumps({"traceEvents": [*events, endless, slice_event("whole", 1, 2, 3, cat="cpu_op", pid=1)]}))
    return open_trace(path)


def test_an_event_that_never_ended_has_no_time_of_its_own_in_stacks(strange: Trace, tmp_path: Path):
    sums = folded(strange)
    assert {stack: ns for stack, ns in sums.items() if "endless" in stack} == {
        "process 1;thread 3;endless;whole": 2_000
    }
    document = json.loads(export_speedscope(strange, tmp_path / "s.json").read_text())
    assert {"name": "endless (never ended)"} in document["shared"]["frames"]


def test_stacks_are_one_line_each_whatever_the_names(strange: Trace, tmp_path: Path):
    lines = export_folded(strange, tmp_path / "f.folded").read_text().splitlines()
    assert "process 1;(no name) 5000" in lines
    assert "process 1;a:b c 5000" in lines
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == 5 * 5_000 + 2_000


def test_a_spreadsheet_reads_every_name_and_runs_none(strange: Trace, tmp_path: Path):
    pandas = pytest.importorskip("pandas")
    path = export_table_csv(Linked.of(strange), "events", tmp_path / "e.csv")
    table = pandas.read_csv(path, keep_default_na=False)
    assert [name.removeprefix("'") for name in table["name"]] == [strange.name_of(i) for i in range(len(strange))]
    assert table["name"][2] == "'=1+1"
    assert table["start_ns"].tolist() == strange.start_ns.tolist()


def test_there_is_no_flame_graph_of_nothing(strange: Trace, tmp_path: Path):
    for export in (export_speedscope, export_folded):
        with pytest.raises(ExportError, match="nothing to draw"):
            export(strange, tmp_path / "none", (10**9, 2 * 10**9))


def test_markdown_is_escaped(overlapping: Trace):
    text = trace_markdown(summarise(Linked.of(overlapping)), "x|y")
    assert "## Trace x\\|y" in text
    assert all(line.count("|") - line.count("\\|") in {0, 5, 6, 7, 4} for line in text.splitlines() if line[:1] == "|")


def test_markdown_shows_control_characters_instead_of_holding_them(overlapping: Trace):
    text = trace_markdown(summarise(Linked.of(overlapping)), "\x1b[2J\u202e\udcff")
    assert "## Trace \\\\x1b\\[2J\\\\u202e\\\\udcff" in text


@pytest.mark.parametrize("form", TRACE_FORMATS)
def test_every_format_writes_something(form: str, shared_traces: Path, tmp_path: Path):
    linked = Linked.of(open_trace(shared_traces / "real" / "hta-a100-eventsync.json.gz"))
    written = TRACE_FORMATS[form].write(linked, "name", tmp_path / "out", "kernels")
    assert written.stat().st_size > 0
