"""An engine whose workers are tests/profiling/fake_worker.py."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from gptscope.profiling.client import EngineClient, python_command
from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.records import Record, StartExperiment

FAKE_WORKER = Path(__file__).resolve().parents[1] / "fake_worker.py"
TIMEOUT_S = 30.0

EngineMaker = Callable[..., EngineClient]


def engine_command(**limits: float) -> list[str]:
    worker = [sys.executable, "-P", str(FAKE_WORKER)]
    return python_command("--worker-command", json.dumps(worker), "--limits", json.dumps(limits))


@pytest.fixture
def make_engine() -> Iterator[EngineMaker]:
    """Start engines; all are closed at the end of the test."""
    clients: list[EngineClient] = []

    def make(**limits: float) -> EngineClient:
        client = EngineClient(engine_command(**limits))
        client.start()
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineClient]:
    """One engine for all tests of a file: each of them leaves it ready for the next."""
    with EngineClient(engine_command()) as client:
        yield client


@pytest.fixture
def experiment() -> Callable[..., StartExperiment]:
    """A short decode experiment; each argument is the name of a variant, which tells the fake worker what to do.

    `threads:3` in a name also sets that variant's threads.
    """

    def variant(name: str) -> Variant:
        numbers = [int(word.partition(":")[2]) for word in name.split() if word.startswith("threads:")]
        return Variant(name=name, threads=numbers[0] if numbers else None)

    def make(*names: str, **changes: object) -> StartExperiment:
        values: dict[str, object] = {
            "model": "fake",
            "workload": Workload(steps=2, new_tokens=4),
            "variants": tuple(variant(name) for name in names),
            "device": "cpu",
            "time_limit_s": 60.0,
            **changes,
        }
        return StartExperiment(experiment=Experiment(**values), experiment_id="e1")

    return make


@pytest.fixture
def wait_until_gone() -> Callable[..., list[psutil.Process]]:
    """Wait until processes have ended; returns those that have not after so many seconds.

    A zombie has ended: only its parent (here: whatever adopts orphans) has not looked yet.
    """

    def wait(processes: Sequence[psutil.Process], seconds: float) -> list[psutil.Process]:
        deadline = time.monotonic() + seconds
        while (living := [process for process in processes if is_alive(process)]) and time.monotonic() < deadline:
            time.sleep(0.01)
        return living

    return wait


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def run_all() -> Callable[[EngineClient, StartExperiment], list[Record]]:
    """Run an experiment to its end and return its records, telemetry left out."""

    def run(client: EngineClient, start: StartExperiment) -> list[Record]:
        return [record for record, _ in client.stream(start, TIMEOUT_S) if type(record).__name__ != "Telemetry"]

    return run
