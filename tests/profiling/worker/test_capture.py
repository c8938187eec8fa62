"""A recording is bounded, carries module names and step marks, and leaves the model as it was."""

import dataclasses
import errno
import gzip
import json

import pytest
import torch

from gptscope.profiling.channel import MAX_PAYLOAD_BYTES
from gptscope.profiling.experiment import Workload
from gptscope.profiling.records import StepSamples, TraceChunk
from gptscope.profiling.worker import capture, profile_report
from gptscope.profiling.worker.copies import ModelCopies
from gptscope.profiling.worker.reporting import StepReporter
from gptscope.profiling.worker.scopes import module_scopes
from gptscope.profiling.worker.steps import DecodeBench, TrainBench
from gptscope.profiling.worker.texts import TokenSource
from gptscope.profiling.worker.variant import LoadedVariant


def decode_bench(kit, **levers) -> DecodeBench:
    return DecodeBench(kit.prepared(**levers), Workload(new_tokens=8), torch.zeros(1, 4, dtype=torch.long))


def record(kit, bench, steps, folder):
    output = kit.collected()
    return capture.record(bench, steps, folder, StepReporter(output, "r", "profile")), output


def events_of(path) -> list[dict]:
    return json.loads(path.read_text())["traceEvents"]


def test_steps_are_marked_and_modules_named(kit, tmp_path):
    recording, output = record(kit, decode_bench(kit), 3, tmp_path)
    events = events_of(recording.trace)
    marks = [event["name"] for event in events if event["name"].startswith("ProfilerStep#")]
    assert marks == ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]
    scopes = [event for event in events if event["name"] == "module: blocks.1.attn.qkv.q"]
    assert len(scopes) == 3
    assert {event["cat"] for event in scopes} == {"user_annotation"}
    (samples,) = output.of(StepSamples)
    assert (samples.phase, samples.slice, samples.context) == ("profile", -1, (5, 6, 7))
    assert recording.durations_ns == list(samples.duration_ns)
    assert recording.notes == ()


def test_an_int8_layer_is_named_as_the_layer_it_stands_for(kit, tmp_path):
    recording, _ = record(kit, decode_bench(kit, precision="int8-dynamic"), 1, tmp_path)
    scopes = {event["name"] for event in events_of(recording.trace) if event["name"].startswith("module: ")}
    assert "module: blocks.1.mlp.down" in scopes
    assert not [name for name in scopes if "mlp.down." in name]


def test_training_steps_hold_forward_backward_and_optimizer_but_no_data_making(kit, tmp_path):
    work = Workload(kind="train", batch=1, context=8)
    bench = TrainBench(kit.prepared(workload="train"), work, TokenSource(None, kit.tiny.vocab_size, 1))
    recording, _ = record(kit, bench, 2, tmp_path)
    names = [event["name"] for event in events_of(recording.trace)]
    assert any("backward" in name.lower() for name in names)
    assert any(name.startswith("Optimizer.step") for name in names)
    assert not any("rand" in name for name in names)


def test_the_table_finds_the_modules_and_the_dtypes(kit, tmp_path):
    recording, _ = record(kit, decode_bench(kit), 2, tmp_path)
    profile = profile_report.profile_record(recording, 1.5, "r")
    assert (profile.steps, profile.overhead, profile.device) == (2, 1.5, "cpu")
    assert 0 < profile.busy_us <= profile.wall_us
    products = [row for row in profile.kernels if row.name == "aten::mm"]
    assert {"blocks.*.mlp.gate", "lm_head"} <= {row.module for row in products}
    assert sum(row.calls for row in products if row.module == "blocks.*.mlp.gate") == 2 * kit.tiny.n_layer
    assert sum(row.share for row in profile.kernels) == pytest.approx(1.0)


def test_evidence_covers_every_lever_that_is_on(kit, tmp_path):
    bench = decode_bench(kit, precision="bf16", fusions=("attention", "qkv"), kv_cache="static")
    bench.prepared.reset_counters()
    recording, _ = record(kit, bench, 2, tmp_path)
    profile = profile_report.profile_record(recording, 1.0, "r")
    report = profile_report.evidence_record(bench.prepared, profile, 2, "r")
    assert {item.lever: item.in_effect for item in report.items} == {
        "bf16": True,
        "attention": True,
        "qkv": True,
        "static": True,
    }


