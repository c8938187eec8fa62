"""An experiment from its first to its last record, with workers that behave."""

import threading
import time

import pytest

from gptscope.profiling.client import EngineClient
from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.records import (
    EvidenceReport,
    ExperimentFinished,
    ExperimentStarted,
    Failure,
    Hello,
    LayerErrors,
    ModelLoaded,
    Notice,
    Peaks,
    Profile,
    Quality,
    RunFinished,
    RunStarted,
    SeedLosses,
    SliceDone,
    StepSamples,
    Telemetry,
    TraceChunk,
)


def of(kind, records):
    return [record for record in records if isinstance(record, kind)]


def test_two_variants_are_loaded_measured_alternating_profiled_and_finished(engine, experiment, run_all):
    records = run_all(engine, experiment("good a", "good b", workload=Workload(steps=3, new_tokens=4)))
    assert isinstance(records[0], Hello)
    started = of(ExperimentStarted, records)[0]
    a, b = started.run_ids
    assert a != b
    assert [record.run_id for record in of(RunStarted, records)] == [a, b]
    assert [record.run_id for record in of(ModelLoaded, records)] == [a, b]
    measured = [(record.run_id, record.slice) for record in of(StepSamples, records) if record.phase == "measure"]
    first_attempts = [record for record in of(SliceDone, records) if record.attempt == 0]
    assert [(done.run_id, done.pair) for done in first_attempts] == [(a, 0), (b, 0), (b, 1), (a, 1), (a, 2), (b, 2)]
    assert sorted(set(measured)) == sorted({(run, number) for run in (a, b) for number in range(3)})
    last_slice = max(index for index, record in enumerate(records) if isinstance(record, SliceDone))
    first_profile = min(index for index, record in enumerate(records) if isinstance(record, Profile))
    assert last_slice < first_profile, "profiling comes after all measuring"
    assert [record.run_id for record in of(EvidenceReport, records)] == [a, b]
    assert all(record.last for record in of(TraceChunk, records))
    finished = of(RunFinished, records)
    assert [(record.run_id, record.outcome) for record in finished] == [(a, "done"), (b, "done")]
    assert all(0 < record.first_step_s < 30 for record in finished)
    assert records[-1] == ExperimentFinished(experiment_id="e1", outcome="done")


def test_peaks_are_measured_once_per_number_of_threads_before_any_slice(engine, experiment, run_all):
    records = run_all(engine, experiment("good", "good too"))
    peaks = of(Peaks, records)
    assert [one.run_id for one in peaks] == [one.run_id for one in of(RunStarted, records)], "each run says its own"
    assert len({one.measured_unix_ns for one in peaks}) == 1, "measured once"
    assert records.index(of(Peaks, records)[0]) < records.index(of(SliceDone, records)[0])
    records = run_all(engine, experiment("good", peaks=False))
    assert of(Peaks, records) == []


def test_a_slice_lasts_from_its_first_to_its_last_step(engine, experiment, run_all):
    records = run_all(engine, experiment("good", workload=Workload(kind="train", steps=5), profile_steps=0))
    done = of(SliceDone, records)[0]
    samples = next(record for record in of(StepSamples, records) if record.slice == 0)
    span_ns = samples.start_ns[-1] + samples.duration_ns[-1] - samples.start_ns[0]
    assert done.seconds == span_ns / 1e9
    assert of(Profile, records) == [], "profile_steps 0 means none"


def test_candidates_are_compared_with_the_baseline_on_all_windows_and_prompts(engine, experiment, run_all):
    records = run_all(engine, experiment("good", "good b", "good c", quality=True))
    a, b, c = of(ExperimentStarted, records)[0].run_ids
    results = {record.run_id: record for record in of(Quality, records)}
    assert set(results) == {b, c}
    for result in results.values():
        assert result.baseline_run_id == a
        assert result.tokens == 3 * 8, "three windows of eight rows"
        assert result.greedy_tokens == result.greedy_equal == 2 * 48
        assert result.kl_mean is not None
    assert results[c].kl_mean > results[b].kl_mean > 0


def test_the_baseline_judges_the_candidates_own_text(engine, experiment, run_all):
    records = run_all(engine, experiment("good", "drifts", "good c", quality=True))
    drifting, same = of(Quality, records)
    assert drifting.greedy_equal == 2 * 10
    assert drifting.forced_tokens == 2 * 48
    assert drifting.forced_changes == 2 * 9, "tokens 0, 5, 15, 20, … of each prompt"
    assert [len(one.forced_gaps) for one in drifting.prompts] == [48, 48]
    assert (same.forced_tokens, same.forced_changes) == (2 * 48, 0), "its own text it need not read"


def test_layers_are_mapped_only_when_asked_for_and_only_of_candidates(engine, experiment, run_all):
    assert of(LayerErrors, run_all(engine, experiment("good", "good b", quality=True))) == []
    records = run_all(engine, experiment("good", "good b", "good c", quality=True, layer_map=True))
    a, b, c = of(ExperimentStarted, records)[0].run_ids
    assert [(one.run_id, one.baseline_run_id) for one in of(LayerErrors, records)] == [(b, a), (c, a)]


def test_a_map_that_fails_is_told_and_the_rest_is_kept(engine, experiment, run_all):
    records = run_all(engine, experiment("good", "fail:map", quality=True, layer_map=True))
    assert len(of(Quality, records)) == 1
    assert "It fails at map." in of(Failure, records)[0].message
    assert records[-1].outcome == "failed"


