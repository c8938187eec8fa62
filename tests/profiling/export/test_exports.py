"""Exports: complete, readable by other programs, whole or not there."""

import csv
import errno
import gzip
import io
import json
import math
import os
import sys
from pathlib import Path

import msgspec
import pytest

from gptscope.profiling.export import (
    ExportError,
    export_json,
    export_kernels,
    export_steps,
    export_trace,
    kernel_csv,
    run_document,
    run_json,
    step_csv,
    write_whole,
)
from gptscope.profiling.records import (
    EvidenceItem,
    EvidenceReport,
    Failure,
    GeneratedText,
    KernelRow,
    Profile,
    Quality,
    RunFinished,
)


@pytest.fixture
def run(make):
    kernels = (
        KernelRow(
            name="aten::mm",
            label="mlp.down, fp32 GEMV",
            category="GEMM",
            calls=6,
            self_time_us=90.0,
            total_time_us=100.0,
            share=0.9,
            module="blocks.*.mlp.down",
            input_shapes="1×192, 192×64",
            dtypes=("float",),
            bytes=2_000_000,
            flops=4_000_000,
        ),
        KernelRow(name="=cmd()", category="other", calls=1, self_time_us=10.0, total_time_us=10.0, share=0.1),
    )
    return [
        make.started(),
        make.loaded(),
        make.samples([50.0], number=-1, phase="warmup"),
        make.samples([100.0], kind="prefill", start_ms=100, tokens=8),
        make.samples([10.0, 11.0], start_ms=200, context=(9, 10)),
        make.done(0, disturbed="busy"),
        make.samples([12.5], start_ms=300, context=(9,)),
        make.done(0, attempt=1),
        GeneratedText(run_id="a", text="Call me ", token_ids=(1, 2)),
        GeneratedText(run_id="a", text="Ishmael", token_ids=(3,)),
        Profile(run_id="a", steps=3, overhead=1.2, wall_us=120.0, busy_us=100.0, kernels=kernels, device="cpu"),
        EvidenceReport(run_id="a", items=(EvidenceItem(lever="qkv", in_effect=None, sentence="cannot tell"),)),
        Quality(
            run_id="a",
            baseline_run_id="b",
            tokens=10,
            perplexity=math.inf,
            perplexity_error=math.nan,
            baseline_perplexity=14.0,
            baseline_perplexity_error=0.1,
            kl_mean=0.1,
            kl_median=0.1,
            kl_p99=0.2,
            top1_agreement=0.9,
            greedy_tokens=1,
            greedy_equal=1,
            near_ties=0,
            real_changes=0,
        ),
        RunFinished(run_id="a", outcome="done", finished_unix_ns=5, first_step_s=3.0),
    ]


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_the_kernel_table_has_units_in_its_columns_and_empty_cells_for_the_unknown(run):
    first, second = rows(kernel_csv(run))
    assert first["self_time_us"] == "90"
    assert first["calls_per_step"] == "2"
    assert float(first["gb_per_s_modelled"]) == pytest.approx(20.0)  # 2 MB in 100 us
    assert float(first["tflop_per_s_modelled"]) == pytest.approx(0.04)
    assert first["module"] == "blocks.*.mlp.down"
    assert second["bytes_modelled"] == second["gb_per_s_modelled"] == ""
    assert second["name"] == "'=cmd()"  # no spreadsheet runs it


def test_step_samples_tell_phases_slices_and_attempts_apart(run):
    found = rows(step_csv(run))
    assert [(r["phase"], r["kind"], r["slice"], r["attempt"], r["step"]) for r in found] == [
        ("warmup", "decode", "", "", "0"),
        ("measure", "prefill", "0", "0", "0"),
        ("measure", "decode", "0", "0", "1"),
        ("measure", "decode", "0", "0", "2"),
        ("measure", "decode", "0", "1", "0"),
    ]
    assert [r["duration_us"] for r in found] == ["50000", "100000", "10000", "11000", "12500"]
    assert found[-1]["start_us"] == "300000"
    assert [r["slice_disturbed"] for r in found] == ["", "busy", "busy", "busy", ""]
    assert [r["context_tokens"] for r in found] == ["", "", "9", "10", "9"]


def test_the_json_document_holds_everything_and_only_what_json_can_say(run):
    text = run_json(run)

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    document = json.loads(text, parse_constant=refuse)
    assert document == run_document(run)
    assert (document["gptscope"], document["schema_version"]) == ("run", 1)
    assert document["summary"]["tokens_per_s"]["value"] == pytest.approx(80.0)
    assert document["summary"]["outcome"] == "done"
    assert document["summary"]["step_bytes"]["total"] > 0
    assert [batch["attempt"] for batch in document["samples"]] == [0, 0, 0, 1]
    assert document["samples"][2]["duration_ns"] == [10_000_000, 11_000_000]
    assert document["profile"]["kernels"][0]["label"] == "mlp.down, fp32 GEMV"
    assert document["evidence"] == [{"lever": "qkv", "in_effect": None, "sentence": "cannot tell"}]
    assert document["quality"]["perplexity"] is document["quality"]["perplexity_error"] is None
    assert document["text"] == "Call me Ishmael"
    assert document["machine"]["cpu_name"] == "cpu"
    assert document["versions"] == {"torch": "2.13.0"}
    for field, value in document["summary"].items():
        if value is None and field != "failure":
            assert document["summary"]["unknown"][field], field


