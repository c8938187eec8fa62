"""Runs in numbers: what counts, what does not, and why something is unknown."""

import msgspec
import pytest

from gptscope.profiling.experiment import Variant
from gptscope.profiling.metrics.run_summary import RunSummary
from gptscope.profiling.metrics.summary import RunAccumulator, summarise, summarise_all
from gptscope.profiling.records import Failure, MemoryPeak, Notice, Peaks, Profile, RunFinished


def peaks(**changes):
    values = {
        "device": "cpu",
        "device_name": "cpu",
        "threads": 2,
        "read_gbps": 40.0,
        "copy_gbps": 30.0,
        "gemm_tflops": {"fp32": 0.1},
        "measured_unix_ns": 1,
    }
    return Peaks(**(values | changes))


def test_decode_tokens_per_second_are_tokens_over_wall_time_and_prefill_is_apart(make):
    records = [make.started(batch=2), make.loaded()]
    for number in range(4):
        at = number * 1000.0
        records += [
            make.samples([100.0], number=number, kind="prefill", start_ms=at, tokens=16),
            make.samples([10.0, 10.0, 10.0, 10.0], number=number, start_ms=at + 100, tokens=2),
            make.done(number),
        ]
    summary = summarise(records)
    assert summary.tokens_per_s.value == pytest.approx(4 * 8 / (4 * 0.040))  # 200: prefill's 100 ms do not count
    assert summary.tokens_per_s.low == pytest.approx(200.0)  # all slices alike: no spread
    assert summary.prompt_tokens_per_s.value == pytest.approx(16 / 0.100)
    assert summary.ttft.p50_ms == pytest.approx(100.0)
    assert summary.itl.p50_ms == summary.itl.p99_ms == pytest.approx(10.0)
    assert summary.slices_counted == 4


def test_time_between_decode_steps_is_not_hidden(make):
    records = [make.started(), make.loaded()]
    records += [make.samples([10.0, 10.0, 10.0], start_ms=0, gap_ms=5.0), make.done(0)]
    summary = summarise(records)
    assert summary.tokens_per_s.value == pytest.approx(3 / 0.040)  # 3 steps of 10 ms and 2 gaps of 5 ms
    assert summary.step_time.p50_ms == pytest.approx(10.0)
    assert summary.itl.p50_ms == pytest.approx(15.0)
    assert any("25%" in warning for warning in summary.warnings)


def test_training_speed_is_batch_times_length_over_step_time(make):
    records = [make.started(kind="train", batch=3, context=7, steps=2), make.loaded()]
    records += [make.samples([50.0, 150.0], kind="train", tokens=21, gap_ms=500.0), make.done(0)]
    summary = summarise(records)
    assert summary.headline == "train"
    assert summary.tokens_per_s.value == pytest.approx(42 / 0.2)
    assert summary.itl is None
    assert "train" in summary.unknown["itl"]


def test_warm_up_and_profiled_steps_never_count(make):
    records = [
        make.started(),
        make.samples([1000.0], number=-1, phase="warmup"),
        make.samples([10.0]),
        make.done(0),
        make.samples([2000.0], number=-1, phase="profile"),
    ]
    assert summarise(records).step_time.p99_ms == pytest.approx(10.0)


def test_a_disturbed_slice_is_replaced_by_its_repetition(make):
    records = [
        make.started(),
        make.samples([90.0]),
        make.done(0, disturbed="other processes used 80 % of a core"),
        make.samples([10.0]),
        make.done(0, attempt=1),
    ]
    summary = summarise(records)
    assert summary.step_time.p50_ms == pytest.approx(10.0)
    assert (summary.slices_counted, summary.slices_repeated, summary.slices_disturbed) == (1, 1, 0)
    assert summary.disturbed_reasons == ("other processes used 80 % of a core",)
    assert [s.counted for s in summary.slices] == [False, True]


def test_a_slice_disturbed_every_time_counts_by_its_last_attempt_and_says_so(make):
    records = [
        make.started(),
        make.samples([90.0]),
        make.done(0, disturbed="busy"),
        make.samples([30.0]),
        make.done(0, attempt=1, disturbed="busy"),
    ]
    summary = summarise(records)
    assert summary.step_time.p50_ms == pytest.approx(30.0)
    assert summary.slices_disturbed == 1
    assert any("1 of 1 counted slice was disturbed" in warning for warning in summary.warnings)


def test_a_killed_run_keeps_its_finished_slices(make):
    records = [make.started(), make.loaded(), make.samples([10.0]), make.done(0), make.samples([99.0], number=1)]
    summary = summarise(records)
    assert summary.outcome == "interrupted"
    assert summary.step_time.p50_ms == pytest.approx(10.0)
    assert "The last slice was cut off and is not counted." in summary.warnings


def test_a_run_in_its_first_slice_already_has_numbers(make):
    run = RunAccumulator()
    for record in (make.started(), make.loaded(), make.samples([10.0, 20.0])):
        run.add(record)
    summary = run.summary(with_intervals=False)
    assert summary.outcome == "running"
    assert summary.step_time.p50_ms == pytest.approx(15.0)
    assert summary.tokens_per_s.low is None


