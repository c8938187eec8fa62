"""`gptscope trace`: every action on small traces, for people and for programs."""

import csv
import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests_app_traces import slice_event

from gptscope.app.__main__ import main
from gptscope.app.cli.trace import LEVELS
from gptscope.profiling.records import TraceChunk
from gptscope.profiling.store.library import Library
from gptscope.profiling.store.recorder import Recorder
from gptscope.profiling.trace import analysis


def event(name: str, category: str, start: float, duration: float, tid: int = 1, **args: Any) -> dict[str, Any]:
    pid = 0 if category in {"kernel", "gpu_memcpy"} else 100
    return slice_event(name, category, start, duration, pid, tid, **args)


def trace_with(kernel: str, kernel_us: float) -> dict[str, Any]:
    return {
        "deviceProperties": [{"id": 0, "name": "Test GPU", "computeMajor": 9}],
        "traceEvents": [
            event("ProfilerStep#1", "user_annotation", 0, 400),
            event("module: blocks.0.mlp", "user_annotation", 5, 100),
            event("aten::mm", "cpu_op", 10, 50, **{"External id": 1, "Input Dims": [[64, 64], [64, 64]],
                  "Input type": ["float", "float"]}),
            event("cudaLaunchKernel", "cuda_runtime", 20, 5, correlation=11, **{"External id": 1}),
            event(kernel, "kernel", 40, kernel_us, 7, device=0, stream=7, correlation=11, **{"External id": 1}),
            event("aten::add", "cpu_op", 250, 30, **{"External id": 2}),
            event("cudaLaunchKernel", "cuda_runtime", 260, 5, correlation=12, **{"External id": 2}),
            event("add_b", "kernel", 270, 20, 7, device=0, stream=7, correlation=12, **{"External id": 2}),
        ],
    }  # fmt: skip


@pytest.fixture
def before(tmp_path: Path) -> Path:
    path = tmp_path / "before.json"
    path.write_text(json.dumps(trace_with("sgemm_fp32", 100)))
    return path


@pytest.fixture
def after(tmp_path: Path) -> Path:
    path = tmp_path / "after.json"
    path.write_text(json.dumps(trace_with("gemm_bf16", 40)))
    return path


@pytest.fixture
def trace(capsys: pytest.CaptureFixture[str]):
    def run(*arguments: object, code: int = 0) -> str:
        assert main(["trace", *map(str, arguments)]) == code
        captured = capsys.readouterr()
        return captured.out if code == 0 else captured.err

    return run


def test_the_summary_says_what_the_time_went_to(trace, before: Path):
    text = trace("summary", before)
    assert "busy 120 µs of 250 µs (48 %)" in text
    assert "Test GPU" in text
    assert "sgemm_fp32" in text
    assert "ProfilerStep#1" in text
    assert "GPU 0 is idle 52 % of 250 µs; 100 % of that is" in text


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ("kernels", ["sgemm_fp32", "GEMM", "0.100", "83 %"]),
        ("operators", ["aten::mm", "blocks.*.mlp"]),
        ("modules", ["mlp", "outside modules"]),
        ("timeline", ["GPU 0 stream 7", "process 100 thread 1", "ProfilerStep#1"]),
        ("health", ["Nothing is damaged"]),
    ],
)
def test_tables_are_for_people_and_for_programs(trace, before: Path, tmp_path: Path, action: str, words: list[str]):
    target = tmp_path / "out.json"
    text = trace(action, before, "--json", target)
    for word in words:
        assert word in text
    document = json.loads(target.read_text())
    assert document["gptscope"] == f"trace-{action}"
    assert document["files"][0]["file"] == str(before)


def test_the_documents_fields_are_described(trace, before: Path, after: Path, tmp_path: Path, repository: Path):
    described = (repository / "docs" / "json.md").read_text(encoding="utf-8")
    for action in ("summary", "kernels", "operators", "modules", "timeline", "health"):
        target = tmp_path / f"{action}.json"
        trace(action, before, "--json", target)
        document = json.loads(target.read_text())
        assert f"`{document['gptscope']}`" in described
        for key in field_names(document["files"]):
            assert f"`{key}`" in described, key


