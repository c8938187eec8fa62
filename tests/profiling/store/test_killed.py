"""Killing the program at any moment, and two programs at once."""

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gptscope.profiling.records import SliceDone
from gptscope.profiling.store.library import Library
from gptscope.profiling.store.opening import FILE_NAME, _switch_to_wal, connect
from gptscope.profiling.store.recorder import BATCH_S

SCRIPT = Path(__file__).with_name("endless_run.py")


def start(folder: Path, experiment_id: str, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", str(SCRIPT), str(folder), experiment_id, *more], stdout=subprocess.PIPE, text=True
    )


def finish(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.communicate(timeout=60)
    assert [process.returncode for process in processes] == [0] * len(processes)


def slices(library: Library, run_id: str) -> list[int]:
    return [record.slice for record in library.open(run_id) if isinstance(record, SliceDone)]


def test_a_run_killed_at_random_moments_loses_at_most_the_last_batch(folder: Path) -> None:
    rng = random.Random(5)
    for round_number in range(5):
        with start(folder, f"e{round_number}") as process:
            assert process.stdout is not None
            process.stdout.readline()  # the first record is on its way
            time.sleep(rng.uniform(0.0, 0.7))
            killed_at = time.monotonic()
            process.kill()
            given = [line.split() for line in process.stdout.read().splitlines() if len(line.split()) == 2]
        with Library(folder) as library:
            assert library.notices == ()
            long_before = [int(number) for number, moment in given if float(moment) < killed_at - 2 * BATCH_S - 0.3]
            entries = [e for e in library.list_runs() if e.experiment_id == f"e{round_number}"]
            if not entries:  # killed before the first batch
                assert long_before == []
                continue
            assert entries[0].outcome == "interrupted"
            assert entries[0].trace is None
            kept = slices(library, entries[0].run_id)
            assert kept == list(range(len(kept)))
            assert len(kept) >= len(long_before)


def test_a_running_run_is_not_called_interrupted(folder: Path) -> None:
    process = start(folder, "live")
    assert process.stdout is not None
    try:
        process.stdout.readline()
        time.sleep(3 * BATCH_S)
        with Library(folder) as library:
            assert library.find("live-a").outcome == "running"
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    with Library(folder) as library:
        assert library.find("live-a").outcome == "interrupted"


def test_two_programs_write_at_once_and_lose_nothing(folder: Path) -> None:
    processes = [start(folder, f"p{number}", "400") for number in range(2)]
    finish(processes)
    with Library(folder) as library:
        for number in range(2):
            assert slices(library, f"p{number}-a") == list(range(400))


def test_a_new_library_waits_for_a_program_that_is_making_it_too(folder: Path) -> None:
    folder.mkdir(parents=True)
    with contextlib.closing(
        sqlite3.connect(folder / FILE_NAME, isolation_level=None, check_same_thread=False)
    ) as other:
        other.execute("CREATE TABLE t (x)")
        other.execute("DROP TABLE t")
        opened = connect(folder / FILE_NAME)
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.3, lambda: other.execute("ROLLBACK"))
        release.start()
        begun = time.monotonic()
        _switch_to_wal(opened)
        assert 0.2 < time.monotonic() - begun < 10
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        release.join()
        opened.close()


@pytest.mark.parametrize("writers", [4])
def test_several_programs_may_make_the_same_new_library_at_once(folder: Path, writers: int) -> None:
    processes = [start(folder, f"n{number}", "3") for number in range(writers)]
    finish(processes)
    with Library(folder) as library:
        assert len(library.list_runs()) == writers
        assert library.notices == ()
