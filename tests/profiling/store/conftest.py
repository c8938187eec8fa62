"""A made-up experiment as a stream of records, and a place for libraries."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gptscope.profiling.experiment import Experiment, Variant, Workload, variant_name
from gptscope.profiling.records import (
    ExperimentFinished,
    ExperimentStarted,
    MachineInfo,
    Record,
    RunFinished,
    RunStarted,
    SliceDone,
    StepSamples,
)

MS = 10**6
MACHINE = MachineInfo(
    hostname="test",
    system="Linux",
    cpu_name="test CPU",
    physical_cores=2,
    logical_cores=2,
    memory_bytes=10**10,
    cpu_features=("avx2",),
    device="cpu",
    device_name="test CPU",
    compiler=None,
)
VARIANTS = (Variant(precision="fp32"), Variant(precision="bf16", fusions=("attention",), kv_cache="static"))
Stream = Callable[..., list[Record]]


def _stream(
    experiment_id: str = "e1", *, slices: int = 3, finish: bool = True, unix_s: int = 1_790_000_000
) -> list[Record]:
    workload = Workload(new_tokens=5, steps=slices, context=16)
    run_ids = tuple(f"{experiment_id}-{'ab'[i]}" for i in range(2))
    records: list[Record] = [
        ExperimentStarted(
            experiment_id=experiment_id,
            experiment=Experiment(model="bundled", workload=workload, variants=VARIANTS),
            run_ids=run_ids,
            started_unix_ns=unix_s * 10**9,
        )
    ]
    for run_id, variant in zip(run_ids, VARIANTS, strict=True):
        records.append(
            RunStarted(
                run_id=run_id,
                experiment_id=experiment_id,
                variant=variant,
                name=variant_name(variant),
                workload=workload,
                model="bundled",
                command="gptscope run",
                started_unix_ns=unix_s * 10**9,
                machine=MACHINE,
                versions={},
                environment={},
                threads=2,
                seed=1,
            )
        )
    for index in range(slices):
        for number, run_id in enumerate(run_ids):
            records += _slice(run_id, index, step_ms=10 / (number + 1))
    if finish:
        records += [RunFinished(run_id=r, outcome="done", finished_unix_ns=(unix_s + 9) * 10**9) for r in run_ids]
        records.append(ExperimentFinished(experiment_id=experiment_id, outcome="done"))
    return records


def _slice(run_id: str, index: int, *, step_ms: float) -> list[Record]:
    step = round(step_ms * MS)
    start = index * 1000 * MS
    return [
        StepSamples(
            run_id=run_id,
            slice=index,
            phase="measure",
            kind="prefill",
            start_ns=(start,),
            duration_ns=(5 * step,),
            tokens=(16,),
        ),
        StepSamples(
            run_id=run_id,
            slice=index,
            phase="measure",
            kind="decode",
            start_ns=tuple(start + (5 + i) * step for i in range(4)),
            duration_ns=(step,) * 4,
            tokens=(1,) * 4,
            context=(17, 18, 19, 20),
        ),
        SliceDone(run_id=run_id, slice=index, attempt=0, pair=index, seconds=9 * step_ms / 1e3),
    ]


@pytest.fixture
def stream() -> Stream:
    """Makes the records of an experiment with two variants, the second twice as fast."""
    return _stream


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a test's library lies; not there yet."""
    return tmp_path / "some where" / "lib ü"