def field_names(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*(field_names(one) for one in value))
    if isinstance(value, dict):
        inner = {k: v for k, v in value.items() if k not in {"parts_ns", "numbers"}}
        return set(value).union(*(field_names(one) for one in inner.values()))
    return set()


def test_a_range_limits_what_is_looked_at(trace, before: Path, tmp_path: Path):
    target = tmp_path / "out.json"
    trace("kernels", before, "--range", "0.2:0.4", "--json", target)
    kernels = json.loads(target.read_text())["files"][0]["kernels"]
    assert [k["name"] for k in kernels] == ["add_b"]
    assert "is no range" in trace("kernels", before, "--range", "5", code=2)
    assert "is no range" in trace("kernels", before, "--range", "5:nan", code=2)


@pytest.mark.parametrize("range_text", [":", "0:", ":9e9", "-3:400"])
def test_a_range_around_the_whole_trace_changes_nothing(trace, before: Path, range_text: str):
    assert trace("summary", before, f"--range={range_text}") == trace("summary", before)


@pytest.mark.parametrize("range_text", ["0.2:", "0.2:0.4", "0.2:999"])
def test_a_range_ends_with_the_trace(trace, before: Path, tmp_path: Path, range_text: str):
    target = tmp_path / "out.json"
    trace("timeline", before, "--range", range_text, "--json", target)
    document = json.loads(target.read_text())["files"][0]
    assert document["end_ns"] - document["start_ns"] == 200_000
    assert ["Time", "200", "µs"] in [
        line.split() for line in trace("summary", before, "--range", range_text).splitlines()
    ]
    rows = tmp_path / "devices.csv"
    trace("export", before, "--to", "csv", "--table", "devices", "--range", range_text, "--output", rows)
    with rows.open(newline="") as file:
        assert [row["window_ns"] for row in csv.DictReader(file)] == ["200000"]


@pytest.mark.parametrize("range_text", ["0.4:", "9:12", ":0", "-4:-1"])
def test_a_range_outside_is_refused_with_what_the_trace_covers(trace, before: Path, range_text: str):
    assert "it covers 0 to 0.4 ms" in trace("kernels", before, f"--range={range_text}", code=2)


def test_a_diff_matches_kernels_of_another_precision(trace, before: Path, after: Path, tmp_path: Path):
    target = tmp_path / "out.json"
    text = trace("diff", before, after, "--json", target)
    assert "sgemm_fp32 → gemm_bf16" in text
    rows = json.loads(target.read_text())["diff"]["rows"]
    assert rows[0]["status"] == "replaced"
    assert (rows[0]["before_ns"], rows[0]["after_ns"]) == (100_000, 40_000)
    for level in ("category", "operator", "module", "step"):
        trace("diff", before, after, "--by", level)


@pytest.mark.parametrize("form", ["chrome", "tensorboard", "csv", "npz", "speedscope", "folded", "markdown"])
def test_exports_are_written(trace, before: Path, tmp_path: Path, form: str):
    target = tmp_path / "exported"
    assert "Written: " in trace("export", before, "--to", form, "--output", target)
    assert target.exists()


def test_a_difference_is_exported_against_the_other_trace(trace, before: Path, after: Path, tmp_path: Path):
    target = tmp_path / "out.csv"
    trace("export", before, "--against", after, "--to", "csv", "--output", target, "--by", "category")
    with target.open(newline="") as file:
        assert {row["name"]: row["after_ns"] for row in csv.DictReader(file)}["GEMM"] == "40000"
    for words, sentence in [
        (("--table", "difference", "--to", "csv"), "needs another trace: name it with --against"),
        (("--against", after, "--table", "gaps", "--to", "csv"), "not for gaps"),
        (("--against", after, "--to", "chrome"), "csv or npz, not as chrome"),
    ]:
        assert sentence in trace("export", before, *words, "--output", tmp_path / "x", code=2)
    assert not (tmp_path / "x").exists()