def test_every_unknown_value_has_a_reason(make):
    streams = [
        [],
        [make.started()],
        [make.started(), make.loaded()],
        [make.started(), Failure(kind="memory", message="It does not fit.", run_id="a")],
        [make.started(kind="prefill"), make.loaded(), make.samples([5.0], kind="prefill"), make.done(0), peaks()],
        [make.started(), make.loaded(), make.samples([5.0]), make.done(0)],
        [make.started(variant=Variant(precision="int4")), make.loaded(), make.samples([5.0]), make.done(0)],
    ]
    no_reason_needed = {"failure", "run_id"}
    for stream in streams:
        summary = summarise(stream)
        for field in RunSummary.__struct_fields__:
            if getattr(summary, field) is None and field not in no_reason_needed:
                assert summary.unknown.get(field), f"{field} of {stream!r}"


def test_a_failure_is_told_and_outranks_a_missing_end(make):
    records = [make.started(), Failure(kind="worker_died", message="The worker was killed.", run_id="a")]
    summary = summarise(records)
    assert summary.outcome == "failed"
    assert summary.failure == "The worker was killed."
    assert "The worker was killed." in summary.unknown["tokens_per_s"]


def test_mbu_and_mfu_come_from_modelled_work_and_measured_peaks(make):
    records = [make.started(), make.loaded(), peaks(), make.samples([10.0], context=(9,)), make.done(0)]
    summary = summarise(records)
    assert summary.achieved_gbps == pytest.approx(summary.step_bytes.total / 0.010 / 1e9)
    assert summary.mbu.peak == 40.0  # the higher of read and copy
    assert summary.mbu.fraction == pytest.approx(summary.achieved_gbps / 40.0)
    assert summary.mfu.fraction == pytest.approx(summary.flops_per_step / 0.010 / 1e12 / 0.1)
    assert "published" in summary.unknown["published_mbu"]


def test_more_than_the_peak_is_shown_and_explained_not_clipped(make):
    records = [make.started(), make.loaded(), peaks(), make.samples([0.1], context=(9,)), make.done(0)]
    summary = summarise(records)
    assert summary.mbu.fraction > 1.0
    assert summary.mbu.note == "cache-resident or model wrong"


def test_without_a_peak_utilisation_is_unknown_but_the_rate_is_known(make):
    records = [make.started(variant=Variant(precision="fp16")), make.loaded()]
    records += [peaks(unknown={"fp16": "no native FP16"}), make.samples([10.0], context=(9,)), make.done(0)]
    summary = summarise(records)
    assert summary.mfu is None
    assert summary.unknown["mfu"] == "no native FP16"
    assert summary.achieved_tflops > 0


def test_records_of_another_run_change_nothing(make):
    own = [make.started(), make.loaded(), make.samples([10.0]), make.done(0)]
    other = [
        make.started("b"),
        make.samples([77.0], run_id="b"),
        make.done(0, run_id="b", disturbed="busy"),
        Failure(kind="worker_died", message="x", run_id="b"),
        RunFinished(run_id="b", outcome="failed", finished_unix_ns=2),
    ]
    mixed = [record for pair in zip(own, other, strict=False) for record in pair] + other[-1:]
    assert summarise(mixed, "a") == summarise(own, "a")
    assert list(summarise_all(mixed)) == ["a", "b"]
    assert summarise_all(mixed)["b"].outcome == "failed"


def test_a_stored_stream_gives_the_same_summary_as_the_live_one(make):
    records = [make.started(), make.loaded(), peaks(), Notice(message="odd", level="warning", run_id="a")]
    for number in range(5):
        records += [make.samples([10.0 + number, 11.0, 12.0], number=number), make.done(number)]
    records += [
        MemoryPeak(run_id="a", process_bytes=123),
        Profile(run_id="a", steps=3, overhead=1.1, wall_us=40.0, busy_us=30.0, kernels=(), device="cpu"),
        RunFinished(run_id="a", outcome="done", finished_unix_ns=2, first_step_s=3.5),
    ]
    live = RunAccumulator()
    for record in records:
        live.add(record)
        live.summary()
    stored = [msgspec.json.decode(msgspec.json.encode(r), type=type(r)) for r in records]
    summary = summarise(stored)
    assert summary == live.summary(final=True)
    assert (summary.outcome, summary.first_step_s, summary.peak_process_bytes) == ("done", 3.5, 123)
    assert summary.profile_busy_share == pytest.approx(0.75)
    assert summary.warnings == ("odd",)
    assert summary.tokens_per_s.low <= summary.tokens_per_s.value <= summary.tokens_per_s.high
    assert summary.step_time.low_ms <= summary.step_time.p50_ms <= summary.step_time.high_ms


def test_intervals_need_three_slices(make):
    records = [make.started(), make.samples([10.0]), make.done(0), make.samples([12.0], number=1), make.done(1)]
    summary = summarise(records)
    assert summary.tokens_per_s.value > 0
    assert summary.tokens_per_s.low is None
    assert summary.step_time.low_ms is None
