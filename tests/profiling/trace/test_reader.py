"""Reading traces: exact, streaming, forgiving, never silent."""

import gzip
import json
import pickle
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gptscope.profiling.trace import TraceError, busy_ns_per_device, kernel_table, open_trace, step_windows
from gptscope.profiling.trace.columns import ColumnBuilder
from gptscope.profiling.trace.health import HealthReport
from gptscope.profiling.trace.intervals import overlaps_on_streams, union_ns
from gptscope.profiling.trace.split import EventStream

REAL = [
    "kineto-v100-resnet50-w0.json.gz",
    "hta-a100-alexnet.json.gz",
    "hta-a100-eventsync-multistream.json.gz",
    "hta-a100-nccl.json.gz",
    "hta-gp100-gpuannot.json.gz",
    "hta-infer-rank1-oldcats.json.gz",
    "hta-mi250-rocm62-minitoy.json.gz",
    "hta-largeint.json.gz",
    "hta-timeline-sampled.json.gz",
    "hta-callstack-nodur.json",
    "hta-cpuonly-rank34.json.gz",
    "kineto-h100-beforefix.json",
    "tl-h100-bert-small.json.gz",
    "tl-mi210-gpuonly.json.gz",
    "tl-mi300x-qwen.json.gz",
    "tl-mi300x-vllm-decode-graph.json.gz",
    "zoology-a100x8-nokernels.json",
]


def ns(microseconds: float) -> int:
    return round(microseconds * 1000)


@pytest.mark.parametrize("name", REAL)
def test_real_traces_equal_their_independent_truth_to_the_nanosecond(name: str, shared_traces: Path):
    stem = name.removesuffix(".gz").removesuffix(".json")
    truth = json.loads((shared_traces / "truth" / f"{stem}.truth.json").read_text())
    trace = open_trace(shared_traces / "real" / name)
    kernels, work = trace.in_categories("kernel"), trace.gpu_work()
    assert trace.phases == truth["ph"]
    assert int(kernels.sum()) == truth["kernels"]
    assert int(trace.duration_ns[kernels].sum()) == ns(truth["kernel_total_us"])
    assert union_ns(trace.start_ns[kernels], trace.end_ns[kernels]) == ns(truth["kernel_union_us"])
    assert len({trace.names[i] for i in trace.name[kernels]}) == truth["kernel_names"]
    assert int(work.sum()) == truth["gpu_events"]
    assert int(trace.duration_ns[work].sum()) == ns(truth["gpu_total_us"])
    busy = {int(device): ns(us) for device, us in truth["gpu_busy_union_us_per_device"].items()}
    assert busy_ns_per_device(trace) == busy
    assert overlaps_on_streams(trace) == truth["same_stream_overlaps"]
    windows = step_windows(trace)
    lengths = sorted((windows.end_ns - windows.start_ns).tolist()) if windows.marked else []
    assert lengths == sorted(ns(us) for _, us in truth["profiler_steps"])
    longest = max((trace.duration_ns[kernels]), default=0)
    assert longest == max((ns(k["max_us"]) for k in truth["top10"]), default=0) or truth["kernels"] > 10


CASES = {
    "01-windows-backslash.json": "repaired|metadata",
    "02-inf-bandwidth.json": "repaired",
    "03-bare-nan-NA.json": "repaired",
    "04-ts-zero-kernel.json": "put_aside",
    "06-control-char.json": "repaired",
    "07-truncated.json": "truncated",
    "09-array-open-trailing-comma.json": "truncated",
    "11-string-ts-absolute.json": "",
    "12-absolute-ns-ts.json": "",
    "13-pdl-same-stream-overlap.json": "",
    "15-unfinished.json": "unfinished",
    "16-no-distributed-info.json": "",
    "20-old-category-names.json": "",
    "21-new-runtime-category.json": "",
    "23-invalid-utf8.json": "repaired",
    "27-cpu-op-with-stream.json": "",
    "28-cuda-sync-not-work.json": "",
    "31-empty-events.json": "empty",
    "34-mixed-pid-tid.json": "",
    "35-gz-named.json": "",
}


