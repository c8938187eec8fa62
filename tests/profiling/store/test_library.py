"""Keeping, replaying, finding, deleting and bringing back runs."""

import math
import threading
import time
from pathlib import Path

import pytest

from gptscope.profiling.experiment import Variant
from gptscope.profiling.records import (
    CpuSample,
    ExperimentStarted,
    Notice,
    Progress,
    Record,
    StepSamples,
    Telemetry,
    TraceChunk,
)
from gptscope.profiling.store import trace_files
from gptscope.profiling.store.entries import LibraryError
from gptscope.profiling.store.library import PURGE_AFTER_DAYS, Library
from gptscope.profiling.store.recorder import Recorder

NOTE = Notice(message="of the experiment")


def keep(folder: Path, records: list[Record]) -> None:
    recorder = Recorder(folder)
    for record in records:
        recorder.add(record)
    assert recorder.close()
    assert recorder.problems == ()


def test_a_kept_experiment_replays_record_for_record(folder: Path, stream) -> None:
    records = [*stream()[:-1], NOTE, stream()[-1]]
    with Library(folder) as library:
        keep(folder, records)
        assert list(library.open_experiment("e1")) == records
        mine = [r for r in records if getattr(r, "run_id", None) in (None, "e1-b")]
        assert list(library.open("e1-b")) == mine
        assert NOTE in mine


def test_a_list_shows_newest_first_with_headline_numbers(folder: Path, stream) -> None:
    with Library(folder) as library:
        keep(folder, stream("old", unix_s=1_700_000_000))
        keep(folder, stream("new"))
        entries = library.list_runs()
        assert [e.run_id for e in entries] == ["new-a", "new-b", "old-a", "old-b"]
        assert [e.position for e in entries[:2]] == [0, 1]
        assert all(e.outcome == "done" and e.finished_unix_ns for e in entries)
        assert entries[0].headline.tokens_per_second == pytest.approx(100)
        assert entries[1].headline.tokens_per_second == pytest.approx(200)
        assert entries[1].headline.ttft_ms == pytest.approx(25)
        assert entries[0].headline.verdict == ""
        assert entries[1].headline.verdict == "Not comparable"  # too few pairs for an interval
        assert entries[1].variant == Variant(precision="bf16", fusions=("attention",), kv_cache="static")
        assert entries[1].name == "BF16, attention, static KV"


def test_candidates_of_a_finished_experiment_have_their_verdict(folder: Path, stream) -> None:
    with Library(folder) as library:
        keep(folder, stream(slices=6))
        baseline, candidate = library.list_runs()
        assert baseline.headline.speedup is None
        assert candidate.headline.speedup == pytest.approx(2)
        assert candidate.headline.verdict == "Faster, output not compared"


