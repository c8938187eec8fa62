"""A made-up run with everything a report can show."""

import functools
import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gptscope.app.cli import session
from gptscope.app.cli.console import Console
from gptscope.profiling import channel
from gptscope.profiling.client import EngineClient
from gptscope.profiling.experiment import Experiment, Variant, Workload, variant_name
from gptscope.profiling.records import (
    EvidenceItem,
    EvidenceReport,
    ExperimentFinished,
    ExperimentStarted,
    GeneratedText,
    KernelRow,
    MachineInfo,
    MemoryPeak,
    ModelInfo,
    ModelLoaded,
    Notice,
    Peaks,
    Profile,
    Quality,
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
    cpu_name="Test CPU",
    physical_cores=2,
    logical_cores=4,
    memory_bytes=16 * 10**9,
    cpu_features=("avx2", "avx512f"),
    device="cpu",
    device_name="Test CPU",
    compiler=None,
    unknown={"compiler": "no c++, g++ or clang++ on PATH", "gpu_name": "no NVIDIA driver"},
)
MODEL = ModelInfo(
    name="tiny",
    source="preset",
    family="gpt2",
    n_layer=2,
    d_model=64,
    n_head=4,
    n_kv_head=4,
    d_head=16,
    d_ff=256,
    vocab_size=1000,
    context_length=256,
    parameters=180_000,
    weight_bytes=720_000,
    kv_bytes_per_token=1024,
    random_weights=True,
    has_tokenizer=False,
)
VARIANTS = (Variant(precision="fp32"), Variant(precision="bf16", fusions=("attention",), kv_cache="static"))
Experimenting = Callable[..., list[Record]]
FAKE = Path(__file__).with_name("fake_engine.py")
Playing = Callable[..., None]


def _started(experiment_id: str, workload: Workload, variants: tuple[Variant, ...]) -> list[Record]:
    run_ids = tuple(f"{experiment_id}-{'abc'[i]}" for i in range(len(variants)))
    first = ExperimentStarted(
        experiment_id=experiment_id,
        experiment=Experiment(model="preset:tiny", workload=workload, variants=variants),
        run_ids=run_ids,
        started_unix_ns=1_790_000_000 * 10**9,
    )
    records: list[Record] = [first]
    for run_id, variant in zip(run_ids, variants, strict=True):
        records.append(
            RunStarted(
                run_id=run_id,
                experiment_id=experiment_id,
                variant=variant,
                name=variant_name(variant),
                workload=workload,
                model="preset:tiny",
                command="gptscope run --model preset:tiny",
                started_unix_ns=1_790_000_000 * 10**9,
                machine=MACHINE,
                versions={"torch": "2.13.0"},
                environment={},
                threads=2,
                seed=1234,
            )
        )
        records.append(
            ModelLoaded(run_id=run_id, model=MODEL, fusions=variant.fusions, skipped={}, load_s=0.25, start_s=1.5)
        )
    return records


