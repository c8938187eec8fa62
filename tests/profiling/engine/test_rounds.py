"""Variants that memory cannot hold together are measured in alternating rounds of whole loadings."""

import asyncio
import io
import os
import sys
from pathlib import Path

import pytest

from gptscope.profiling import channel
from gptscope.profiling.engine.experiment import ExperimentRun
from gptscope.profiling.engine.limits import Limits
from gptscope.profiling.engine.outbox import Outbox
from gptscope.profiling.engine.worker_handle import Children, WorkerOptions
from gptscope.profiling.experiment import Workload
from gptscope.profiling.machine import facts
from gptscope.profiling.records import (
    Hello,
    ModelLoaded,
    Notice,
    Profile,
    Quality,
    RunFinished,
    RunStarted,
    SliceDone,
)

FAKE_WORKER = Path(__file__).resolve().parents[1] / "fake_worker.py"


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(facts, "memory_available_bytes", lambda: 1 << 20)


def run_here(start):
    """Run an experiment inside this process; return its records and the most workers that lived at once."""
    stream = io.BytesIO()
    most = 0

    async def work():
        nonlocal most
        children = Children()
        outbox = Outbox(stream, lambda: None)
        options = WorkerOptions([sys.executable, "-P", str(FAKE_WORKER)], dict(os.environ), children)
        run_ids = [f"run{index}" for index in range(len(start.experiment.variants))]
        experiment = ExperimentRun(start, run_ids, outbox, options, Limits())
        task = asyncio.create_task(experiment.run())
        while not task.done():
            loaded = [run for run in experiment._runs if run.pid is not None and run.told.slice.first_ns is not None]
            most = max(most, len(loaded))
            await asyncio.sleep(0.005)
        await task
        await outbox.close(5)

    asyncio.run(work())
    reader = channel.FrameReader()
    return [channel.decode_record(header) for header, _ in reader.feed(stream.getvalue())], most


def of(kind, records):
    return [record for record in records if isinstance(record, kind)]


def test_rounds_measure_all_slices_with_one_worker_at_a_time(little_memory, experiment):
    start = experiment("good a", "good b", workload=Workload(steps=4, new_tokens=2), quality=True)
    records, most = run_here(start)
    assert most == 1
    assert any("alternating rounds" in record.message for record in of(Notice, records))
    order = [(done.run_id, done.pair) for done in of(SliceDone, records) if done.attempt == 0]
    assert order == [
        *(("run0", pair) for pair in (0, 1)),
        *(("run1", pair) for pair in (0, 1, 2, 3)),
        *(("run0", pair) for pair in (2, 3)),
    ]
    assert len([hello for hello in of(Hello, records) if hello.role == "worker"]) >= 3, "the baseline was loaded twice"
    assert [record.run_id for record in of(RunStarted, records)] == ["run0", "run1"], "but announced once"
    assert [record.run_id for record in of(ModelLoaded, records)] == ["run0", "run1"]
    assert sorted(record.run_id for record in of(Profile, records)) == ["run0", "run1"]
    assert [(record.run_id, record.outcome) for record in of(RunFinished, records)] == [
        ("run1", "done"),
        ("run0", "done"),
    ]


def test_quality_in_rounds_equals_quality_of_workers_loaded_together(experiment, monkeypatch):
    start = experiment("good a", "good b", "good c", workload=Workload(steps=1, new_tokens=2), quality=True)
    together, _ = run_here(start)
    monkeypatch.setattr(facts, "memory_available_bytes", lambda: 1 << 20)
    rounds, most = run_here(start)
    assert most == 1
    assert len(of(Quality, together)) == 2
    assert of(Quality, rounds) == of(Quality, together)


def test_a_baseline_that_dies_in_its_round_leaves_the_candidates_round(little_memory, experiment):
    records, _ = run_here(experiment("crash:slice", "good b", quality=True))
    assert {record.run_id: record.outcome for record in of(RunFinished, records)} == {"run0": "failed", "run1": "done"}
    assert any("the baseline, which it is compared with, failed" in record.message for record in of(Notice, records))


def test_no_space_for_the_baselines_answers_is_told_and_the_speeds_are_kept(little_memory, experiment, monkeypatch):
    from gptscope.profiling.engine import evaluation

    class FullDisk(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(evaluation.tempfile, "TemporaryFile", lambda **_: FullDisk())
    records, _ = run_here(experiment("good a", "good b", quality=True))
    (failure,) = [record for record in records if type(record).__name__ == "Failure"]
    assert failure.kind == "disk"
    assert "No space left on device" in failure.message
    assert {record.run_id for record in of(SliceDone, records)} == {"run0", "run1"}
    assert {record.run_id: record.outcome for record in of(RunFinished, records)} == {"run0": "failed", "run1": "done"}