def test_a_fault_in_the_numbers_costs_no_records(folder: Path, stream, monkeypatch, caplog) -> None:
    monkeypatch.setattr("gptscope.profiling.metrics.summary.summarise", lambda *_args: 1 // 0)
    with Library(folder) as library:
        keep(folder, stream())
        assert list(library.open_experiment("e1")) == stream()
        assert library.find("e1-a").headline.tokens_per_second is None
    assert "could not be made" in caplog.text


def test_broken_numbers_and_odd_texts_survive(folder: Path, stream) -> None:
    odd = StepSamples(
        run_id="e1-a",
        slice=9,
        phase="measure",
        kind="train",
        start_ns=(1, 2),
        duration_ns=(1, 1),
        tokens=(1, 1),
        loss=(math.nan, math.inf),
    )
    notice = Notice(message="naïve 日本 \x00 \U0001f600", run_id="e1-a")
    with Library(folder) as library:
        keep(folder, [*stream(finish=False), odd, notice])
        *_, back, text = library.open("e1-a")
        assert isinstance(back, StepSamples)
        assert math.isnan(back.loss[0])
        assert back.loss[1] == math.inf
        assert text == notice


def test_progress_and_capabilities_are_not_kept_and_nothing_before_the_experiment(folder: Path, stream) -> None:
    first, *rest = stream()
    telemetry = Telemetry(time_ns=1, cpu=CpuSample(worker_percent=1, other_percent=0, own_percent=0))
    with Library(folder) as library:
        keep(folder, [telemetry, first, Progress(phase="load", done=1, total=2), *rest, telemetry])
        assert list(library.open_experiment("e1")) == [first, *rest]


def test_several_experiments_of_one_engine_stay_apart(folder: Path, stream) -> None:
    with Library(folder) as library:
        keep(folder, [*stream("e1"), NOTE, *stream("e2")])
        assert list(library.open_experiment("e1")) == stream("e1")
        assert list(library.open_experiment("e2")) == stream("e2")


def test_search_finds_all_words_in_any_field(folder: Path, stream) -> None:
    with Library(folder) as library:
        keep(folder, stream())
        library.set_tags("e1-b", ["Paper", "paper", " ", "final"])
        library.set_notes("e1-a", "warm room")
        assert [e.run_id for e in library.list_runs("BF16 decode")] == ["e1-b"]
        assert [e.run_id for e in library.list_runs("ROOM")] == ["e1-a"]
        assert [e.run_id for e in library.list_runs("final bundled")] == ["e1-b"]
        assert library.list_runs("fp16") == ()
        assert [e.run_id for e in library.list_runs(tag="final")] == ["e1-b"]
        assert library.find("e1-b").tags == ("Paper", "paper", "final")
        assert library.find("e1-a").notes == "warm room"


def test_a_run_is_found_by_the_beginning_of_its_id(folder: Path, stream) -> None:
    with Library(folder) as library:
        with pytest.raises(LibraryError, match="holds no run yet"):
            library.find("last")
        keep(folder, stream("e1"))
        keep(folder, stream("e10"))
        assert library.find("e10-b").run_id == "e10-b"
        assert library.find("e1-a").run_id == "e1-a"
        with pytest.raises(LibraryError, match="4 runs begin with 'e1'"):
            library.find("e1")
        for missing in ("zz", "%", "e_0", ""):
            with pytest.raises(LibraryError):
                library.find(missing)
        assert library.find("last").run_id in ("e1-b", "e10-b")


def test_a_deleted_run_can_be_brought_back(folder: Path, stream) -> None:
    with Library(folder) as library:
        keep(folder, stream())
        assert library.delete("e1-b").deleted_unix_ns is not None
        assert [e.run_id for e in library.list_runs()] == ["e1-a"]
        assert [e.run_id for e in library.list_runs(deleted=True)] == ["e1-b"]
        assert library.undelete("e1-b").deleted_unix_ns is None
        assert list(library.open_experiment("e1")) == stream()


def test_purging_removes_records_and_trace_of_deleted_runs_only(folder: Path, stream) -> None:
    with Library(folder) as library:
        keep(folder, stream())
        for run in ("e1-a", "e1-b"):
            trace_files.append(folder, run, 0, b"x", last=True)
        with pytest.raises(LibraryError, match="not deleted"):
            library.purge(["e1-a"])
        library.delete("e1-b")
        assert library.purge(["e1-b"]) == 1
        assert [getattr(r, "run_id", None) for r in library.open_experiment("e1")].count("e1-b") == 0
        assert library.find("e1-a").trace is not None
        assert not trace_files.trace_path(folder, "e1-b").exists()
        library.delete("e1-a")
        library.purge(["e1-a"])
        assert list(library.open_experiment("e1")) == []


def test_long_deleted_runs_are_forgotten_when_the_library_opens(folder: Path, stream, monkeypatch) -> None:
    with Library(folder) as library:
        keep(folder, stream())
        library.delete("e1-b")
    day_ns = 86_400 * 10**9
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + (PURGE_AFTER_DAYS - 1) * day_ns)
    with Library(folder) as library:
        assert library.find("e1-b").deleted_unix_ns is not None
    monkeypatch.setattr(time, "time_ns", lambda: now + (PURGE_AFTER_DAYS + 1) * day_ns)
    with Library(folder) as library, pytest.raises(LibraryError, match="No run"):
        library.find("e1-b")