def _slice(run_id: str, index: int, step_ns: int) -> list[Record]:
    start = index * 1000 * MS
    return [
        StepSamples(
            run_id=run_id,
            slice=index,
            phase="measure",
            kind="prefill",
            start_ns=(start,),
            duration_ns=(5 * step_ns,),
            tokens=(16,),
        ),
        StepSamples(
            run_id=run_id,
            slice=index,
            phase="measure",
            kind="decode",
            start_ns=tuple(start + (5 + i) * step_ns for i in range(4)),
            duration_ns=(step_ns + index * MS // 100,) * 4,
            tokens=(1,) * 4,
            context=(17, 18, 19, 20),
        ),
        SliceDone(run_id=run_id, slice=index, attempt=0, pair=index, seconds=9 * step_ns / 1e9),
    ]


def _profiled(run_id: str, step_us: float) -> list[Record]:
    rows = (
        KernelRow(
            name="aten::addmm",
            category="GEMM",
            calls=32,
            self_time_us=8 * step_us,
            total_time_us=9 * step_us,
            share=0.8,
            module="blocks.0.mlp.up",
            dtypes=("float",),
            bytes=round(9 * step_us * 20e3),
        ),
        KernelRow(
            name="void at::native::[]" + "x" * 90,
            category="elementwise",
            calls=64,
            self_time_us=2 * step_us,
            total_time_us=2 * step_us,
            share=0.2,
        ),
    )
    return [
        Profile(
            run_id=run_id,
            steps=4,
            overhead=1.06,
            wall_us=11 * step_us,
            busy_us=10 * step_us,
            kernels=rows,
            device="cpu",
            notes=("The profile holds 4 steps.",),
        ),
        EvidenceReport(
            run_id=run_id,
            items=(
                EvidenceItem(lever="kv_cache", in_effect=True, sentence="1 token per forward"),
                EvidenceItem(lever="attention", in_effect=False, sentence="no fused attention kernel ran"),
                EvidenceItem(lever="norm", in_effect=None, sentence="the profile cannot tell"),
            ),
        ),
    ]


def _experiment(
    experiment_id: str = "e1",
    *,
    variants: tuple[Variant, ...] = VARIANTS,
    slices: int = 5,
    finish: bool = True,
    quality: bool = True,
    text: str = "",
) -> list[Record]:
    workload = Workload(new_tokens=5, steps=slices, context=16)
    records = _started(experiment_id, workload, variants)
    first = records[0]
    assert isinstance(first, ExperimentStarted)
    for index in range(slices):
        for number, run_id in enumerate(first.run_ids):
            records += _slice(run_id, index, 10 * MS // (number + 1))
    peaks = {"fp32": 0.1, "bf16": 0.5}
    for number, run_id in enumerate(first.run_ids):
        records += _profiled(run_id, 10_000 / (number + 1))
        records.append(MemoryPeak(run_id=run_id, process_bytes=500 * 10**6, kv_cache_bytes=20_000))
        records.append(
            Peaks(
                device="cpu",
                device_name="Test CPU",
                threads=2,
                read_gbps=40.0,
                copy_gbps=30.0,
                gemm_tflops=peaks,
                measured_unix_ns=1_790_000_000 * 10**9,
                run_id=run_id,
            )
        )
    records.append(Notice(message="Other programs used 40 % of a core.", level="warning", run_id=first.run_ids[0]))
    if text:
        records.append(GeneratedText(run_id=first.run_ids[0], text=text, token_ids=(1,)))
    if quality:
        records += [_quality(run_id, first.run_ids[0]) for run_id in first.run_ids[1:]]
    if finish:
        records += [
            RunFinished(run_id=r, outcome="done", finished_unix_ns=1_790_000_009 * 10**9, first_step_s=3.0)
            for r in first.run_ids
        ]
        records.append(ExperimentFinished(experiment_id=experiment_id, outcome="done"))
    return records


def _quality(run_id: str, baseline: str) -> Quality:
    return Quality(
        run_id=run_id,
        baseline_run_id=baseline,
        tokens=4000,
        perplexity=14.88,
        perplexity_error=0.4,
        baseline_perplexity=14.86,
        baseline_perplexity_error=0.4,
        kl_mean=1.2e-5,
        kl_median=8e-6,
        kl_p99=1e-4,
        top1_agreement=0.998,
        greedy_tokens=192,
        greedy_equal=192,
        near_ties=1,
        real_changes=0,
        perplexity_change=0.02,
        perplexity_change_error=0.01,
        text="held-out text",
    )


@pytest.fixture
def experiment() -> Experimenting:
    """Makes the records of an experiment whose second variant is twice as fast."""
    return _experiment


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Playing:
    """Make commands talk to an engine that sends these records (or (record, payload) pairs)."""

    def prepare(records: list[Record | tuple[Record, bytes]], mode: str = "end", *signals: int) -> None:
        script = tmp_path / "script"
        items = [item if isinstance(item, tuple) else (item, b"") for item in records]
        script.write_bytes(b"".join(channel.encode(record, payload) for record, payload in items))
        command = [sys.executable, "-P", str(FAKE), str(script), mode, *map(str, map(int, signals))]
        monkeypatch.setattr(session, "EngineClient", functools.partial(EngineClient, command))

    return prepare


class Screen(io.StringIO):
    """A pretended output, terminal or not, with an encoding."""

    def __init__(self, *, terminal: bool = False, encoding: str = "utf-8") -> None:
        super().__init__()
        self._terminal, self._encoding = terminal, encoding

    def isatty(self) -> bool:
        return self._terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


@pytest.fixture
def screen() -> Callable[..., tuple[Screen, Console]]:
    """Makes an output and a console that writes to it."""

    def make(**options: object) -> tuple[Screen, Console]:
        file = Screen(**options)  # type: ignore[arg-type]
        return file, Console(file)

    return make