def test_wrong_uses_and_files_get_a_sentence(trace, before: Path, tmp_path: Path):
    assert "There is no format x. There are:" in trace("export", before, "--to", "x", "--output", "y", code=2)
    missing = tmp_path / "none.json"
    assert "cannot be read" in trace("summary", missing, code=1)
    output = tmp_path / "a.csv"
    told = trace("export", before, "--to", "csv", "--table", "kernel", "--output", output, code=2)
    assert "There is no table 'kernel'. Did you mean kernels? There are " in told
    assert not output.exists()


@pytest.fixture
def library(tmp_path: Path, experiment, before: Path) -> Path:
    """Two runs; only the first was profiled."""
    folder = tmp_path / "lib"
    Library(folder).close()
    recorder = Recorder(folder)
    for record in experiment("e1"):
        recorder.add(record)
    recorder.add(TraceChunk(run_id="e1-a", offset=0, last=True), gzip.compress(before.read_bytes()))
    assert recorder.close()
    return folder


def test_a_kept_run_stands_in_place_of_a_file(trace, library: Path, after: Path):
    text = trace("summary", "e1-a", "--library", library)
    assert "busy 120 µs of 250 µs (48 %)" in text
    assert "vanished" in trace("diff", "e1-a", after, "--library", library) or "sgemm_fp32" in text
    assert "has no trace: it was not profiled" in trace("kernels", "e1-b", "--library", library, code=1)
    assert "2 runs begin with 'e1'" in trace("kernels", "e1", "--library", library, code=1)
    assert "There is no file e9. No run 'e9'" in trace("kernels", "e9", "--library", library, code=1)


