"""The commands with the real engine and worker on the smallest model."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from gptscope.profiling.records import StepSamples
from gptscope.profiling.store.library import Library

PROGRAM = [sys.executable, "-P", "-m", "gptscope.app"]
SMALL = ["--model", "preset:tiny", "--context", "8", "--new-tokens", "4", "--threads", "1"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_compare_measures_keeps_and_exports(tmp_path: Path) -> None:
    library, trace = tmp_path / "lib", tmp_path / "t.json"
    arguments = ["compare", *SMALL, "--steps", "5", "--profile-steps", "2", "--library", str(library), "--json", "-"]
    arguments += ["--candidate", "kv-cache=none", "--trace", str(trace), "--csv", str(tmp_path / "k.csv")]
    result = subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, check=False, timeout=380, env=ENVIRONMENT
    )
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    document = json.loads(result.stdout)
    assert [run["variant"]["kv_cache"] for run in document["runs"]] == ["dynamic", "none"]
    for run in document["runs"]:
        assert run["summary"]["tokens_per_s"]["value"] > 0
        assert run["summary"]["ttft"]["count"] == 5
        assert run["profile"]["kernels"]
        assert all(item["in_effect"] for item in run["evidence"])
    assert document["verdicts"][0]["speedup"]["value"] > 0
    assert any(line.split() == ["baseline", "A", "ratio"] for line in result.stderr.splitlines())
    for letter in ("baseline", "A"):
        assert json.loads((tmp_path / f"t-{letter}.json").read_text())["traceEvents"]
        assert (tmp_path / f"k-{letter}.csv").read_text().startswith("label,name,category")
    with Library(library) as kept:
        entries = kept.list_runs()
        assert [entry.outcome for entry in entries] == ["done", "done"]
        assert all(entry.trace is not None for entry in entries)
        assert entries[1].headline.verdict


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.skipif(sys.platform == "win32", reason="kills with SIGKILL")
def test_killing_the_program_leaves_the_records_and_no_process(tmp_path: Path) -> None:
    arguments = ["run", *SMALL, "--new-tokens", "64", "--steps", "2000", "--library", str(tmp_path / "lib")]
    process = subprocess.Popen(
        [*PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT
    )
    library = Library(tmp_path / "lib")
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline and not any(
        isinstance(record, StepSamples) and record.phase == "measure" and record.kind == "decode"
        for entry in library.list_runs()
        for record in library.open(entry.run_id)
    ):
        time.sleep(0.2)
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    assert len(family) >= 2
    _, alive = psutil.wait_procs(family, timeout=10)
    library.close()
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []
    with Library(tmp_path / "lib") as kept:
        (entry,) = kept.list_runs()
        assert entry.outcome == "interrupted"
        assert entry.headline.tokens_per_second
