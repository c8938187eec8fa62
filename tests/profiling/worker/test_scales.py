"""Scales of narrow layers as records: after slices and profiles, never twice, never too many."""

import msgspec
import pytest

from gptscope.models.precision.scale_log import ScaleSeries
from gptscope.models.training import TrainStep
from gptscope.profiling.channel import MAX_HEADER_BYTES
from gptscope.profiling.experiment import Variant
from gptscope.profiling.export import run_document
from gptscope.profiling.records import LoadVariant, RecordProfile, RunSlice, ScaleHistory
from gptscope.profiling.worker import scales


def test_each_step_is_sent_once(kit) -> None:
    prepared = kit.prepared(workload="train", precision="fp8-delayed")
    output, step = kit.collected(), TrainStep(prepared)
    tokens = kit.tiny.vocab_size - 1
    batch = prepared.model.embed.weight.new_zeros((1, 16)).long() + tokens
    for steps in (2, 1):
        for _ in range(steps):
            step(batch)
        scales.send_scales(prepared, output, "r")
    scales.send_scales(prepared, output, "r")
    first, second = output.of(ScaleHistory)
    assert {one.steps for one in first.series} == {(1, 2)}
    assert {one.steps for one in second.series} == {(3,)}
    assert {(one.tensor, one.largest) for one in first.series} == {
        ("input", 448.0),
        ("weight", 448.0),
        ("grad", 57344.0),
    }


def test_plain_models_send_nothing(kit) -> None:
    output = kit.collected()
    scales.send_scales(kit.prepared(), output, "r")
    assert output.sent == []


def test_records_of_large_models_stay_small(kit, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = list(range(200))
    many = [
        ScaleSeries(f"blocks.{layer}.mlp.up", "grad", 57344.0, list(steps), [1.23456789e-7] * 200, [4.6e11] * 200)
        for layer in range(2000)
    ]

    class Log:
        def take(self) -> list[ScaleSeries]:
            return many

    monkeypatch.setattr(scales, "scale_log_of", lambda _model: Log())
    output = kit.collected()
    scales.send_scales(kit.prepared(), output, "r")
    (record,) = output.of(ScaleHistory)
    assert len(msgspec.json.encode(record)) < MAX_HEADER_BYTES / 4
    assert all(len(one.steps) >= scales.LEAST_POINTS and one.steps[-1] == 199 for one in record.series)


def test_a_worker_sends_them_after_slices_and_profiles(shared_worker, kit) -> None:
    variant = Variant(precision="fp8-current", threads=1)
    command: LoadVariant = kit.load(variant=variant, kind="train", context=16)
    started = shared_worker.ask(command)
    sliced = shared_worker.ask(RunSlice(slice=0, steps=3))
    profiled = shared_worker.ask(RecordProfile(steps=1))
    for records, steps in ((sliced, (1, 2, 3)), (profiled, None)):
        (history,) = [record for record in records if isinstance(record, ScaleHistory)]
        assert history.recipe == "fp8-current"
        assert steps is None or {one.steps for one in history.series} == {steps}
    document = run_document([*started, *sliced, *profiled])
    assert {one["tensor"] for one in document["scales"]} == {"input", "weight", "grad"}
