"""doctor, models and bench-machine, against an engine that plays a script."""

import json
from argparse import ArgumentParser
from pathlib import Path

import msgspec
import pytest

from gptscope.app.__main__ import main
from gptscope.app.cli.models import Models, save_request
from gptscope.profiling.records import (
    Capabilities,
    Failure,
    LeverInfo,
    MachineInfo,
    ModelFetched,
    ModelInfo,
    ModelInspected,
    ModelSaved,
    Notice,
    Peaks,
    Progress,
    RunStarted,
)

LEVERS = (
    LeverInfo(name="bf16", group="precision", title="BF16", summary="Half the bytes."),
    LeverInfo(name="fp16", group="precision", title="FP16", summary="x", warning="this CPU lacks FP16 instructions"),
    LeverInfo(
        name="tf32", group="precision", title="TF32", summary="x", unavailable_reason="TF32 needs an NVIDIA GPU."
    ),
)
PEAKS = Peaks(
    device="cuda",
    device_name="Test GPU",
    threads=2,
    read_gbps=900.0,
    copy_gbps=None,
    gemm_tflops={"bf16": 140.0},
    measured_unix_ns=1_790_000_000 * 10**9,
    published={"memory_gbps": 1000.0, "bf16_tflops": 200.0},
    published_source="the maker's data sheet",
    unknown={"copy_gbps": "out of memory", "fp8": "needs a newer GPU"},
)


@pytest.fixture
def machine(experiment) -> MachineInfo:
    return next(record.machine for record in experiment() if isinstance(record, RunStarted))


@pytest.fixture
def capabilities(machine) -> Capabilities:
    versions = {"torch": "2.13.0", "transformer_engine": "not installed: needs CUDA"}
    return Capabilities(
        machine=machine, levers=LEVERS, versions=versions, presets=("tiny",), catalogue=("smollm2-135m",)
    )


def test_doctor_gives_every_reason(play, capabilities, tmp_path, capsys) -> None:
    play([capabilities])
    assert main(["doctor", "--library", str(tmp_path / "lib")]) == 0
    text = capsys.readouterr().out
    assert "n/a: no NVIDIA driver" in text
    assert "n/a: no c++, g++ or clang++ on PATH" in text
    assert "not installed: needs CUDA" in text
    assert "precision bf16  ✓" in text
    assert "precision fp16  ✓ but: this CPU lacks FP16 instructions" in text
    assert "precision tf32  ✗ TF32 needs an NVIDIA GPU." in text
    assert "Runs      none yet" in text
    assert not (tmp_path / "lib").exists(), "looking makes nothing"