def test_the_json_fields_are_stable(run):
    assert list(run_document(run)) == [
        "gptscope", "schema_version", "records_version", "run_id", "name", "experiment_id", "command", "model", "seed",
        "threads", "started_unix_ns", "variant", "workload", "fusions_applied", "fusions_skipped", "machine",
        "versions", "environment", "model_info", "summary", "samples", "profile", "evidence", "scales", "quality",
        "layer_errors", "peaks", "text", "failures", "notices",
    ]  # fmt: skip


def test_a_run_that_failed_at_once_still_exports(make):
    records = [make.started(), Failure(kind="memory", message="It does not fit.", run_id="a")]
    document = run_document(records)
    assert document["failures"][0]["message"] == "It does not fit."
    assert document["summary"]["outcome"] == "failed"
    with pytest.raises(ExportError, match="nothing was profiled"):
        kernel_csv(records)
    with pytest.raises(ExportError, match="no steps"):
        step_csv(records)
    with pytest.raises(ExportError, match="no run zz"):
        run_document(records, "zz")


def test_only_the_asked_run_is_exported(run, make):
    other = [
        make.started("b"),
        make.samples([77.0], run_id="b"),
        make.done(0, run_id="b"),
    ]
    mixed = [*other, *run]
    assert [r["duration_us"] for r in rows(step_csv(mixed, "b"))] == ["77000"]
    assert run_document(mixed, "a") == run_document(run)
    assert run_document(mixed)["run_id"] == "b"


def test_exported_records_read_back(run, tmp_path: Path):
    path = export_json(run, tmp_path / "run.json")
    assert msgspec.json.decode(path.read_bytes()) == run_document(run)
    assert export_kernels(run, tmp_path / "k.csv").read_text() == kernel_csv(run)
    assert export_steps(run, tmp_path / "s.csv").read_text() == step_csv(run)


def test_a_trace_is_copied_byte_for_byte_or_unpacked_by_its_name(tmp_path: Path):
    kept = tmp_path / "kept.json.gz"
    kept.write_bytes(gzip.compress(b'{"traceEvents": []}'))
    assert export_trace(kept, tmp_path / "a.json.gz").read_bytes() == kept.read_bytes()
    assert export_trace(kept, tmp_path / "a.json").read_bytes() == b'{"traceEvents": []}'


def test_a_damaged_or_missing_trace_leaves_no_file(tmp_path: Path):
    kept = tmp_path / "kept.json.gz"
    with pytest.raises(ExportError, match="not there any more"):
        export_trace(kept, tmp_path / "a.json")
    kept.write_bytes(gzip.compress(b"x" * 100_000)[:-20])
    with pytest.raises(ExportError, match="damaged"):
        export_trace(kept, tmp_path / "a.json")
    assert [p.name for p in tmp_path.iterdir()] == ["kept.json.gz"]


def test_an_existing_file_is_replaced_only_when_asked(tmp_path: Path):
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(ExportError, match="a file of that name is there"):
        write_whole(path, [b"new"])
    assert path.read_text() == "old"
    write_whole(path, [b"n", b"ew"], overwrite=True)
    assert path.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize(
    ("number", "words"), [(errno.ENOSPC, "no space left"), (errno.EROFS, "read-only"), (errno.EACCES, "may not write")]
)
def test_a_full_or_protected_disk_keeps_the_old_file_and_says_so(number, words, tmp_path: Path):
    path = tmp_path / "x"
    path.write_text("old")

    def pieces():
        yield b"new"
        raise OSError(number, os.strerror(number))

    with pytest.raises(ExportError, match=words):
        write_whole(path, pieces(), overwrite=True)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_places_that_are_no_places_get_a_sentence(tmp_path: Path):
    (tmp_path / "file").write_text("")
    for path, words in (
        (tmp_path, "it is a folder"),
        (tmp_path / "no" / "x", "folder does not exist"),
        (tmp_path / "file" / "x", "file, not a folder"),
    ):
        with pytest.raises(ExportError, match=words):
            write_whole(path, [b""])


@pytest.mark.skipif(sys.platform == "win32", reason="has no named pipes")
def test_a_pipe_is_written_and_never_replaced(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to("pipe")
    for path in (pipe, tmp_path / "link"):
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        write_whole(path, [b"n", b"ew"], overwrite=True)
        assert os.read(reader, 10) == b"new"
        os.close(reader)
        assert pipe.is_fifo()
    with pytest.raises(ExportError, match="a file of that name is there"):
        write_whole(pipe, [b"new"])


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="shows no descriptors")
def test_an_open_descriptor_is_written_through_its_name(tmp_path: Path):
    reader, writer = os.pipe()
    write_whole(Path(f"/dev/fd/{writer}"), [b"new"], overwrite=True)
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    with pytest.raises(ExportError, match="what read it has ended"):
        write_whole(Path(f"/dev/fd/{writer}"), [b"new"], overwrite=True)
    os.close(writer)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_stays_one_and_what_it_leads_to_is_written(tmp_path: Path):
    (tmp_path / "there").mkdir()
    path = tmp_path / "link"
    path.symlink_to("there/x")
    for text in (b"new", b"newer"):
        assert write_whole(path, [text], overwrite=True) == path
        assert (tmp_path / "there" / "x").read_bytes() == text
    assert path.is_symlink()
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(ExportError, match="a link that leads to itself"):
        write_whole(tmp_path / "round", [b""], overwrite=True)


def test_names_are_used_to_the_last_byte_and_longer_ones_refused(tmp_path: Path):
    assert write_whole(tmp_path / ("x" * 255), [b"new"]).read_bytes() == b"new"
    with pytest.raises(ExportError, match="the name is too long"):
        write_whole(tmp_path / ("x" * 256), [b"new"])