def test_only_outputs_are_compared_when_nothing_is_to_be_measured(engine, experiment, run_all):
    records = run_all(engine, experiment("good", "good b", quality=True, measure=False))
    assert len(of(Quality, records)) == 1
    for kind in (StepSamples, SliceDone, Profile, Peaks):
        assert of(kind, records) == []
    assert records[-1].outcome == "done"


def test_a_trained_model_is_not_asked_for_its_output_when_training(engine, experiment, run_all):
    records = run_all(engine, experiment("good", "good b", quality=True, workload=Workload(kind="train", steps=1)))
    assert of(Quality, records) == []
    assert any("loss curves" in record.message for record in of(Notice, records))


def test_prints_and_garbage_of_libraries_do_not_break_the_stream(engine, experiment, run_all):
    records = run_all(engine, experiment("noisy garbage"))
    assert of(Failure, records) == []
    assert records[-1].outcome == "done"


def test_ten_thousand_records_arrive_complete_and_in_order(engine, experiment):
    numbers, payloads = [], 0
    for record, payload in engine.stream(experiment("flood", profile_steps=0), 30):
        if isinstance(record, Notice) and record.message.startswith("flood"):
            numbers.append(int(record.message.split()[1]))
            payloads += len(payload)
    attempts = len(numbers) // 3000
    assert attempts >= 2
    assert numbers == list(range(3000)) * attempts
    assert payloads == len(numbers) * 2000


def test_a_slow_client_stops_the_worker_and_loses_nothing(engine, experiment):
    total = last = 0
    for record, payload in engine.stream(experiment("trace:40"), 30):
        if isinstance(record, TraceChunk):
            time.sleep(0.01)
            total += len(payload)
            last += record.last
    assert (total, last) == (40 << 20, 1)


def test_telemetry_is_sampled_while_the_experiment_runs_and_stops_with_it(make_engine, experiment):
    client = make_engine()
    records = [record for record, _ in client.stream(experiment("slow", "slow b"), 30)]
    samples = of(Telemetry, records)
    assert len(samples) >= 4
    times = [sample.time_ns for sample in samples]
    assert times == sorted(times)
    assert all(sample.gpu is None and "CPU" in sample.gpu_reason for sample in samples)
    assert any(sample.worker_rss_bytes for sample in samples)
    assert all(sample.memory_available_bytes > 0 for sample in samples)
    run_ids = set(of(ExperimentStarted, records)[0].run_ids)
    assert {sample.run_id for sample in samples} <= {None, *run_ids}
    started = [record.start_ns[0] for record in of(StepSamples, records)]
    assert min(times) < max(started), "one clock for steps and samples"
    assert list(_drain(client, 0.6)) == []


def _drain(client: EngineClient, seconds: float):
    try:
        for record, _ in client.records(seconds):
            yield record
    except TimeoutError:
        return


def test_two_clients_at_once_do_not_touch_each_other(make_engine, experiment, run_all):
    results: dict[int, list[object]] = {}

    def work(number: int) -> None:
        results[number] = run_all(make_engine(), experiment("good", "good b"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [results[number][-1].outcome for number in range(2)] == ["done", "done"]
    ids = [set(of(ExperimentStarted, results[number])[0].run_ids) for number in range(2)]
    assert not ids[0] & ids[1]


def test_experiments_follow_each_other_in_one_engine(engine, experiment, run_all):
    for _ in range(2):
        assert run_all(engine, experiment("good"))[-1].outcome == "done"


TRAINING = Workload(kind="train", steps=2, context=4, seed=50)


def test_further_seeds_are_trained_after_everything_that_is_measured(engine, experiment, run_all):
    records = run_all(engine, experiment("good a", "good b", workload=TRAINING, seeds=3))
    a, b = of(ExperimentStarted, records)[0].run_ids
    trained = [(one.run_id, one.seed) for one in of(SeedLosses, records)]
    assert trained == [(a, 51), (a, 52), (b, 51), (b, 52)]
    first = min(index for index, record in enumerate(records) if isinstance(record, SeedLosses))
    assert max(index for index, record in enumerate(records) if isinstance(record, Profile)) < first
    assert records[-1] == ExperimentFinished(experiment_id="e1", outcome="done")


def test_a_seed_that_fails_stops_that_variants_seeds_only(engine, experiment, run_all):
    records = run_all(engine, experiment("fail:seed-2", "crash:seed-3", "good", workload=TRAINING, seeds=3))
    a, b, c = of(ExperimentStarted, records)[0].run_ids
    assert [(one.run_id, one.seed) for one in of(SeedLosses, records)] == [(a, 51), (b, 51), (c, 51), (c, 52)]
    outcomes = {one.run_id: one.outcome for one in of(RunFinished, records)}
    assert outcomes == {a: "failed", b: "failed", c: "done"}


def test_several_seeds_need_a_workload_that_trains():
    with pytest.raises(ValueError, match="the workload is decode"):
        Experiment(model="m", workload=Workload(), variants=(Variant(),), seeds=2)
    with pytest.raises(ValueError, match="seeds is 0"):
        Experiment(model="m", workload=TRAINING, variants=(Variant(),), seeds=0)
