"""A command from its start to its exit code, against an engine that plays a script."""

import functools
import gzip
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from gptscope.app.__main__ import main
from gptscope.app.cli import session
from gptscope.app.cli.console import results
from gptscope.app.cli.json_output import JsonOutput
from gptscope.profiling.client import EngineClient
from gptscope.profiling.records import (
    ExperimentFinished,
    Failure,
    Notice,
    Progress,
    Record,
    RunFinished,
    TraceChunk,
)
from gptscope.profiling.store.library import Library


@pytest.fixture
def single(experiment) -> list[Record]:
    """One variant, done."""
    from gptscope.profiling.experiment import Variant

    return experiment(variants=(Variant(),), quality=False)


def test_a_run_prints_results_to_stdout_progress_to_stderr_and_is_kept(play, single, tmp_path, capsys) -> None:
    play([Progress(phase="measure", done=1, total=4, unit="slices"), *single])
    assert main(["run", "--library", str(tmp_path / "lib")]) == 0
    captured = capsys.readouterr()
    assert "tok/s" in captured.out
    assert "Measuring" not in captured.out
    assert captured.err == "Measuring\n"
    assert "\x1b" not in captured.out + captured.err
    assert f"Kept in {tmp_path / 'lib'} as e1-a" in captured.out
    with Library(tmp_path / "lib") as library:
        (entry,) = library.list_runs()
        assert entry.outcome == "done"
        assert list(library.open_experiment("e1")) == single