def test_doctor_as_json(play, capabilities, tmp_path, capsys) -> None:
    play([capabilities])
    assert main(["doctor", "--library", str(tmp_path), "--json", "-"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["gptscope"] == "doctor"
    assert data["levers"][2]["unavailable_reason"] == "TF32 needs an NVIDIA GPU."
    assert data["library"] == {"folder": str(tmp_path), "runs": None, "bytes": 0, "problem": None}
    assert data["machine"]["cpu_features"] == ["avx2", "avx512f"]


def test_doctor_looks_at_a_damaged_library_without_touching_it(play, capabilities, tmp_path, capsys) -> None:
    (tmp_path / "library.sqlite3").write_bytes(b"damaged" * 100)
    play([capabilities])
    assert main(["doctor", "--library", str(tmp_path)]) == 0
    assert "is damaged; the next run sets it aside" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("library")] == ["library.sqlite3"]


def test_doctor_tells_about_the_library_even_when_the_engine_fails(play, tmp_path, capsys) -> None:
    (tmp_path / "file").touch()
    play([Failure(kind="internal", message="torch cannot be imported.")])
    assert main(["doctor", "--library", str(tmp_path / "file")]) == 1
    captured = capsys.readouterr()
    assert "is a file, not a folder" in captured.out
    assert captured.err == "gptscope: torch cannot be imported.\n"


def test_models_are_listed_with_their_sources(play, capabilities, capsys) -> None:
    play([capabilities])
    assert main(["models", "list"]) == 0
    text = capsys.readouterr().out
    assert "preset:tiny" in text
    assert "smollm2-135m" in text
    play([capabilities])
    assert main(["models", "list", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["catalogue"] == ["smollm2-135m"]


def test_a_model_is_inspected(play, experiment, capsys) -> None:
    loaded = next(record for record in experiment() if hasattr(record, "model") and isinstance(record.model, ModelInfo))
    model = msgspec.structs.replace(loaded.model, n_kv_head=2, fetch_bytes=98_000_000, notes=("A note.",))
    play([ModelInspected(model=model, estimated_bytes={"decode": 435 * 10**6})])
    assert main(["models", "inspect", "x"]) == 0
    text = capsys.readouterr().out
    assert "4 heads of 16, 2 for keys and values" in text
    assert "random: speed only, no quality" in text
    assert "98.0 MB when first used" in text
    assert "decode 435 MB (estimated, FP32, batch 1)" in text
    assert "A note." in text


def test_a_model_is_fetched_with_progress(play, tmp_path: Path, capsys) -> None:
    fetched = ModelFetched(model="smollm2-135m", path="/cache/x.gguf", bytes=98_400_000, sha256="ab" * 32)
    play([Progress(phase="fetch", done=1, total=2, unit="bytes"), fetched])
    assert main(["models", "fetch", "smollm2-135m", "--json", str(tmp_path / "f.json")]) == 0
    captured = capsys.readouterr()
    assert captured.err == "Downloading\n"
    assert "smollm2-135m is in /cache/x.gguf (98.4 MB)." in captured.out
    assert json.loads((tmp_path / "f.json").read_text())["sha256"] == "ab" * 32


def test_a_pruned_model_is_saved(play, tmp_path: Path, capsys) -> None:
    saved = ModelSaved(
        model="bundled", folder="/m/pruned", bytes=26_800_000, parameters_before=7_867_776, parameters=6_688_128,
        zeros=0.25, notes=("Each layer keeps 4 of 6 heads.",),
    )  # fmt: skip
    play([saved])
    wanted = ["--pruning", "Structured", "--option", "mlp=0.5", "--json", str(tmp_path / "s.json")]
    assert main(["models", "save", "bundled", str(tmp_path / "pruned"), *wanted]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "bundled is in /m/pruned (26.8 MB, FP32).",
        "6\u202f688\u202f128 of 7\u202f867\u202f776 parameters are left.",
        "25.0% of the weights in the layers are zero.",
        "Each layer keeps 4 of 6 heads.",
    ]
    assert json.loads((tmp_path / "s.json").read_text())["parameters"] == 6_688_128
    parser = ArgumentParser()
    Models().add_arguments(parser)
    request = save_request(parser.parse_args(["save", "bundled", str(tmp_path / "pruned"), *wanted]))
    assert (request.pruning, request.options) == ("structured", {"mlp": "0.5"})
    assert main(["models", "save", "bundled", str(tmp_path / "x"), "--option", "mlp=0.5"]) == 2
    assert "Give --pruning too." in capsys.readouterr().err


def test_a_fetch_without_network_is_a_sentence(play, capsys) -> None:
    play([Failure(kind="offline", message="The hub cannot be reached. Connect to the network.")])
    assert main(["models", "fetch", "a/b"]) == 1
    assert capsys.readouterr().err == "gptscope: The hub cannot be reached. Connect to the network.\n"


def test_peaks_show_measured_and_published_and_every_reason(play, capsys) -> None:
    play([Notice(message="A sentence."), PEAKS])
    assert main(["bench-machine"]) == 0
    captured = capsys.readouterr()
    rows = [line.split() for line in captured.out.splitlines()]
    assert ["memory", "read", "900", "GB/s", "1", "000", "GB/s"] in [
        " ".join(row).replace("\u202f", " ").split() for row in rows
    ]
    assert "n/a: out of memory" in captured.out
    assert "matrix product fp8          n/a: needs a newer GPU" in captured.out
    assert "published figures: the maker's data sheet" in captured.out
    assert "A sentence." in captured.err


def test_peaks_of_a_busy_machine_say_that_they_are_too_low(play, capsys) -> None:
    peaks = msgspec.structs.replace(PEAKS, published={}, published_source=None, disturbed="others used 80 % of a core")
    play([peaks])
    assert main(["bench-machine", "--fresh"]) == 0
    text = capsys.readouterr().out
    assert "published figures: none for this device" in text
    assert "others used 80 % of a core: the true peaks are higher" in text


def test_an_engine_that_ends_without_an_answer_is_told(play, capsys) -> None:
    play([], "die")
    assert main(["bench-machine"]) == 1
    assert capsys.readouterr().err.startswith("gptscope: ")
