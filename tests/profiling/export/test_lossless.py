"""What the Chrome export changes so that viewers lose nothing, and that our own reader gets the same trace back."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptscope.profiling.export.perfetto import export_perfetto
from gptscope.profiling.export.tensorboard import export_tensorboard
from gptscope.profiling.trace import Trace, Track, open_trace
from gptscope.profiling.trace.analysis import Linked, category_sums, kernel_sums, module_sums, operator_sums, step_times


def event(phase: str, name: str, ts: Any, **more: Any) -> dict[str, Any]:
    return {"ph": phase, "name": name, "ts": ts, **more}


@pytest.fixture
def there_and_back(tmp_path: Path):
    """Write events as a trace, open it, export it: the trace, the exported document, and the export opened again."""

    def make(*events: dict[str, Any], **around: Any) -> tuple[Trace, dict[str, Any], Trace]:
        path = tmp_path / "in.json"
        path.write_text(json.dumps({**around, "traceEvents": events}))
        trace = open_trace(path)
        exported = export_perfetto(trace, tmp_path / "out.json")
        return trace, json.loads(exported.read_text()), open_trace(exported)

    return make


def test_late_times_with_nanoseconds_count_from_a_base(there_and_back):
    late = [
        event("X", "a", "1712195000000010.001", dur=1.5, pid=1, tid=1),
        event("i", "mark", "1712195000000012.5", pid=1, tid=1, s="t"),
    ]
    trace, document, back = there_and_back(*late, baseTimeNanoseconds=5)
    assert document["baseTimeNanoseconds"] == 1712195000000000005
    assert [e["ts"] for e in document["traceEvents"]] == [10.001, 12.5]
    base_ns = document["baseTimeNanoseconds"] - 5
    assert (back.start_ns + base_ns).tolist() == trace.start_ns.tolist() == [1712195000000010001]
    assert (back.instants.time_ns + base_ns).tolist() == trace.instants.time_ns.tolist()


@pytest.mark.parametrize("ts", [1712195000000010, "1712195.001"])
def test_whole_microseconds_and_early_times_stay_as_they_are(ts: Any, there_and_back):
    trace, document, back = there_and_back(event("X", "a", ts, dur=1, pid=1, tid=1))
    assert "baseTimeNanoseconds" not in document
    assert back.start_ns.tolist() == trace.start_ns.tolist()


def test_an_event_without_an_end_only_begins_and_is_in_no_sum_again(there_and_back):
    trace, document, back = there_and_back(
        event("X", "endless", 10, pid=1, tid=1, cat="cpu_op", args={"x": 1}),
        event("X", "whole", 20, dur=30, pid=1, tid=1, cat="cpu_op"),
    )
    begun = next(e for e in document["traceEvents"] if e["name"] == "endless")
    assert (begun["ph"], "dur" in begun) == ("B", False)
    for one in (trace, back):
        (row,) = np.flatnonzero(one.unfinished).tolist()
        assert (one.name_of(row), int(one.start_ns[row]), int(one.duration_ns[row])) == ("endless", 10_000, 40_000)
        assert one.args(row) == {"x": 1}


def test_ids_that_viewers_mistake_get_new_numbers_and_keep_their_names(there_and_back):
    ids: list[tuple[Any, Any]] = [(7, 7), (7, None), (2**40, 7), (7, 2**33 + 7), (-1, 1), (7, 1.5), ("python", "main")]
    events = [event("X", "e", 1, dur=5, pid=pid, tid=tid) for pid, tid in ids]
    _, document, back = there_and_back(*events)
    places = [(e["pid"], e["tid"]) for e in document["traceEvents"] if e["ph"] == "X"]
    assert len(set(places)) == len(ids)
    assert places[0] == (7, 7)
    assert places[-1] == ("python", "main")
    assert all(0 <= one < 2**31 for place in places[:-1] for one in place)
    assert back.labels[Track(places[2][0], None)] == f"process {2**40}"
    assert back.labels[Track(7, places[3][1])] == f"thread {2**33 + 7}"


def test_instants_of_a_process_or_of_everything_have_no_thread(there_and_back):
    trace, document, back = there_and_back(
        event("i", "process", 1, pid=3, s="p"),
        event("i", "all", 2, s="g"),
        event("i", "thread", 3, pid=3, tid=4, s="t"),
    )
    assert [{k: e[k] for k in ("s", "pid", "tid") if k in e} for e in document["traceEvents"]] == [
        {"s": "p", "pid": 3},
        {"s": "g"},
        {"s": "t", "pid": 3, "tid": 4},
    ]
    assert [back.tracks[t] for t in back.instants.track] == [trace.tracks[t] for t in trace.instants.track]


def test_arrows_with_steps_go_on_to_their_last_end(there_and_back):
    arrow = {"pid": 1, "tid": 1, "cat": "data", "id": 5}
    other = {**arrow, "id": 6}
    chain = [event(phase, "data", ts, **arrow) for ts, phase in enumerate("sttf")]
    _, document, back = there_and_back(*chain, event("f", "data", 5, **other), event("s", "data", 5, **other))
    assert [e["ph"] for e in document["traceEvents"]] == ["s", "t", "t", "f", "s", "f"]
    assert len(back.flows) == 6


def test_labels_and_places_of_processes_are_kept(there_and_back):
    trace, _, back = there_and_back(
        event("M", "process_name", 0, pid=0, tid=0, args={"name": "python"}),
        event("M", "process_labels", 0, pid=0, tid=0, args={"labels": "GPU 0"}),
        event("M", "process_sort_index", 0, pid=0, tid=0, args={"sort_index": 5}),
        event("X", "k", 1, dur=1, pid=0, tid=7),
    )
    assert trace.process_labels == back.process_labels == {0: "GPU 0"}
    assert trace.labels == back.labels == {Track(0, None): "python"}
    assert trace.sort_indices == back.sort_indices
    assert not back.health


def test_new_threads_have_ids_that_stand_nowhere_in_the_file(there_and_back):
    crossing = [event("X", name, ts, dur=20, pid=1, tid=5, cat="cpu_op") for name, ts in (("a", 0), ("b", 10))]
    _, document, _ = there_and_back(
        *crossing,
        event("X", "odd", 50, dur=1, pid=1, tid=-4, cat="cpu_op"),
        event("M", "thread_name", 0, pid=1, tid=22631, args={"name": "idle"}),
        event("M", "thread_sort_index", 0, pid=1, tid="22632", args={"sort_index": 3}),
        event("M", "process_labels", 0, pid=22633, tid=0, args={"labels": "GPU"}),
        event("C", "memory", 1, pid=22634, args={"bytes": 5}),
        event("i", "mark", 1, pid=1, tid=22635, s="t"),
        event("s", "arrow", 1, pid=1, tid=22636, id=1, cat="ac2g"),
        event("M", "thread_name", 0, pid=1, tid=2**31 - 3, args={"name": "last"}),
    )
    slices = {e["name"]: e["tid"] for e in document["traceEvents"] if e["ph"] == "X"}
    assert slices == {"a": 5, "odd": 2**31 - 2, "b": 2**31 - 1}


def test_events_of_a_real_trace_land_on_no_other_thread(shared_traces: Path, tmp_path: Path):
    trace = open_trace(shared_traces / "real" / "chrome-tf-traceviewer.json")
    events = json.loads(export_perfetto(trace, tmp_path / "out.json").read_text())["traceEvents"]
    named = {}
    for e in events:
        if e["name"] == "thread_name":
            named.setdefault((e["pid"], e["tid"]), []).append(e["args"]["name"])
    assert all(len(names) == 1 for names in named.values())
    assert any("overlapping" in names[0] for names in named.values())


def crosses(events: list[dict[str, Any]]) -> bool:
    """Whether two slices of one thread overlap without one holding the other."""
    slices = [(e["pid"], e["tid"], e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X"]
    return any(a[:2] == b[:2] and a[2] < b[2] < a[3] < b[3] for a in slices for b in slices)


def test_events_that_cross_others_go_back_to_their_thread(there_and_back, tmp_path: Path):
    of = {"pid": 1, "tid": 5}
    trace, document, back = there_and_back(
        event("X", "ProfilerStep#1", 0, dur=60, cat="user_annotation", **of),
        event("X", "Optimizer.step#SGD.step", 50, dur=40, cat="user_annotation", **of),
        event("X", "aten::_foreach_add_", 55, dur=20, cat="cpu_op", **of),
        event("s", "ac2g", 50, id=1, cat="ac2g", **of),
        event("f", "ac2g", 55, id=1, cat="ac2g", **of),
        event("M", "thread_name", 0, args={"name": "main"}, **of),
        event("M", "thread_sort_index", 0, args={"sort_index": 3}, **of),
    )
    assert not crosses(document["traceEvents"])
    assert len({e["tid"] for e in document["traceEvents"] if e["ph"] == "X"}) == 2
    again = open_trace(export_perfetto(back, tmp_path / "again.json"))
    board = open_trace(export_tensorboard(trace, tmp_path, "run"))
    for one in (back, again, board):
        assert {one.tracks[number] for number in (*one.track, *one.flows.track)} == {(1, 5)}
        assert (dict(one.labels), dict(one.sort_indices)) == ({(1, 5): "main"}, {(1, 5): 3})
        assert set(one.metadata) == {"displayTimeUnit"}
        assert kernel_sums(Linked.of(one)) == kernel_sums(Linked.of(trace))
    assert category_sums(Linked.of(trace))[0].category == "optimizer"


@pytest.mark.parametrize("listed", [3, {}, [3, {}, {"pid": 1, "tid": 2}], [{"pid": 1, "tid": [2], "of": 9}]])
def test_a_damaged_list_of_threads_moves_nothing(listed: Any, there_and_back):
    trace, _, _ = there_and_back(event("X", "a", 0, dur=1, pid=1, tid=2), gptscopeOverlappingThreads=listed)
    assert [trace.tracks[number] for number in trace.track] == [(1, 2)]


@pytest.mark.parametrize("name", ["tl-mi300x-ddp-resnet18", "tl-mi300x-bert-small", "hta-a100-alexnet"])
def test_tables_of_real_traces_stay_the_same(name: str, shared_traces: Path, tmp_path: Path):
    trace = open_trace(shared_traces / "real" / f"{name}.json.gz")
    whole, back = Linked.of(trace), Linked.of(open_trace(export_perfetto(trace, tmp_path / "out.json")))
    for table in (kernel_sums, category_sums, operator_sums, module_sums, step_times):
        assert table(back) == table(whole)