def test_more_steps_than_a_sequence_has_are_cut_and_said(kit, tmp_path):
    recording, _ = record(kit, decode_bench(kit), 50, tmp_path)
    assert recording.steps == 8
    assert recording.notes == ("8 steps were recorded instead of 50, because one sequence has no more.",)


def test_the_number_of_events_is_bounded(kit, tmp_path, monkeypatch):
    monkeypatch.setattr(capture, "MOST_EVENTS", 600)
    recording, _ = record(kit, decode_bench(kit), 8, tmp_path)
    assert 1 <= recording.steps < 8
    assert "events" in recording.notes[0]
    assert len(events_of(recording.trace)) < 900


def test_no_room_on_the_disk_is_noticed_before_recording(kit, tmp_path, monkeypatch):
    monkeypatch.setattr(capture.shutil, "disk_usage", lambda _folder: type("Usage", (), {"free": 1000})())
    with pytest.raises(OSError, match="MB are free") as caught:
        record(kit, decode_bench(kit), 2, tmp_path)
    assert caught.value.errno == errno.ENOSPC
    assert not (tmp_path / "trace.json").exists()


def test_a_trace_that_was_cut_off_is_an_error_not_a_short_table(kit, tmp_path):
    recording, _ = record(kit, decode_bench(kit), 2, tmp_path)
    whole = recording.trace.read_bytes()
    recording.trace.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(OSError, match="cut off"):
        profile_report.profile_record(recording, 1.0, "r")


def test_the_trace_arrives_as_it_was_recorded(kit, tmp_path):
    trace = tmp_path / "trace.json"
    text = bytes((7 * i * i + i // 3) % 251 for i in range(3_000_000))  # hardly compressible: several pieces
    trace.write_bytes(text)
    output = kit.collected()
    profile_report.send_trace(trace, output, "r")
    pieces = [(record, payload) for record, payload in output.sent if isinstance(record, TraceChunk)]
    assert gzip.decompress(b"".join(payload for _, payload in pieces)) == text
    assert [record.last for record, _ in pieces] == [False] * (len(pieces) - 1) + [True]
    assert all(len(payload) <= MAX_PAYLOAD_BYTES for _, payload in pieces)
    offsets = [0]
    for _, payload in pieces:
        offsets.append(offsets[-1] + len(payload))
    assert [record.offset for record, _ in pieces] == offsets[:-1]


def test_scopes_leave_no_hooks_behind_also_after_an_error(kit):
    model = kit.prepared().model

    def broken_inside_scopes() -> None:
        with module_scopes(model):
            assert any(module._forward_hooks for module in model.modules())
            model(torch.zeros(1, 999, dtype=torch.long))

    with pytest.raises(ValueError, match="context"):
        broken_inside_scopes()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


# torch's own compiler says so of itself when it is imported
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
def test_nothing_inside_a_compiled_region_is_touched(kit):
    machine = dataclasses.replace(kit.machine, compiler="/usr/bin/c++")
    model = kit.prepared(fusions=("compile",), machine=machine).model
    regions = [path for path, module in model.named_modules() if hasattr(module, "compiled")]
    assert regions
    with module_scopes(model):
        hooked = {path for path, module in model.named_modules() if module._forward_hooks}
    assert {"embed", "norm", "lm_head", *regions} <= hooked
    assert not any(path.startswith(f"{region}.") for path in hooked for region in regions)


def test_overhead_is_the_ratio_of_medians():
    assert capture.overhead([30, 10, 20], [10, 10, 1000]) == 2.0


def test_decode_steps_are_compared_with_those_at_the_same_place_of_a_sequence(kit):
    copies = ModelCopies("tiny", 1, torch.device("cpu"), None)
    source = TokenSource(None, 9, 1)
    variant = LoadedVariant("r", Workload(), kit.prepared(), decode_bench(kit), source, None, copies)
    assert len(variant.unprofiled_ns(3)) == 1, "without measured slices one step is timed now"
    for offset in (0, 100):
        variant.keep_durations({"train": [], "prefill": [7], "decode": [offset + place for place in range(9)]})
    assert variant.unprofiled_ns(3) == [0, 1, 2, 100, 101, 102]