@pytest.mark.parametrize("name", CASES)
def test_broken_and_odd_traces_give_their_expected_values_and_say_what_was_wrong(name: str, shared_traces: Path):
    expected = json.loads((shared_traces / "cases" / "expected.json").read_text())[name]
    trace = open_trace(shared_traces / "cases" / name)
    kernels = trace.in_categories("kernel")
    assert len(trace) == expected["slices"] + trace.phases.get("B", 0)  # they count the events with a duration
    assert int(trace.unfinished.sum()) == expected.get("unfinished", 0)
    assert int(kernels.sum()) == expected["kernels"]
    assert int(trace.duration_ns[kernels].sum()) == ns(expected.get("kernel_us", 0.0))
    assert sum(busy_ns_per_device(trace).values()) == ns(expected["busy_us"])
    if "same_stream_overlaps" in expected:
        assert overlaps_on_streams(trace) == expected["same_stream_overlaps"]
    kinds = {note.kind for note in trace.health if note.kind != "ignored"}
    assert kinds <= set(CASES[name].split("|"))
    assert bool(kinds) == bool(CASES[name])


def test_times_in_quotes_keep_every_digit(shared_traces: Path):
    trace = open_trace(shared_traces / "cases" / "11-string-ts-absolute.json")
    kernels = trace.in_categories("kernel")
    assert int(trace.start_ns[kernels].min()) == 1712195000000040222  # written "1712195000000040.222"


def test_a_cut_gzip_file_is_read_as_far_as_it_inflates(shared_traces: Path):
    trace = open_trace(shared_traces / "cases" / "08-truncated.json.gz")
    assert len(trace) >= 2000
    cut = [note for note in trace.health if note.kind == "truncated"]
    assert cut
    assert all(note.byte_offset for note in cut)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("notatrace-hta-et.json.gz", "execution trace"),
        ("notatrace-memory-timeline.raw.gz", "not of trace events"),
        ("notatrace-rocprof.json.gz", "rocprof"),
    ],
)
def test_what_is_no_trace_is_refused_with_what_it_seems_to_be(name: str, what: str, shared_traces: Path):
    with pytest.raises(TraceError, match=what):
        open_trace(shared_traces / "real" / name)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is empty"),
        (b"   \n ", "is empty"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"hello", "not JSON"),
        (b"[1, 2, 3]", "list, but not of trace events"),
        (b'{"a": 1}', 'without "traceEvents"'),
        (gzip.compress(b'{"traceEvents": []' + b" " * (80 << 20)), "inflates to more than"),
    ],
)
def test_files_that_hold_nothing_usable_get_a_sentence(content: bytes, what: str, tmp_path: Path):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=what):
        open_trace(path)


def test_a_missing_file_gets_a_sentence(tmp_path: Path):
    with pytest.raises(TraceError, match=r"cannot be read: No such file"):
        open_trace(tmp_path / "none.json")


def test_names_say_nothing_and_bytes_everything(tmp_path: Path):
    text = b'\xef\xbb\xbf{"traceEvents": [{"ph": "X", "name": "k", "cat": "kernel", "ts": 1, "dur": 2}]}'
    plain, packed = tmp_path / "a.gz", tmp_path / "b.json"
    plain.write_bytes(text)
    packed.write_bytes(gzip.compress(text[:40]) + gzip.compress(text[40:]))  # two members
    assert len(open_trace(plain)) == len(open_trace(packed)) == 1
    assert not open_trace(packed).health


def test_metadata_before_and_after_the_events_is_kept(write_trace, tmp_path: Path):
    path = write_trace([{"ph": "X", "name": "k", "ts": 1, "dur": 2}], deviceProperties=[{"id": 0}])
    late = tmp_path / "late.json"
    late.write_text('{"traceEvents": [{"ph": "X", "name": "k", "ts": 1, "dur": 2}], "distributedInfo": {"rank": 3}}')
    assert open_trace(path).metadata == {"deviceProperties": [{"id": 0}]}
    assert open_trace(late).metadata == {"distributedInfo": {"rank": 3}}


