"""Large traces are read by two processes: what comes out is what one process reads, whatever the file holds."""

import contextlib
import gzip
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from gptscope.profiling import handover
from gptscope.profiling.trace import Trace, TraceError, open_trace, second_reader
from gptscope.profiling.trace.second_reader import SecondReader, find_cut, read_half


def some_of_everything(count: int) -> list[dict[str, Any]]:
    """Slices, begins and ends (nested, asynchronous), counters, instants, memory, arrows, names; times out of order."""
    events: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]
    for i in range(count):
        at = {"pid": 1 + i % 2, "tid": str(7 + i % 3), "ts": 1000 + (i * 37) % 500 + i / 8}
        shapes = {"Input Dims": [[i % 3, 4], []], "Input type": ["float", "Scalar"], "Concrete Inputs": ["", "1"]}
        events += [
            {"ph": "X", "cat": "cpu_op", "name": f"aten::op{i % 5}", "dur": 3.125, **at,
             "args": {"External id": i, **(shapes if i % 2 else {})}},
            {"ph": "X", "cat": "kernel", "name": f"kernel{i % 4}", "dur": i + 0.5, **at, "pid": 0, "tid": 7,
             "args": {"correlation": i, "stream": 7, "device": 0, "Collective name": "allreduce" if i % 3 else "send"}},
            {"ph": "B", "cat": "user", "name": f"scope{i % 3}", **at},
            {"ph": "E", **at, "ts": at["ts"] + 40},
            {"ph": "b", "cat": "async", "id": i // 4, "name": "wait", **at},
            {"ph": "e", "cat": "async", "id": i // 4, "name": "wait", **at, "ts": at["ts"] + 9},
            {"ph": "C", "name": f"power{i % 2}", **at, "args": {"W": i, "limit": 300}},
            {"ph": "i", "name": f"mark{i % 2}", "cat": "user", **at},
            {"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", **at,
             "args": {"Bytes": 512 * i, "Total Allocated": 4096, "Device Type": 1, "Device Id": 0}},
            {"ph": "s", "id": i, "cat": f"ac2g{i % 2}", "name": "ac2g", **at},
            {"ph": "f", "id": i, "cat": f"ac2g{i % 2}", "name": "ac2g", **at, "pid": 0, "tid": 7},
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": 7 + i % 3, "args": {"name": f"thread {i}"}},
            {"ph": "M", "name": "process_labels", "pid": i % 2, "args": {"labels": f"label {i}"}},
            {"ph": "M", "name": "process_sort_index", "pid": 1, "args": {"sort_index": i}},
            {"ph": "X", "name": "timeless", "pid": 1, "tid": 1},
            {"ph": "?", "name": "unknown"},
        ]  # fmt: skip
    return events


def meaning(trace: Trace) -> dict[str, Any]:
    """Everything that a trace says, with names instead of their numbers."""
    text = np.array(trace.texts, dtype=object)
    tracks, names, categories = trace.tracks, trace.names, trace.categories

    def places(track: Any) -> list[Any]:
        return [tuple(tracks[i]) for i in track.tolist()]

    plain = ("start_ns", "duration_ns", "unfinished", "correlation", "external_id", "sequence", "forward_thread",
             "device", "stream", "moved_bytes", "place")  # fmt: skip
    memory = trace.memory
    return {
        **{name: getattr(trace, name).tolist() for name in plain},
        "name": [names[i] for i in trace.name],
        "category": [categories[i] for i in trace.category],
        "track": places(trace.track),
        **{name: text[getattr(trace, name)].tolist() for name in ("collective", "shapes", "types", "values")},
        "instants": [
            [names[i] for i in trace.instants.name],
            [categories[i] for i in trace.instants.category],
            places(trace.instants.track),
            trace.instants.time_ns.tolist(),
            trace.instants.place.tolist(),
        ],
        "counters": [
            [trace.counters.series[i] for i in trace.counters.serie],
            trace.counters.time_ns.tolist(),
            trace.counters.value.tolist(),
        ],
        "flows": sorted(  # in no order, as the two kinds of a piece are added one after another
            zip(
                [trace.flows.categories[i] for i in trace.flows.category],
                trace.flows.ident.tolist(),
                trace.flows.begins.tolist(),
                map(str, places(trace.flows.track)),
                trace.flows.time_ns.tolist(),
                strict=True,
            )
        ),
        "memory": [memory.time_ns.tolist(), places(memory.track), memory.bytes.tolist(), memory.allocated.tolist()],
        "around": [dict(trace.labels), dict(trace.sort_indices), dict(trace.process_labels), dict(trace.metadata)],
        "phases": dict(trace.phases),
        "health": sorted((n.kind, n.message, n.count) for n in trace.health),
        "args": [trace.args(row) for row in range(0, len(trace), max(1, len(trace) // 50))],
    }


def boundaries(text: bytes) -> list[int]:
    """Every place where an event may begin."""
    return [found.end() - 1 for found in second_reader._BOUNDARY.finditer(text)]


@pytest.fixture
def cut_at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[bool]]:
    """Cut at a place, without another process; tells whether the second half was used."""
    monkeypatch.setattr("gptscope.profiling.trace.source.BLOCK_BYTES", 4096)
    monkeypatch.setattr(second_reader, "BLOCK_BYTES", 4096)

    def cut(place: int) -> list[bool]:
        used: list[bool] = []

        def enter(reader: SecondReader) -> SecondReader:
            reader.begins = place
            return reader

        def after(reader: SecondReader, stream: Any, _text: Any, _waiting: Any) -> Any:
            if reader.begins is None or stream.offset < reader.begins:
                return None
            clean = stream.offset == reader.begins and not stream.ended
            reader.begins = None
            handed = io.BytesIO()
            handover.write(read_half(reader.path, place) if clean else None, handed)
            half = handover.parse(handed.getvalue())
            used.append(half is not None and half.ended)
            return half

        monkeypatch.setattr(SecondReader, "__enter__", enter)
        monkeypatch.setattr(SecondReader, "_end", lambda _: None)
        monkeypatch.setattr(SecondReader, "after", after)
        return used

    return cut


def write(path: Path, events: list[dict[str, Any]], **around: Any) -> Path:
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events, **around}, indent=1))
    return path


def test_a_trace_cut_anywhere_says_the_same(tmp_path: Path, cut_at: Callable[..., list[bool]]):
    path = write(tmp_path / "t.json", some_of_everything(60), traceName="/tmp/x", distributedInfo={"rank": 3})
    whole = meaning(open_trace(path))
    found = boundaries(path.read_bytes())
    for place in found[60 :: len(found) // 12]:  # one in the first block is not used
        used = cut_at(place)
        assert meaning(open_trace(path)) == whole
        assert used == [True]


def test_a_cut_inside_an_event_is_no_cut(tmp_path: Path, cut_at: Callable[..., list[bool]]):
    events = some_of_everything(40)
    events[300]["args"] = {"list": [{"a": 1}, {"ph": "X", "ts": 1, "dur": 2, "name": "not an event"}, {"c": 3}]}
    path = write(tmp_path / "t.json", events)
    whole = meaning(open_trace(path))
    text = path.read_bytes()
    used = cut_at(text.rindex(b"{", 0, text.index(b'"not an event"')))
    assert meaning(open_trace(path)) == whole
    assert used == [False]


def test_a_cut_after_the_events_is_no_cut(tmp_path: Path, cut_at: Callable[..., list[bool]]):
    path = write(tmp_path / "t.json", some_of_everything(3), more=[{"ph": "X"}] * 4000)
    whole = meaning(open_trace(path))
    used = cut_at(boundaries(path.read_bytes())[2000])
    assert meaning(open_trace(path)) == whole
    assert used in ([], [False])


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda text: text[: len(text) * 9 // 10],
    "broken": lambda text: text[: len(text) * 8 // 10] + b'"\\ {{' + text[len(text) * 8 // 10 :],
    "control characters": lambda text: text.replace(b"kernel3", b"ker\x01nel", 1),
    "a missing comma": lambda text: b'"ph": "C"'.join(text.rsplit(b'"ph": "C",', 1)),
    "not closed": lambda text: text[: text.rindex(b"]")],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_reported_as_by_one_process(damage: str, tmp_path: Path, cut_at: Callable[..., list[bool]]):
    path = write(tmp_path / "t.json", some_of_everything(60))
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    whole = open_trace(path)
    assert whole.health
    for place in boundaries(path.read_bytes())[300::300]:
        cut_at(place)
        cut = open_trace(path)
        assert meaning(cut) == meaning(whole)
        assert {note.byte_offset for note in cut.health} == {note.byte_offset for note in whole.health}


@pytest.mark.parametrize("odd", [{"ph": "s", "id": "0xabc"}, {"ph": "X", "dur": 1, "args": {"correlation": 2**70}}])
def test_ids_that_are_no_numbers_of_64_bits_are_read_by_one_process(
    odd: dict[str, Any], tmp_path: Path, cut_at: Callable[..., list[bool]]
):
    events = some_of_everything(60)
    events.insert(-5, {"name": "odd", "cat": "odd", "pid": 1, "tid": 1, "ts": 5000, **odd})
    path = write(tmp_path / "t.json", events)
    whole = meaning(open_trace(path))
    used = cut_at(boundaries(path.read_bytes())[400])
    assert meaning(open_trace(path)) == whole
    assert used == [False]


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trace that is worth two processes."""
    path = write(tmp_path / "large.json", some_of_everything(2500))
    monkeypatch.setattr(second_reader, "_WORTH_BYTES", 1 << 20)
    monkeypatch.setattr(second_reader, "_processors", lambda: 2)
    return path


def children() -> list[psutil.Process]:
    found = []
    for one in psutil.Process().children():
        with contextlib.suppress(psutil.Error):  # it has just ended
            if "second_reader" in " ".join(one.cmdline()):
                found.append(one)
    return found


def test_another_process_reads_the_second_half(large: Path, monkeypatch: pytest.MonkeyPatch):
    halves: list[Any] = []
    after = SecondReader.after
    monkeypatch.setattr(SecondReader, "after", lambda *args: halves.append(after(*args)) or halves[-1])
    told: list[tuple[int, int]] = []
    cut = meaning(open_trace(large, lambda done, size: told.append((done, size))))
    assert halves[-1] is not None
    assert not any(halves[:-1])
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (large.stat().st_size,) * 2
    monkeypatch.setattr(second_reader, "_processors", lambda: 1)
    assert meaning(open_trace(large)) == cut
    assert not children()


def test_the_half_of_a_killed_process_is_read_here(large: Path, monkeypatch: pytest.MonkeyPatch):
    enter = SecondReader.__enter__

    def killed(reader: SecondReader) -> SecondReader:
        enter(reader)._process.kill()
        return reader

    whole = meaning(open_trace(large))
    monkeypatch.setattr(SecondReader, "__enter__", killed)
    assert meaning(open_trace(large)) == whole


def test_the_half_of_a_process_that_stands_still_is_read_here(large: Path, monkeypatch: pytest.MonkeyPatch):
    enter = SecondReader.__enter__
    stopped: list[int] = []

    def stop(reader: SecondReader) -> SecondReader:
        enter(reader)._process.send_signal(signal.SIGSTOP)
        stopped.append(reader._process.pid)
        return reader

    whole = meaning(open_trace(large))
    monkeypatch.setattr(SecondReader, "__enter__", stop)
    monkeypatch.setattr(second_reader, "_PATIENCE_S", 0.1)
    assert meaning(open_trace(large)) == whole
    assert not psutil.pid_exists(stopped[0])


def test_no_thread_left_is_no_failure(large: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(_: Any) -> None:
        raise RuntimeError("can't start new thread")

    whole = meaning(open_trace(large))
    monkeypatch.setattr(second_reader.threading.Thread, "start", refuse)
    assert meaning(open_trace(large)) == whole
    assert not children()


def test_a_file_that_is_replaced_meanwhile_is_not_mixed_with_the_new_one(large: Path):
    new = large.with_name("new.json")
    new.write_bytes(large.read_bytes().replace(b'"kernel', b'"KERNEL'))

    def replace(*_: int) -> None:
        new.replace(large) if new.exists() else None

    trace = open_trace(large, replace)
    assert not new.exists()
    kernels = {trace.names[i] for i in trace.name[trace.in_categories("kernel")]}
    assert kernels == {f"kernel{i}" for i in range(4)}
    assert trace.health == open_trace(large).health


def test_where_the_other_process_meets_damage_this_one_reads_on(large: Path, monkeypatch: pytest.MonkeyPatch):
    text = large.read_bytes()
    large.write_bytes(text[: len(text) * 95 // 100])
    handed: list[Any] = []
    after = SecondReader.after
    monkeypatch.setattr(SecondReader, "after", lambda *args: handed.append(after(*args)) or handed[-1])
    told: list[int] = []
    cut = meaning(open_trace(large, lambda done, _: told.append(done)))
    (half,) = filter(None, handed)
    assert not half.ended
    assert half.offset > len(text) * 85 // 100
    assert told == sorted(told)
    monkeypatch.setattr(second_reader, "_processors", lambda: 1)
    assert meaning(open_trace(large)) == cut


def test_stopping_ends_the_other_process(large: Path):
    seen: list[int] = []

    def stop(*_: int) -> None:
        seen.extend(one.pid for one in children())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_trace(large, stop)
    assert seen
    assert not any(psutil.pid_exists(pid) for pid in seen)


def test_the_other_process_ends_when_the_first_is_gone(large: Path):
    reading, writing = os.pipe()  # stands for its stdin
    with os.fdopen(writing, "wb") as stdin:
        code = "import time; from gptscope.profiling.processes import end_with_stdin as end; end(); print(flush=True)"
        command = [sys.executable, "-c", f"{code}; time.sleep(60)"]
        process = psutil.Popen(command, stdin=reading, stdout=subprocess.PIPE)
        os.close(reading)
        process.stdout.readline()
        stdin.close()
        assert process.wait(10) == 1
        process.stdout.close()


def test_no_memory_for_another_process_is_no_failure(large: Path, monkeypatch: pytest.MonkeyPatch):
    whole = meaning(open_trace(large))

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(second_reader.subprocess, "Popen", refuse)
    assert meaning(open_trace(large)) == whole


def test_what_one_process_reads_as_fast(large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert find_cut(large) is not None
    packed = tmp_path / "t.json.gz"
    packed.write_bytes(gzip.compress(os.urandom(2 << 20)))
    marked = tmp_path / "bom.json"
    marked.write_bytes(b"\xef\xbb\xbf" + large.read_bytes())
    for path in (packed, marked, tmp_path / "missing", tmp_path):
        assert find_cut(path) is None
    monkeypatch.setattr(second_reader, "_processors", lambda: 1)
    assert find_cut(large) is None
    monkeypatch.undo()
    assert find_cut(large) is None  # it is small


def test_a_large_file_that_is_no_trace_is_refused(large: Path):
    large.write_text(json.dumps({"nodes": [{"id": i} for i in range(200_000)]}))
    with pytest.raises(TraceError, match="graph of nodes"):
        open_trace(large)
    assert not children()
