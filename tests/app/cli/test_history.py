"""Commands on kept runs."""

import gzip
import json
from pathlib import Path

import pytest

from gptscope.app.__main__ import main
from gptscope.app.cli.history_report import short_ids
from gptscope.profiling.records import TraceChunk
from gptscope.profiling.store.library import Library
from gptscope.profiling.store.recorder import Recorder

TRACE = gzip.compress(b'{"traceEvents": []}')


@pytest.fixture
def folder(tmp_path: Path, experiment) -> Path:
    """A library with one experiment; its first run has a trace."""
    folder = tmp_path / "lib"
    Library(folder).close()
    recorder = Recorder(folder)
    for record in experiment("e1"):
        recorder.add(record)
    recorder.add(TraceChunk(run_id="e1-a", offset=0, last=True), TRACE)
    assert recorder.close()
    return folder


@pytest.fixture
def history(folder: Path, capsys: pytest.CaptureFixture[str]):
    """Runs one history command; gives exit code, stdout, stderr."""

    def run(*arguments: str, code: int = 0) -> str:
        assert main(["history", *arguments, "--library", str(folder)]) == code
        captured = capsys.readouterr()
        return captured.out if code == 0 else captured.err

    return run


def test_the_list_shows_one_line_per_run(history) -> None:
    lines = history("list").splitlines()
    assert len(lines) == 3
    assert "FP32, plain, dynamic KV" in lines[1]
    assert "baseline" in lines[1]
    assert "BF16, attention, static KV" in lines[2]
    assert "n/a" not in lines[2]


def test_an_empty_library_says_what_to_do(tmp_path: Path, capsys) -> None:
    assert main(["history", "list", "--library", str(tmp_path / "new")]) == 0
    assert "`gptscope demo` makes some." in capsys.readouterr().out


def test_the_list_searches(history) -> None:
    assert len(history("list", "bf16", "tiny").splitlines()) == 2
    assert history("list", "fp16").startswith("No run matches in")
    assert history("list", "--tag", "x").startswith("No run matches in")
    history("tag", "e1-b", "x")
    assert len(history("list", "--tag", "x").splitlines()) == 2


def test_the_list_as_json(history) -> None:
    data = json.loads(history("list", "--json", "-"))
    assert [run["run_id"] for run in data["runs"]] == ["e1-a", "e1-b"]
    assert data["runs"][0]["trace"].endswith("e1-a.json.gz")
    assert data["runs"][0]["headline"]["tokens_per_second"] == pytest.approx(99, abs=2)


def test_a_kept_run_shows_what_was_printed(history) -> None:
    text = history("show", "e1-b")
    assert "Run       e1-b" in text
    assert "tok/s" in text
    assert "aten::addmm" in text
    assert "Trace     n/a: none arrived whole" in text
    assert "Repeat    gptscope run --model preset:tiny" in text
    assert json.loads(history("show", "e1-b", "--json", "-"))["baseline_run_id"] == "e1-a"


def test_a_whole_experiment_shows_as_compare_printed_it(history) -> None:
    text = history("show", "e1-a", "--experiment")
    assert text.startswith("✓ A (BF16, attention, static KV): Faster, same output")
    assert len(json.loads(history("show", "e1-a", "--experiment", "--json", "-"))["verdicts"]) == 1


def test_exports_write_trace_tables_and_json(history, tmp_path: Path) -> None:
    names = {name: tmp_path / name for name in ("t.json.gz", "t.json", "k.csv", "r.json")}
    history(
        "export",
        "e1-a",
        "--trace",
        str(names["t.json.gz"]),
        "--csv",
        str(names["k.csv"]),
        "--json",
        str(names["r.json"]),
    )
    history("export", "e1-a", "--trace", str(names["t.json"]))
    assert names["t.json.gz"].read_bytes() == TRACE
    assert names["t.json"].read_bytes() == b'{"traceEvents": []}'
    assert "aten::addmm" in names["k.csv"].read_text()
    assert (tmp_path / "k-steps.csv").exists()
    assert json.loads(names["r.json"].read_text())["runs"][0]["run_id"] == "e1-a"


def test_a_missing_trace_is_a_sentence(history, tmp_path: Path) -> None:
    assert "has no trace" in history("export", "e1-b", "--trace", str(tmp_path / "t.json"), code=1)
    assert not (tmp_path / "t.json").exists()


def test_tags_and_notes(history) -> None:
    history("tag", "e1-a", "paper", "final")
    text = history("tag", "e1-a", "more", "--remove", "final", "--notes", "cool room")
    assert "tags paper, more; notes: cool room" in text
    assert "cool room" in history("show", "e1-a")


def test_deleting_and_bringing_back(history) -> None:
    assert "undelete e1-b" in history("delete", "e1-b")
    assert len(history("list").splitlines()) == 2
    assert "e1-b" in history("list", "--deleted")
    assert "Back: e1-b" in history("undelete", "e1-b")
    assert len(history("list").splitlines()) == 3


def test_one_wrong_id_among_several_deletes_nothing(history) -> None:
    assert "No run 'zzz'" in history("delete", "e1-a", "zzz", code=1)
    assert len(history("list").splitlines()) == 3


def test_removing_for_good(history, folder: Path) -> None:
    history("delete", "--for-good", "e1-a")
    assert "No run 'e1-a'" in history("undelete", "e1-a", code=1)
    assert list((folder / "traces").iterdir()) == []


def test_ids_are_shortened_only_as_far_as_they_stay_apart() -> None:
    assert short_ids(["0123456789ab", "0123456789xx"]) == {
        "0123456789ab": "0123456789a",
        "0123456789xx": "0123456789x",
    }
    assert short_ids(["abcdefghijkl"]) == {"abcdefghijkl": "abcdefgh"}
    assert short_ids(["a", "b"]) == {"a": "a", "b": "b"}
    assert short_ids([]) == {}
