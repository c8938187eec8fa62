"""A real worker process: commands in, records out, and it survives whatever it is asked."""

import os
import sys
import time

import psutil
import pytest

from gptscope.profiling import channel
from gptscope.profiling.experiment import Variant
from gptscope.profiling.records import (
    AskCapabilities,
    Bye,
    Capabilities,
    EvidenceReport,
    Failure,
    GeneratedText,
    Hello,
    InspectModel,
    Leave,
    MemoryPeak,
    ModelInspected,
    ModelLoaded,
    Profile,
    RecordProfile,
    RunSlice,
    RunStarted,
    StepSamples,
    TraceChunk,
    WarmUp,
)


def of(records, kind):
    return [record for record in records if isinstance(record, kind)]


def test_a_whole_run_over_the_pipe(kit, worker):
    assert isinstance(worker.hello, Hello)
    assert (worker.hello.role, worker.hello.pid) == ("worker", worker.process.pid)
    answers = worker.ask(kit.load(context=16, new_tokens=8, variant=Variant(fusions=("all",), threads=1)))
    (started,) = of(answers, RunStarted)
    assert (started.threads, started.seed, started.name) == (1, 1234, "FP32, all, dynamic KV, 1 thread")
    assert "--model preset:tiny" in started.command
    assert "KINETO_LOG_LEVEL" not in started.environment
    (loaded,) = of(answers, ModelLoaded)
    assert loaded.model.random_weights
    assert "attention" in loaded.fusions
    assert set(loaded.fusions).isdisjoint(loaded.skipped)
    assert 0 < loaded.start_s < 120
    warm = of(worker.ask(WarmUp()), StepSamples)
    assert {samples.phase for samples in warm} == {"warmup"}
    answers = worker.ask(RunSlice(slice=0, steps=1))
    assert {samples.slice for samples in of(answers, StepSamples)} == {0}
    assert of(answers, MemoryPeak)[0].process_bytes > 50_000_000
    answers = worker.ask(RecordProfile(steps=3))
    assert of(answers, Failure) == []
    (profile,) = of(answers, Profile)
    assert profile.steps == 3
    assert profile.overhead > 0.5
    (report,) = of(answers, EvidenceReport)
    assert {item.lever for item in report.items} == {"fp32", "dynamic", *loaded.fusions}
    chunks = of(answers, TraceChunk)
    assert chunks[-1].last
    assert worker.payloads["TraceChunk"][:2] == b"\x1f\x8b"
    worker.process.stdin.write(channel.encode(Leave()))
    worker.process.stdin.flush()
    assert isinstance(worker._next(), Bye)
    assert worker.process.wait(10) == 0


def test_it_lives_on_after_every_kind_of_refusal(kit, shared_worker):
    refusals = [
        (kit.load(model="preset:nothing"), "model", "nothing"),
        (kit.load(model="/no/such/folder"), "model", "/no/such/folder"),
        (kit.load(variant=Variant(fusions=("warp",), threads=1)), "usage", "'warp'"),
        (kit.load(variant=Variant(precision="int1", threads=1)), "usage", "'int1'"),
        (kit.load(context=250), "usage", "314 tokens together"),
        (kit.load(kind="generate", prompt="hello"), "usage", "no tokenizer"),
        (kit.load(batch=10**6), "memory", "GB"),
        (RunSlice(slice=0, steps=1), "usage", "No model is loaded"),
        (InspectModel(model="preset:nothing"), "model", "nothing"),
    ]
    for command, kind, words in refusals:
        failure = shared_worker.failure(command)
        assert failure.kind == kind, failure
        assert words in failure.message
        assert "Traceback" in failure.detail
    assert of(shared_worker.ask(kit.load(context=16)), ModelLoaded)


def test_capabilities_and_inspection_are_answered(shared_worker):
    (found,) = of(shared_worker.ask(AskCapabilities(device="cpu")), Capabilities)
    levers = {(lever.group, lever.name): lever for lever in found.levers}
    assert levers["precision", "fp32"].unavailable_reason is None
    assert levers["precision", "tf32"].unavailable_reason
    assert levers["fusion", "optimizer"].workloads == ("train",)
    assert levers["fusion", "optimizer"].unavailable_reason is None
    assert "tiny" in found.presets
    assert "smollm2-135m" in found.catalogue
    assert found.versions["torch"][0].isdigit()
    (inspected,) = of(shared_worker.ask(InspectModel(model="preset:gpt2-124m")), ModelInspected)
    assert inspected.model.parameters == 124_439_808
    assert inspected.estimated_bytes["train"] > 4 * inspected.estimated_bytes["decode"] / 2


def test_frames_that_are_no_commands_are_told_and_survived(kit, shared_worker):
    shared_worker.process.stdin.write(channel.frame(b'{"type":"make_coffee"}') + b"noise in between")
    shared_worker.process.stdin.flush()
    (failure,) = of(shared_worker.answer(), Failure)
    assert "cannot be read" in failure.message
    assert of(shared_worker.ask(kit.load(context=16)), ModelLoaded)


@pytest.mark.skipif(sys.platform == "win32", reason="the process group is a POSIX thing")
def test_it_ends_when_its_parent_closes_the_pipe(worker):
    children = psutil.Process(worker.process.pid).children(recursive=True)
    worker.process.stdin.close()
    worker.process.wait(10)
    deadline = time.monotonic() + 5
    while any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children):
        assert time.monotonic() < deadline, "something outlived the worker"
        time.sleep(0.05)


def test_a_torch_that_cannot_be_imported_is_told_in_a_sentence(kit, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch_cpu.so: cannot open shared object file')")
    process = kit.WorkerProcess({**os.environ, "PYTHONPATH": str(tmp_path)})
    try:
        for _ in range(2):
            failure = process.failure(kit.load())
            assert failure.kind == "internal"
            assert "libtorch_cpu.so" in failure.message
            assert "gptscope doctor" in failure.message
    finally:
        process.end()


def test_random_weights_generate_ids_without_text(kit, shared_worker):
    shared_worker.ask(kit.load(kind="generate", context=16, new_tokens=8))
    answers = shared_worker.ask(RunSlice(slice=0, steps=1))
    assert of(answers, StepSamples)
    assert of(answers, GeneratedText) == []