def test_a_trace_arrives_in_pieces_and_shows_only_when_whole(folder: Path, stream) -> None:
    with Library(folder) as library:
        recorder = Recorder(folder)
        for record in stream():
            recorder.add(record)
        recorder.add(TraceChunk(run_id="e1-a", offset=0, last=False), b"abc")
        recorder.add(TraceChunk(run_id="e1-a", offset=3, last=True), b"def")
        recorder.add(TraceChunk(run_id="e1-b", offset=0, last=False), b"abc")
        assert recorder.close()
        trace = library.find("e1-a").trace
        assert trace is not None
        assert trace.read_bytes() == b"abcdef"
        assert library.find("e1-b").trace is None
        assert not any(isinstance(r, TraceChunk) for r in library.open_experiment("e1"))


def test_a_trace_with_a_hole_is_dropped_with_a_sentence_and_the_run_is_kept(folder: Path, stream) -> None:
    told: list[str] = []
    with Library(folder) as library:
        recorder = Recorder(folder, told.append)
        recorder.add(TraceChunk(run_id="../../e1-a", offset=0, last=False), b"abc")
        recorder.add(TraceChunk(run_id="../../e1-a", offset=5, last=True), b"def")
        for record in stream():
            recorder.add(record)
        assert recorder.close()
        assert "its piece at byte 3 never arrived" in told[0]
        assert library.find("e1-a").trace is None
        assert list((folder / "traces").iterdir()) == []


def test_records_are_in_the_file_within_half_a_second(folder: Path, stream) -> None:
    with Library(folder) as library:
        recorder = Recorder(folder)
        for record in stream(finish=False):
            recorder.add(record)
        deadline = time.monotonic() + 2.0
        while not library.list_runs() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert list(library.open_experiment("e1")) == stream(finish=False)
        assert {e.outcome for e in library.list_runs()} == {"running"}
        recorder.close()
        assert {e.outcome for e in library.list_runs()} == {"interrupted"}
        assert library.find("e1-a").headline.tokens_per_second == pytest.approx(100)


def test_runs_of_an_engine_that_died_are_interrupted_when_the_next_experiment_begins(folder: Path, stream) -> None:
    with Library(folder) as library:
        recorder = Recorder(folder)
        for record in [*stream("e1", finish=False), *stream("e2")]:
            recorder.add(record)
        assert recorder.flush(20)
        assert [e.outcome for e in library.list_runs()] == ["interrupted", "interrupted", "done", "done"]
        assert library.find("e1-b").headline.tokens_per_second == pytest.approx(200)
        assert recorder.close()


def test_a_library_can_be_read_from_several_threads_while_it_is_written(folder: Path, stream) -> None:
    with Library(folder) as library:
        recorder = Recorder(folder)
        seen: list[int] = []

        def read() -> None:
            seen.extend(len(list(library.open_experiment("e1"))) for _ in range(50))

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for record in stream(slices=200):
            recorder.add(record)
        for reader in readers:
            reader.join()
        assert recorder.close()
        assert len(list(library.open_experiment("e1"))) == len(stream(slices=200))
        assert len(seen) == 150


def test_an_unreadable_record_is_counted_and_the_others_are_shown(folder: Path, stream) -> None:
    with Library(folder) as library:
        keep(folder, stream())
        library._change('UPDATE records SET body = CAST(\'{"type":"future"}\' AS BLOB) WHERE id = 4')
        back = list(library.open_experiment("e1"))
        assert back[:-1] == [r for i, r in enumerate(stream()) if i != 3]
        assert isinstance(back[-1], Notice)
        assert back[-1].message.startswith("1 record")


def test_a_run_in_a_stream_without_its_experiment_is_ignored(folder: Path, stream) -> None:
    with Library(folder) as library:
        keep(folder, [r for r in stream() if not isinstance(r, ExperimentStarted)])
        assert library.list_runs() == ()