@pytest.mark.parametrize(
    ("written", "nanoseconds"),
    [
        ("1712195000040222.335", 1712195000040222335),  # a double holds this only to a quarter of a microsecond
        ('"1712195000040222.335"', 1712195000040222335),
        ("5160649973846.022", 5160649973846022),
        ("1712195000040222", 1712195000040222000),
        ("1.5e3", 1500000),
        ("0.001", 1),
    ],
)
def test_times_are_exact_nanoseconds(written: str, nanoseconds: int, tmp_path: Path):
    path = tmp_path / "t.json"
    path.write_text(f'{{"traceEvents": [{{"ph": "X", "name": "k", "ts": {written}, "dur": 0.007}}]}}')
    trace = open_trace(path)
    assert trace.start_ns.tolist() == [nanoseconds]
    assert trace.duration_ns.tolist() == [7]


@pytest.mark.parametrize("written", ["1e99999999", '"1e99999999"', "-1e400", "1" * 400, '"x"', "null", "true"])
def test_impossible_times_are_put_aside_and_counted(written: str, tmp_path: Path):
    good = '{"ph": "X", "name": "k", "ts": 1, "dur": 1}'
    path = tmp_path / "t.json"
    path.write_text(f'{{"traceEvents": [{good}, {{"ph": "X", "name": "b", "ts": {written}, "dur": 1}}]}}')
    trace = open_trace(path)
    assert [trace.names[i] for i in trace.name] == ["k"]
    assert any(note.kind == "put_aside" for note in trace.health)


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=8) | st.sampled_from(
    ["}, {", '"}, {"', "]", "\\", '"traceEvents": [', "}\n]", "é日本"]
)
events = st.lists(
    st.fixed_dictionaries(
        {
            "ph": st.just("X"),
            "name": texts,
            "ts": st.integers(0, 10**9) | st.decimals(0, 10**9, places=3).map(float),
            "dur": st.integers(0, 10**6),
        },
        optional={
            "cat": st.sampled_from(["kernel", "cpu_op"]),
            # keys that mean nothing: a text where an id belongs would rightly be noted
            "args": st.dictionaries(
                texts.map("_{}".format), texts | st.lists(st.dictionaries(texts, st.integers()), max_size=3)
            ),
        },
    ),
    max_size=8,
)


@settings(deadline=None, max_examples=60)
@given(events, st.sampled_from([1, 13, 64, 200]), st.sampled_from([None, 1]), st.dictionaries(texts, texts, max_size=2))
def test_blocks_may_end_anywhere(written: list[dict], size: int, indent: int | None, tail: dict):
    around = {f"_{key}": value for key, value in tail.items() if "traceEvents" not in key}
    text = json.dumps({"traceEvents": written, **around}, indent=indent).encode()
    blocks = [text[i : i + size] for i in range(0, len(text), size)]
    health = HealthReport()
    builder = ColumnBuilder(health)
    stream = EventStream(blocks, "x", health)
    for piece in stream:
        builder.add(piece.events, piece.text)
    trace = builder.build({})
    assert [trace.names[i] for i in trace.name] == [event["name"] for event in written]
    assert trace.start_ns.tolist() == [ns(event["ts"]) for event in written]
    assert [note for note in trace.health if note.kind != "empty"] == []
    assert json.loads(stream.head + b"]" + stream.tail) == {"traceEvents": [], **around}


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=30))
def test_a_union_counts_every_nanosecond_once(intervals: list[tuple[int, int]]):
    import numpy as np

    start = np.array([s for s, _ in intervals], dtype=np.int64)
    length = np.array([n for _, n in intervals], dtype=np.int64)
    covered = {t for s, n in intervals for t in range(s, s + n)}
    assert union_ns(start, start + length) == len(covered)


