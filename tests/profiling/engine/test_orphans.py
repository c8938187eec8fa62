"""Whoever is killed with -9, nobody who depended on them is left: real processes, killed one by one and together."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

FOLDER = Path(__file__).resolve().parent
GONE_WITHIN_S = 2.0


@dataclass
class Tree:
    client: psutil.Process
    engine: psutil.Process
    workers: list[psutil.Process]
    descendants: list[list[psutil.Process]]
    """Of each worker: its guardian and its compilers."""


@pytest.fixture
def tree() -> Iterator[Tree]:
    worker = json.dumps([sys.executable, "-P", str(FOLDER.parent / "fake_worker.py")])
    command = [sys.executable, "-P", str(FOLDER / "client_process.py"), worker, "children hang:slice"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    line = json.loads(process.stdout.readline())
    workers = [psutil.Process(pid) for pid in line["workers"]]
    descendants = [worker.children(recursive=True) for worker in workers]
    names = sorted(child.name() for child in descendants[0])
    assert names.count("sleep") == 3, "compilers of both kinds: children and grandchildren"
    found = Tree(psutil.Process(process.pid), psutil.Process(line["engine"]), workers, descendants)
    yield found
    for one in [found.client, found.engine, *found.workers, *itertools.chain(*found.descendants)]:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()
    process.stdin.close()
    process.stdout.close()


def kill(*processes: psutil.Process) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):  # the death of another one has ended it already
            os.kill(process.pid, signal.SIGKILL)


def everything(tree: Tree) -> list[psutil.Process]:
    return [tree.engine, *tree.workers, *itertools.chain(*tree.descendants)]


def test_a_killed_client_takes_everything_with_it(tree, wait_until_gone):
    kill(tree.client)
    assert wait_until_gone(everything(tree), GONE_WITHIN_S) == []


def test_a_killed_engine_takes_its_workers_and_their_compilers_with_it(tree, wait_until_gone):
    kill(tree.engine)
    assert wait_until_gone(everything(tree), GONE_WITHIN_S) == []
    assert tree.client.is_running(), "the client is told instead"


def test_a_killed_worker_takes_its_compilers_with_it_and_nothing_else(tree, wait_until_gone):
    kill(tree.workers[1])
    assert wait_until_gone([tree.workers[1], *tree.descendants[1]], GONE_WITHIN_S) == []
    assert all(process.is_running() for process in (tree.client, tree.engine, tree.workers[0]))
    assert all(process.is_running() for process in tree.descendants[0])


@pytest.mark.parametrize(
    "victims", ["client engine", "client worker", "engine worker", "client engine worker", "engine guardian"]
)
def test_killed_together_they_leave_nothing(victims, tree, wait_until_gone):
    chosen = {
        "client": [tree.client],
        "engine": [tree.engine],
        "worker": tree.workers,
        "guardian": [child for child in tree.descendants[0] if "guard" in child.name()],
    }
    targets = [process for name in victims.split() for process in chosen[name]]
    for process in targets:
        process.suspend()  # all stop before the first one is gone, so that none can clean up after another
    kill(*targets)
    left = everything(tree)
    if victims == "engine guardian":  # nobody is left for the compilers of that worker; the worker itself must end
        left = [tree.engine, *tree.workers]
    assert wait_until_gone(left, GONE_WITHIN_S) == []


def test_a_terminated_engine_leaves_nothing(tree, wait_until_gone):
    tree.engine.terminate()
    assert wait_until_gone(everything(tree), GONE_WITHIN_S) == []
