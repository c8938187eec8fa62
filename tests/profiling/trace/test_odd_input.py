"""What people hand over that is no trace, or a strange one: a sentence, or the numbers, and never a hang."""

import bz2
import gzip
import json
import lzma
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptscope.profiling.export.trace_rows import nesting_lanes, rows_in
from gptscope.profiling.trace import Trace, TraceError, Track, lane_of, open_trace
from gptscope.profiling.trace.analysis import Linked, device_use, kernel_sums, operator_sums
from gptscope.profiling.trace.nested import nest_rows

Event = dict[str, Any]


def event(**more: Any) -> Event:
    return {"ph": "X", "name": "n", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 1, "dur": 1, **more}


def text_of(*events: Event) -> bytes:
    return json.dumps({"traceEvents": events}).encode()


def notes(trace: Trace) -> dict[str, int]:
    return {note.message: note.count for note in trace.health}


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\x28\xb5\x2f\xfd" + bytes(40), "packed with zstd, which is not read here; unpack it first."),
        (bz2.compress(text_of(event())), "packed with bzip2"),
        (lzma.compress(text_of(event())), "packed with xz"),
        (gzip.compress(gzip.compress(text_of(event()))), "packed with gzip more than once"),
        (text_of(event()).decode().encode("utf-16"), "UTF-16 text"),
        (b"SQLite format 3\0" + bytes(100), "a SQLite database"),
        (b"\x80\x04\x95" + bytes(30), "a Python pickle"),
        (b"<!doctype html><html></html>", "HTML or XML"),
        (b'[{"a": 1}, {"b": 2}]', 'objects without "ph"'),
        (b'{"traceEvents": null}', 'JSON without "traceEvents"'),
        (b"\x1f\x8b", "the compressed data ends early, before any event"),
    ],
)
def test_what_is_no_trace_is_refused_by_what_it_is(data: bytes, sentence: str, tmp_path: Path):
    path = tmp_path / "in.json"
    path.write_bytes(data)
    with pytest.raises(TraceError, match=sentence) as refused:
        open_trace(path)
    assert str(refused.value).endswith(".")


def test_folders_and_pipes_are_refused_at_once(tmp_path: Path):
    with pytest.raises(TraceError, match=r"is a folder\. Open one of the traces in it\."):
        open_trace(tmp_path)
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TraceError, match="is a pipe"):
        open_trace(tmp_path / "pipe")


