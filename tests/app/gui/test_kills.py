"""Killing the worker and the engine of the real window, by the script that does it ten times and with compilers."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(280)]


def test_a_killed_worker_and_engine_are_told_kept_and_leave_nothing(repository: Path) -> None:
    script = repository / "benchmarks" / "window_kills.py"
    done = subprocess.run(
        [sys.executable, "-P", str(script), "--times", "1", "--no-compiling"],
        capture_output=True, text=True, timeout=260, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "2 kills: every time one sentence, numbers kept, nothing left, the next Run works" in done.stdout
    assert "Traceback" not in done.stderr, done.stderr