def test_json_on_stdout_is_the_only_thing_there(play, single, capsys) -> None:
    play(single)
    assert main(["run", "--no-keep", "--json", "-"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["gptscope"] == "experiment"
    assert document["runs"][0]["summary"]["tokens_per_s"]["value"] == pytest.approx(99, abs=2)
    assert document["kept"] == {"library": None, "reason": "--no-keep was given"}
    assert "tok/s" in captured.err


def test_files_are_written_beside_the_report(play, single, tmp_path) -> None:
    packed = gzip.compress(b'{"traceEvents": []}')
    pieces = [
        (TraceChunk(run_id="e1-a", offset=0, last=False), packed[:10]),
        (TraceChunk(run_id="e1-a", offset=10, last=True), packed[10:]),
    ]
    play([*single[:-2], *pieces, *single[-2:]])
    targets = [tmp_path / name for name in ("r.json", "t.json.gz", "k.csv")]
    options = ["--json", str(targets[0]), "--trace", str(targets[1]), "--csv", str(targets[2])]
    assert main(["run", "--library", str(tmp_path / "lib"), *options]) == 0
    assert json.loads(targets[0].read_text())["kept"]["library"] == str(tmp_path / "lib")
    assert targets[1].read_bytes() == packed
    assert "aten::addmm" in targets[2].read_text()
    assert (tmp_path / "k-steps.csv").exists()
    play([*single[:-2], *pieces, *single[-2:]])
    assert main(["run", "--no-keep", "--trace", str(tmp_path / "plain.json")]) == 0
    assert (tmp_path / "plain.json").read_bytes() == b'{"traceEvents": []}'
    assert not list(tmp_path.glob("*.part*"))


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="shows no descriptors")
def test_a_trace_goes_into_an_open_pipe(play, single) -> None:
    reader, writer = os.pipe()
    packed = gzip.compress(b'{"traceEvents": []}')
    pieces = [
        (TraceChunk(run_id="e1-a", offset=0, last=False), packed[:10]),
        (TraceChunk(run_id="e1-a", offset=10, last=True), packed[10:]),
    ]
    play([*single[:-2], *pieces, *single[-2:]])
    assert main(["run", "--no-keep", "--trace", f"/dev/fd/{writer}"]) == 0
    os.close(writer)
    assert os.read(reader, 100) == b'{"traceEvents": []}'
    os.close(reader)


def test_a_trace_that_never_came_whole_is_said_and_not_left_behind(play, single, tmp_path, capsys) -> None:
    play([*single[:-2], (TraceChunk(run_id="e1-a", offset=0, last=False), b"half"), *single[-2:]])
    assert main(["run", "--no-keep", "--trace", str(tmp_path / "t.json.gz")]) == 1
    assert "No trace was written" in capsys.readouterr().err
    assert not list(tmp_path.glob("t.json*"))


@pytest.mark.parametrize(("kind", "code"), [("usage", 2), ("model", 1), ("memory", 1)])
def test_a_request_the_engine_refuses_is_a_sentence(play, single, capsys, kind, code) -> None:
    failure = Failure(kind=kind, message="The context is 9000 tokens, but the model has 256.", detail="traceback")
    play([single[0], failure, ExperimentFinished(experiment_id="e1", outcome="failed")])
    assert main(["run", "--no-keep"]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "gptscope: The context is 9000 tokens, but the model has 256.\n"


def test_a_run_that_fails_half_way_prints_what_it_measured(play, single, tmp_path, capsys) -> None:
    failure = Failure(kind="worker_died", message="The worker was killed (SIGKILL).", run_id="e1-a")
    end = [
        RunFinished(run_id="e1-a", outcome="failed", finished_unix_ns=1),
        ExperimentFinished(experiment_id="e1", outcome="failed"),
    ]
    play([*single[:-2], failure, *end])
    assert main(["run", "--library", str(tmp_path / "lib")]) == 1
    captured = capsys.readouterr()
    assert "tok/s" in captured.out
    assert "Failed: The worker was killed" in captured.out
    assert "gptscope: The worker was killed (SIGKILL)." in captured.err
    with Library(tmp_path / "lib") as library:
        assert library.find("last").outcome == "failed"


def test_an_engine_that_dies_is_told_and_the_run_is_kept_as_interrupted(play, single, tmp_path, capsys) -> None:
    play(single[:-2], "die")
    assert main(["run", "--library", str(tmp_path / "lib")]) == 1
    captured = capsys.readouterr()
    assert "tok/s" in captured.out
    assert "The engine" in captured.err
    with Library(tmp_path / "lib") as library:
        assert library.find("last").outcome == "interrupted"


@pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_and_prints_what_was_measured(play, single, tmp_path, capsys, number) -> None:
    play(single[:-2], "hang", number)
    before = signal.getsignal(number)
    assert main(["run", "--library", str(tmp_path / "lib")]) == 1
    assert signal.getsignal(number) == before
    captured = capsys.readouterr()
    assert "tok/s" in captured.out
    assert captured.err.splitlines()[-1] == "gptscope: Stopped. What was measured until then is above."
    with Library(tmp_path / "lib") as library:
        assert library.find("last").outcome == "cancelled"


@pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")
def test_a_second_ctrl_c_ends_at_once_even_when_the_engine_is_deaf(play, single, tmp_path, capsys) -> None:
    play(single[:-2], "deaf", signal.SIGINT, signal.SIGINT)
    assert main(["run", "--library", str(tmp_path / "lib")]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "gptscope: Stopped."
    with Library(tmp_path / "lib") as library:
        assert library.find("last").outcome == "interrupted"


def test_a_deaf_engine_is_ended_some_seconds_after_the_stop(play, single, monkeypatch, capsys) -> None:
    monkeypatch.setattr(session, "STOP_S", 0.5)
    play(single[:-2], "deaf", signal.SIGINT)
    assert main(["run", "--no-keep"]) == 1
    assert "tok/s" in capsys.readouterr().out


def test_an_engine_that_cannot_be_started_is_a_sentence(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(session, "EngineClient", functools.partial(EngineClient, [str(tmp_path / "no-python")]))
    for arguments in (["run", "--no-keep"], ["bench-machine"]):
        assert main(arguments) == 1
        assert capsys.readouterr().err == "gptscope: The engine could not be started: No such file or directory.\n"


def test_an_unusable_library_named_by_hand_is_refused_before_the_run(play, single, tmp_path, capsys) -> None:
    play(single)
    (tmp_path / "file").touch()
    assert main(["run", "--library", str(tmp_path / "file")]) == 1
    captured = capsys.readouterr()
    assert "is a file, not a folder" in captured.err
    assert captured.out == ""


def test_an_unusable_default_library_does_not_stop_the_run(play, single, tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "data").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    play(single)
    assert main(["run"]) == 0
    captured = capsys.readouterr()
    assert "The run goes on, but is not kept." in captured.err
    assert "Not kept: The library folder" in captured.out


def test_a_newer_library_stops_the_run_before_it_begins(play, single, tmp_path, monkeypatch, capsys) -> None:
    import sqlite3

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with Library() as library:
        path = library.path
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    play(single)
    assert main(["run"]) == 1
    assert "made by a newer gptscope" in capsys.readouterr().err


def test_a_damaged_library_is_replaced_and_the_run_kept_in_the_new_one(play, single, tmp_path, capsys) -> None:
    folder = tmp_path / "lib"
    folder.mkdir()
    (folder / "library.sqlite3").write_bytes(b"no library" * 99)
    play(single)
    assert main(["run", "--library", str(folder)]) == 0
    assert "a new one was begun" in capsys.readouterr().err
    assert len(list(folder.glob("library.damaged-*"))) == 1


def test_a_json_file_that_cannot_be_written_at_the_end_loses_nothing_else(
    play, single, tmp_path, monkeypatch, capsys
) -> None:
    target = tmp_path / "gone" / "r.json"
    target.parent.mkdir()
    monkeypatch.setattr(JsonOutput, "console", lambda _self: target.parent.rename(tmp_path / "moved") and results())
    play(single)
    assert main(["run", "--library", str(tmp_path / "lib"), "--json", str(target)]) == 1
    captured = capsys.readouterr()
    assert "tok/s" in captured.out
    assert f"{target} was not written" in captured.err
    with Library(tmp_path / "lib") as library:
        assert library.list_runs()


def test_sentences_of_the_engine_come_through(play, single, capsys) -> None:
    play([single[0], Notice(message="Memory holds one variant at a time.", level="warning"), *single[1:]])
    assert main(["run", "--no-keep"]) == 0
    assert "Warning: Memory holds one variant at a time." in capsys.readouterr().err