@pytest.fixture
def archive(tmp_path: Path) -> Callable[..., Path]:
    def make(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
        path = tmp_path / "in.zip"
        with zipfile.ZipFile(path, "w", method) as made:
            for name, data in members:
                made.writestr(name, data)
        return path

    return make


def test_what_macos_puts_into_archives_is_no_trace(archive: Callable[..., Path]):
    trace = open_trace(archive(("__MACOSX/._a.json", b"x" * 9999), ("a.json", text_of(event()))))
    assert (len(trace), trace.health) == (1, ())


def test_a_checkpoint_is_refused(archive: Callable[..., Path]):
    with pytest.raises(TraceError, match=r"is a file of torch\.save"):
        open_trace(archive(("model/data.pkl", b"x"), ("model/data/0", b"y")))


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damaged_members_are_told(method: int, archive: Callable[..., Path]):
    path = archive(("a.json", text_of(*(event(ts=i) for i in range(3000)))), method=method)
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 255
    path.write_bytes(data)
    with pytest.raises(TraceError, match="the compressed data is damaged"):
        open_trace(path)


def test_all_that_inflates_before_damaged_data_is_kept(tmp_path: Path):
    packed = gzip.compress(text_of(*(event(ts=i) for i in range(3000))))
    path = tmp_path / "in.json.gz"
    path.write_bytes(packed[:-8] + bytes(8))  # its checksum and length
    trace = open_trace(path)
    assert len(trace) == 3000
    assert any("damaged" in message for message in notes(trace))


def test_a_second_list_of_events_is_told(tmp_path: Path):
    path = tmp_path / "in.json"
    path.write_bytes(b'{"rank0":' + text_of(event()) + b',"rank1":' + text_of(event(), event()) + b"}")
    trace = open_trace(path)
    assert len(trace) == 1
    assert notes(trace)["another list of events in the same file; only the first one is opened"] == 1


def test_durations_of_years_do_not_spoil_the_sums(write_trace: Callable[..., Path]):
    long = [event(cat="kernel", tid=i, dur=2e15) for i in range(20)]
    trace = open_trace(write_trace([*long, event(cat="kernel", tid=99, dur=5)]))
    assert [(k.calls, k.total_ns) for k in kernel_sums(Linked.of(trace))] == [(1, 5_000)]
    assert notes(trace)["durations of years cannot be true"] == 20


def test_counters_in_quotes_count_and_others_are_told(write_trace: Callable[..., Path]):
    values = {"quoted": "5", "large": 1e308, "text": "x", "none": None, "list": [1]}
    trace = open_trace(write_trace([{"ph": "C", "name": "c", "pid": 1, "ts": 1, "args": values}]))
    assert trace.counters.value.tolist() == [5.0, 1e308]
    assert notes(trace)["a counter's value is no number"] == 3
    assert notes(trace)["no events with a duration"] == 1


def test_a_threads_id_in_quotes_is_the_same_thread(write_trace: Callable[..., Path]):
    events = [
        event(pid="7", tid="1441273664"),
        event(pid=7, tid=1441273664),
        event(pid=7, tid="01"),
        event(pid=7, tid="stream 7"),
        {"ph": "M", "name": "thread_name", "pid": "7", "tid": "1441273664", "args": {"name": "main"}},
        {"ph": "s", "name": "a", "cat": "a", "id": 1, "pid": 7, "tid": 1441273664, "ts": 1},
    ]
    trace = open_trace(write_trace(events))
    assert trace.tracks == [Track(7, 1441273664), Track(7, "01"), Track(7, "stream 7")]
    assert trace.track.tolist() == [0, 0, 1, 2]
    assert trace.labels == {Track(7, 1441273664): "main"}
    assert trace.flows.track.tolist() == [0]


def test_devices_named_by_texts_are_told_apart(write_trace: Callable[..., Path], tmp_path: Path):
    named = [event(cat="kernel", pid=f"GPU {i}", dur=10 + i) for i in range(2)]
    uses = device_use(Linked.of(open_trace(write_trace(named))))
    assert [(use.device, use.busy_ns) for use in uses] == [(0, 10_000), (1, 11_000)]
    legacy = [{**event(pid="CUDA functions", tid=i, dur=10 + i), "cat": ""} for i in range(2)]
    (tmp_path / "list.json").write_text(json.dumps(legacy))  # before 1.8 the thread was the device
    uses = device_use(Linked.of(open_trace(tmp_path / "list.json")))
    assert [(use.device, use.busy_ns) for use in uses] == [(0, 10_000), (1, 11_000)]


def test_arrows_of_very_many_names_are_read(write_trace: Callable[..., Path]):
    arrows = [{"ph": "s", "name": f"n{i}", "id": i, "pid": 1, "tid": 1, "ts": i} for i in range(40_000)]
    assert len(set(open_trace(write_trace(arrows)).flows.category.tolist())) == 40_000


@pytest.mark.timeout(60)
def test_thousands_of_events_that_all_overlap_get_lanes_in_time(write_trace: Callable[..., Path]):
    trace = open_trace(write_trace([event(ts=i, dur=100_000) for i in range(20_000)]))
    assert np.unique(lane_of(trace)).size == 20_000
    lanes = nesting_lanes(trace, rows_in(trace, None))
    assert not nest_rows(lanes, trace.start_ns, trace.duration_ns).crossing


@pytest.mark.timeout(60)
def test_very_deep_nesting_is_summed_in_time(write_trace: Callable[..., Path]):
    trace = open_trace(write_trace([event() for _ in range(50_000)]))
    (row,) = operator_sums(Linked.of(trace))
    assert (row.host_self_ns, row.host_total_ns) == (1_000, 1_000)


def test_a_small_file_of_very_many_events_is_refused_before_they_fill_the_memory(tmp_path: Path):
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents":[' + b'{"ph":"X","ts":1,"dur":0,"name":"n"},' * 1_500_000))
    assert path.stat().st_size < 300_000
    with pytest.raises(TraceError, match="would fill the memory"):
        open_trace(path)


def test_a_list_of_events_that_comes_too_late_is_not_said_to_be_missing(tmp_path: Path):
    path = tmp_path / "late.json"
    path.write_bytes(b'{"notes": "' + b"x" * (17 << 20) + b'", ' + text_of(event())[1:])
    with pytest.raises(TraceError, match='without "traceEvents" in its first 16 MiB'):
        open_trace(path)


@pytest.mark.timeout(60)
def test_an_event_that_goes_on_through_many_blocks_costs_no_other_event(tmp_path: Path):
    path = tmp_path / "open.json"
    path.write_bytes(
        b'{"traceEvents":[' + json.dumps(event()).encode() + b',{"args":{' + b'{"ph":"X","ts":1},' * 300_000
    )
    trace = open_trace(path)
    assert len(trace) == 300_000  # the broken one took the first of the others with it
    assert [note.kind for note in trace.health] == ["skipped", "truncated", "unfinished"]


@pytest.mark.parametrize("stray", [b'"', b"{", b"[", b'{"', b'\\"'])
@pytest.mark.parametrize("many", [40, 30_000])
def test_what_one_stray_sign_breaks_is_little(stray: bytes, many: int, tmp_path: Path):
    text = text_of(*(event(ts=10 * i, args={"External id": i + 1}) for i in range(many)))
    at = text.index(b'"ts"', len(text) // 2)
    path = tmp_path / "stray.json"
    path.write_bytes(text[:at] + stray + text[at:])
    trace = open_trace(path)
    assert many - 2 <= len(trace) < many
    assert {note.kind for note in trace.health} <= {"skipped", "repaired"}
    assert all(abs(note.byte_offset - at) < 1000 for note in trace.health)
    assert [trace.args(row)["External id"] for row in (0, many - 3)] == trace.external_id[[0, many - 3]].tolist()


def test_old_and_new_names_of_ids_may_stand_side_by_side(tmp_path: Path):
    events = [event(ts=i, args={("External id", "external id")[i % 2]: 5 + i}) for i in range(6)]
    path = tmp_path / "ids.json"
    path.write_bytes(text_of(*events))
    assert open_trace(path).external_id.tolist() == [5, 6, 7, 8, 9, 10]


def test_the_report_names_the_event_whose_id_is_none(tmp_path: Path):
    path = tmp_path / "ids.json"
    text = text_of(*(event(ts=i) for i in range(50)), event(ts=50, name="odd", args={"correlation": "none"}))
    path.write_bytes(text)
    (note,) = open_trace(path).health
    assert text[note.byte_offset :].startswith(b"{")
    assert b"odd" in text[note.byte_offset :]
    assert text[note.byte_offset :].count(b'"ph"') == 1


def test_what_stands_before_the_events_outlives_garbage_behind_them(tmp_path: Path):
    path = tmp_path / "garbage.json"
    path.write_bytes(b'{"distributedInfo": {"rank": 3}, ' + text_of(event())[1:] + b"\n@@@ garbage")
    trace = open_trace(path)
    assert trace.rank == 3
    assert [note.kind for note in trace.health] == ["metadata"]


def test_a_large_event_is_read_whole(tmp_path: Path):
    path = tmp_path / "large.json"
    path.write_bytes(text_of(event(args={"list": ["x" * 50] * 60_000}), event(ts=5)))
    trace = open_trace(path)
    assert (len(trace), len(trace.args(0)["list"]), trace.health) == (2, 60_000, ())
