"""Temporary folders vanish, at the latest at the next worker's start, with what killed compilers left in them."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gptscope.profiling.temp_folders import (
    lend_to_children,
    remove_folders_of,
    sweep_left_over_folders,
    temporary_folder,
)


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_folder_is_removed_also_after_an_error(temp: Path):
    def fail() -> None:
        with temporary_folder() as folder:
            (folder / "trace.json").write_text("x")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert list(temp.iterdir()) == []


def test_only_folders_of_dead_workers_are_swept(temp: Path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead = temp / f"gptscope-worker-{ended.pid}-abc"
    alive = temp / f"gptscope-worker-{os.getpid()}-abc"
    other = temp / "gptscope-worker-notes"
    for folder in (dead, alive, other):
        folder.mkdir()
        (folder / "trace.json").write_text("x")
    assert sweep_left_over_folders() == 1
    assert not dead.exists()
    assert alive.exists()
    assert other.exists()


def test_a_number_that_a_newer_process_got_does_not_protect_the_folder(temp: Path):
    old = temp / f"gptscope-worker-{os.getpid()}-abc"
    old.mkdir()
    os.utime(old, (1_000_000_000, 1_000_000_000))
    assert sweep_left_over_folders() == 1


def test_a_link_is_not_followed(temp: Path):
    target = temp / "precious"
    target.mkdir()
    (temp / "gptscope-worker-999999999-abc").symlink_to(target)
    assert sweep_left_over_folders() == 0
    assert target.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="TEMP and TMP there")
def test_children_write_into_a_folder_that_goes_with_the_worker(temp: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TMPDIR", "elsewhere")  # put back after the test
    lent = lend_to_children()
    written = subprocess.run(
        [sys.executable, "-c", "import tempfile; print(tempfile.mkstemp(suffix='.s')[1])"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(written.stdout.strip()).parent == lent
    assert Path(tempfile.gettempdir()) == temp, "this process's own place, and torch's cache, stay"
    remove_folders_of(os.getpid() + 1)
    assert lent.exists()
    remove_folders_of(os.getpid())
    assert list(temp.iterdir()) == []