def test_a_long_tail_is_no_event(tmp_path: Path):
    path = tmp_path / "t.json"
    event = '{"ph": "X", "name": "k", "ts": 1, "dur": 1}'
    path.write_text(f'{{"traceEvents": [{event}], "rank": 1, "log": "{"x" * (20 << 20)}"}}')
    trace = open_trace(path)
    assert len(trace) == 1
    assert [note.kind for note in trace.health] == ["metadata", "metadata"]  # not all of it kept, so not readable


def test_one_enormous_event_is_refused(tmp_path: Path):
    path = tmp_path / "t.json"
    path.write_text(f'{{"traceEvents": [{{"ph": "X", "name": "{"x" * (20 << 20)}"}}]}}')
    with pytest.raises(TraceError, match="holds an event of more than 16 MiB"):
        open_trace(path)


@pytest.mark.parametrize("stray", ["}", "}}, {", "]]", "abc", "1, 2", '"text"', "{", "[[", '"', "\\", "{}"])
def test_stray_text_between_events_never_stops_reading(stray: str, tmp_path: Path):
    good = '{"ph": "X", "name": "k", "ts": 1, "dur": 1}'
    path = tmp_path / "t.json"
    path.write_text(f'{{"traceEvents": [{good}, {stray}, {good}]}}')
    trace = open_trace(path)
    assert 1 <= len(trace) <= 2
    assert trace.health or stray == "{}"


@pytest.mark.parametrize("seed", range(40))
def test_mutated_traces_are_read_or_refused(seed: int, shared_traces: Path, tmp_path: Path):
    rng = random.Random(seed)
    data = bytearray((shared_traces / "cases" / "34-mixed-pid-tid.json").read_bytes())
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(data))
        if rng.random() < 0.5:
            data[at : at + rng.randint(0, 60)] = rng.choice(
                [b'"', b"\\", b"{", b"}", b"[", b"]", b"nan", b"\xff", b"},{"]
            )
        else:
            data[at:at] = data[at // 2 : at // 2 + 300]
    path = tmp_path / "t.json"
    path.write_bytes(bytes(data))
    problem = ""
    try:
        trace = open_trace(path)
    except TraceError as error:
        problem = str(error)
    if problem:
        assert "t.json" in problem
        return
    assert all(row.self_time_us >= 0 for row in kernel_table(trace))
    untouched = open_trace(shared_traces / "cases" / "34-mixed-pid-tid.json")
    assert trace.health or len(trace) >= len(untouched), "events that are gone are told"


def test_ids_of_any_kind_and_size_do_not_stop_reading(write_trace):
    args = {"External id": 2**70, "correlation": "0x1f", "stream": "stream 7", "device": None}
    path = write_trace([{"ph": "X", "name": "k", "pid": "", "tid": 1.5, "ts": 1, "dur": 1, "args": args}])
    trace = open_trace(path)
    assert trace.external_id.tolist() != [0]  # an id of its own, though it does not fit into 64 bits
    assert trace.correlation.tolist() == [31]
    assert [note.kind for note in trace.health] == ["repaired"]


def test_arguments_that_are_no_object_are_left_out_and_reported(write_trace):
    trace = open_trace(write_trace([{"ph": "X", "name": "k", "ts": 1, "dur": 1, "args": [1]}]))
    assert len(trace) == 1
    assert "unusual types" in trace.health[0].message


def test_arguments_are_read_in_another_process_too_from_packed_files(tmp_path):
    events = [
        {"ph": "X", "name": "k", "ts": n, "dur": 1, "args": {"number": n, "filler": "x" * 200}} for n in range(20_000)
    ]
    path = tmp_path / "packed.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode()))
    reader = pickle.loads(pickle.dumps(open_trace(path).args_reader))
    reader.prepare()
    assert [reader.of(place)["number"] for place in (0, 19_999, 7)] == [0, 19_999, 7]
    path.unlink()
    gone = pickle.loads(pickle.dumps(reader))
    assert gone.of(3) == {}
    with pytest.raises(TraceError):
        gone.prepare()
