"""Small record streams with round numbers, for metrics and exports."""

from types import SimpleNamespace

import pytest

from gptscope.profiling.experiment import Variant, Workload
from gptscope.profiling.records import (
    MachineInfo,
    ModelInfo,
    ModelLoaded,
    RunStarted,
    SliceDone,
    StepKind,
    StepSamples,
)

MS = 1_000_000


def machine() -> MachineInfo:
    return MachineInfo(
        hostname="box",
        system="Linux",
        cpu_name="cpu",
        physical_cores=2,
        logical_cores=4,
        memory_bytes=8 << 30,
        cpu_features=(),
        device="cpu",
        device_name="cpu",
        compiler=None,
    )


def gpt2_layer_info(**changes: object) -> ModelInfo:
    """A one-layer GPT-2 with D 768, 12 heads, F 3072, a vocabulary of 1000 and 1024 positions."""
    layer = 4 * 768 * 768 + 2 * 768 * 3072 + (2 * 2 * 768 + 3 * 768 + 768 + 3072 + 768)
    values: dict[str, object] = {
        "name": "one",
        "source": "preset",
        "family": "gpt2",
        "n_layer": 1,
        "d_model": 768,
        "n_head": 12,
        "n_kv_head": 12,
        "d_head": 64,
        "d_ff": 3072,
        "vocab_size": 1000,
        "context_length": 1024,
        "parameters": layer + 1000 * 768 + 1024 * 768 + 2 * 768,
        "weight_bytes": 4 * (layer + 1000 * 768 + 1024 * 768 + 2 * 768),
        "kv_bytes_per_token": 2 * 12 * 64 * 4,
        "random_weights": True,
        "has_tokenizer": False,
        "gated_mlp": False,
        "tied_embeddings": True,
        "learned_positions": True,
    }
    return ModelInfo(**(values | changes))


def started(run_id: str = "a", *, kind: str = "decode", variant: Variant | None = None, **work: int) -> RunStarted:
    workload = Workload(kind=kind, **({"batch": 1, "context": 8, "new_tokens": 4, "steps": 4} | work))
    return RunStarted(
        run_id=run_id,
        experiment_id="e",
        variant=variant or Variant(),
        name=f"variant {run_id}",
        workload=workload,
        model="preset:tiny",
        command="gptscope run",
        started_unix_ns=1,
        machine=machine(),
        versions={"torch": "2.13.0"},
        environment={},
        threads=2,
        seed=1234,
    )


def loaded(run_id: str = "a", info: ModelInfo | None = None) -> ModelLoaded:
    return ModelLoaded(run_id=run_id, model=info or gpt2_layer_info(), fusions=(), skipped={}, load_s=0.5, start_s=2.0)


def samples(
    durations_ms: list[float],
    *,
    run_id: str = "a",
    number: int = 0,
    kind: StepKind = "decode",
    start_ms: float = 0.0,
    gap_ms: float = 0.0,
    tokens: int = 1,
    context: tuple[int, ...] = (),
    phase: str = "measure",
) -> StepSamples:
    """Steps one after another with `gap_ms` between them."""
    starts, now = [], start_ms
    for duration in durations_ms:
        starts.append(round(now * MS))
        now += duration + gap_ms
    return StepSamples(
        run_id=run_id,
        slice=number,
        phase=phase,
        kind=kind,
        start_ns=tuple(starts),
        duration_ns=tuple(round(d * MS) for d in durations_ms),
        tokens=(tokens,) * len(durations_ms),
        context=context,
    )


def done(
    number: int, *, run_id: str = "a", attempt: int = 0, pair: int | None = None, disturbed: str | None = None
) -> SliceDone:
    return SliceDone(
        run_id=run_id,
        slice=number,
        attempt=attempt,
        pair=number if pair is None else pair,
        seconds=1.0,
        disturbed=disturbed,
    )


@pytest.fixture(scope="session")
def make() -> SimpleNamespace:
    """Makers of records: `make.started()`, `make.samples([...])`, ..."""
    return SimpleNamespace(
        machine=machine, gpt2_layer_info=gpt2_layer_info, started=started, loaded=loaded, samples=samples, done=done
    )