def test_no_library_is_made_and_no_path_taken_for_a_run(trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert "and no run either" in trace("summary", "last", "--library", tmp_path / "none", code=1)
    assert not (tmp_path / "none").exists()
    assert "run" not in trace("summary", "missing.json", code=1)


@pytest.mark.skipif(sys.platform == "win32", reason="uses named pipes and links")
def test_results_go_into_pipes_and_through_links(trace, before: Path, tmp_path: Path):
    pipe, link, folder = tmp_path / "pipe", tmp_path / "link", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    link.symlink_to(folder / "out.csv")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    trace("export", before, "--to", "csv", "--output", link, "--json", pipe)
    assert json.loads(os.read(reader, 1 << 16))["written"] == str(link)
    os.close(reader)
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert "sgemm_fp32" in (folder / "out.csv").read_text()


def test_standard_output_by_its_name_holds_json_only(capfdbinary, before: Path):
    assert main(["trace", "health", str(before), "--json", "/dev/fd/1"]) == 0
    assert json.loads(capfdbinary.readouterr().out)["gptscope"] == "trace-health"


def test_places_that_cannot_be_written_are_told_before_the_work(trace, tmp_path: Path):
    nothing = tmp_path / "missing.json"  # would be the first failure of the work
    for target, words in [
        (tmp_path / "no" / "x", "does not exist"),
        (tmp_path / ("x" * 300), "file name too long"),
        (tmp_path, "is a folder"),
        *([(Path("/dev/fd/987"), "no such descriptor is open")] if Path("/dev/fd").exists() else []),
    ]:
        export = ("export", nothing, "--to", "csv", "--output", target)
        for arguments, option in [(("kernels", nothing, "--json", target), "--json"), (export, "--output")]:
            text = trace(*arguments, code=2)
            assert text.startswith(f"gptscope: {option} cannot write")
            assert words in text


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A trace whose names would clear the screen, break rows, and turn the writing direction."""
    name = "\x1b[2Ja\nb\u202e\x00"
    document = trace_with(name, 100)
    document["deviceProperties"][0]["name"] = name
    document["traceEvents"] += [
        event(name, "cpu_op", 300, 40, **{"Input Dims": [[8]], "Input type": [name]}),
        event(f"ProfilerStep#2{name}", "user_annotation", 410, 20),
        event(f"module: {name}", "user_annotation", 290, 60),
        {"ph": "M", "name": "process_name", "pid": 100, "args": {"name": name}},
    ]
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("action", ["summary", "kernels", "operators", "modules", "timeline", "health"])
def test_names_cannot_steer_the_terminal_and_are_exact_for_programs(trace, hostile: Path, tmp_path: Path, action: str):
    target = tmp_path / "out.json"
    text = trace(action, hostile, "--json", target)
    assert not set("\x1b\x00\u202e") & set(text)
    if action != "health":
        assert "\\x1b[2Ja\\nb\\u202e\\x00" in text
        assert "\x1b[2Ja\nb\u202e\x00" in "".join(strings_in(json.loads(target.read_text())))


def strings_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in strings_in(one)]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_file_name_that_is_no_text_is_shown_with_escapes(trace, before: Path, tmp_path: Path):
    strange = before.rename(os.fsdecode(bytes(tmp_path) + b"/a\xff.json"))
    target = tmp_path / "out.json"
    assert "a\\udcff.json" in trace("kernels", strange, "--json", target)
    assert json.loads(target.read_text())["files"][0]["file"].endswith("a\\udcff.json")
    trace("export", strange, "--to", "markdown", "--output", tmp_path / "out.md")
    assert "## Trace a\\\\udcff" in (tmp_path / "out.md").read_text()


def test_a_level_without_a_difference_is_refused(trace, before: Path, tmp_path: Path):
    words = trace("export", before, "--to", "csv", "--by", "module", "--output", tmp_path / "o.csv", code=2)
    assert "--by is for the table difference" in words
    assert not (tmp_path / "o.csv").exists()


def test_the_levels_of_a_difference_are_those_of_the_analysis():
    assert LEVELS == analysis.LEVELS


def test_a_name_that_is_too_long_is_told(trace):
    assert "There is no file xxx" in trace("kernels", "x" * 300, "--library", "none", code=1)
    assert "gptscope met a fault" not in trace("kernels", f"{'x' * 300}.json", code=1)


def test_rows_to_print_are_a_number_or_all(trace, before: Path, capsys: pytest.CaptureFixture[str]):
    assert "1 more" in trace("kernels", before, "--top", "1")
    text = trace("kernels", before, "--top", "0")
    assert "sgemm_fp32" in text
    assert "add_b" in text
    assert "more" not in text
    for words in ("-1", "x", "1.5"):
        with pytest.raises(SystemExit) as left:
            main(["trace", "kernels", str(before), "--top", words])
        assert left.value.code == 2
        assert f"{words} rows cannot be printed: give 1 or more, or 0 for all" in capsys.readouterr().err


def test_of_several_files_bad_ones_are_named_and_the_others_shown(
    before: Path, after: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    target, bad = tmp_path / "out.json", tmp_path / "bad.json"
    bad.write_text("no trace")
    assert main(["trace", "kernels", *map(str, (before, bad, after)), "--json", str(target)]) == 1
    captured = capsys.readouterr()
    assert "sgemm_fp32" in captured.out
    assert "gemm_bf16" in captured.out
    assert f"gptscope: {bad}" in captured.err
    document = json.loads(target.read_text())
    assert [one["file"] for one in document["files"]] == [str(before), str(after)]
    assert [one["file"] for one in document["failed"]] == [str(bad)]
    assert document["failed"][0]["reason"] in captured.err
    assert main(["trace", "kernels", str(before), str(after), "--json", str(target)]) == 0
    assert json.loads(target.read_text())["failed"] == []


@pytest.mark.parametrize("form", ["chrome", "markdown"])
def test_a_table_is_refused_where_there_are_none(trace, before: Path, tmp_path: Path, form: str):
    words = ("--to", form, "--table", "operators", "--output", tmp_path / "x")
    assert f"{form} has no tables" in trace("export", before, *words, code=2)
    assert not (tmp_path / "x").exists()
