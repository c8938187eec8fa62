"""A worker may die, hang or fail anywhere: the reason is told in a sentence and everything else goes on."""

import pytest

from gptscope.profiling.experiment import Workload
from gptscope.profiling.records import (
    AskCapabilities,
    Capabilities,
    ExperimentFinished,
    ExperimentStarted,
    Failure,
    FetchModel,
    GreedyPrompt,
    InspectModel,
    MeasurePeaks,
    ModelFetched,
    ModelInspected,
    Notice,
    Peaks,
    Profile,
    Progress,
    Quality,
    RunFinished,
    SliceDone,
    StepSamples,
)

PHASES = {
    "load": "loading the model",
    "peaks": "measuring this machine's peaks",
    "warmup": "warming up",
    "slice": "measuring",
    "profile": "profiling",
    "evaluate": "evaluating the output",
}


def of(kind, records):
    return [record for record in records if isinstance(record, kind)]


def outcomes(records):
    order = of(ExperimentStarted, records)[0].run_ids
    ended = {record.run_id: record.outcome for record in of(RunFinished, records)}
    assert len(ended) == len(of(RunFinished, records)), "each run ends once"
    return [ended[run_id] for run_id in order]


@pytest.mark.parametrize("phase", PHASES)
def test_a_candidate_that_is_killed_is_told_and_the_baseline_goes_on(phase, engine, experiment, run_all):
    # its own number of threads, so that it is asked for peaks too
    records = run_all(engine, experiment("good", f"crash:{phase} threads:1", quality=True))
    assert outcomes(records) == ["done", "failed"]
    (failure,) = of(Failure, records)
    assert failure.kind == "worker_died"
    assert failure.run_id == of(ExperimentStarted, records)[0].run_ids[1]
    expected = f"While it was {PHASES[phase]}, the worker of “crash:{phase} threads:1” was ended by signal 9 (SIGKILL"
    assert failure.message.startswith(expected)
    assert failure.detail == f"last words at {phase}", "stderr's tail, without the profiler's noise"
    assert records[-1] == ExperimentFinished(experiment_id="e1", outcome="failed")


@pytest.mark.parametrize("phase", PHASES)
def test_a_baseline_that_is_killed_does_not_stop_the_candidate(phase, engine, experiment, run_all):
    records = run_all(engine, experiment(f"crash:{phase} threads:1", "good", quality=True))
    assert outcomes(records) == ["failed", "done"]
    candidate = of(ExperimentStarted, records)[0].run_ids[1]
    assert {record.run_id for record in of(Profile, records)} >= {candidate}
    if phase != "evaluate":
        assert any("the baseline" in record.message for record in of(Notice, records))
    assert of(Quality, records) == []


def test_a_worker_that_dies_while_it_waits_for_its_turn_is_told(engine, experiment, run_all):
    records = run_all(engine, experiment("dies_idle", "slow"))
    assert outcomes(records) == ["failed", "done"]
    (failure,) = of(Failure, records)
    assert failure.kind == "worker_died"
    assert failure.message.startswith("The worker of “dies_idle” was ended by signal 9 (SIGKILL")


def test_what_was_measured_before_a_death_is_kept(engine, experiment, run_all):
    records = run_all(engine, experiment("crash:profile"))
    assert outcomes(records) == ["failed"]
    assert {record.slice for record in of(SliceDone, records)} == {0, 1}
    assert any(record.phase == "measure" for record in of(StepSamples, records))
    assert of(RunFinished, records)[0].first_step_s is not None


def test_a_death_early_in_a_long_experiment_ends_it_at_once(engine, experiment, run_all):
    work = Workload(steps=50_000, new_tokens=4)
    records = run_all(engine, experiment("crash:slice", workload=work))
    assert outcomes(records) == ["failed"]
    assert len(of(Progress, records)) < 20, "nothing is told about slices that nobody measures"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("segv:slice", "signal 11 (SIGSEGV: an invalid memory access inside a library)"),
        ("exit:slice", "ended with exit code 3 in the middle of its work"),
    ],
)
def test_the_way_a_worker_ended_is_told_in_words(name, words, engine, experiment, run_all):
    (failure,) = of(Failure, run_all(engine, experiment(name)))
    assert words in failure.message


@pytest.mark.parametrize(
    ("phase", "limit", "seconds"),
    [("load", "load_s", 3), ("warmup", "warm_up_s", 0.7), ("slice", "slice_s", 0.7), ("profile", "profile_s", 0.7)],
)
def test_a_silent_worker_is_ended_and_the_other_goes_on(phase, limit, seconds, make_engine, experiment, run_all):
    records = run_all(make_engine(**{limit: seconds}), experiment(f"hang:{phase}", "good"))
    assert outcomes(records) == ["failed", "done"]
    (failure,) = of(Failure, records)
    assert failure.kind == "timeout"
    assert f"no sign of life for {seconds} s while it was {PHASES[phase]}" in failure.message


def test_an_experiment_stops_at_its_time_limit_and_keeps_what_it_has(engine, experiment, run_all):
    records = run_all(engine, experiment("good", "hang:profile", time_limit_s=4))
    (failure,) = of(Failure, records)
    assert failure.kind == "timeout"
    assert "time limit of 4 s" in failure.message
    assert outcomes(records) == ["failed", "failed"]
    assert len({record.slice for record in of(SliceDone, records)}) == 2
    assert records[-1].outcome == "failed"


def test_a_failure_that_a_worker_reports_is_passed_on_once(engine, experiment, run_all):
    records = run_all(engine, experiment("good", "memory:slice"))
    (failure,) = of(Failure, records)
    assert (failure.kind, failure.message) == ("memory", "It does not fit.")
    assert outcomes(records) == ["done", "failed"]


def test_a_failed_profile_leaves_the_worker_for_the_evaluation(engine, experiment, run_all):
    records = run_all(engine, experiment("fail:profile", "good", quality=True))
    assert len(of(Quality, records)) == 1
    assert outcomes(records) == ["failed", "done"]


def test_peaks_that_cannot_be_measured_are_told_but_fail_no_run(engine, experiment, run_all):
    records = run_all(engine, experiment("fail:peaks"))
    assert of(Failure, records) == []
    assert [notice.message for notice in of(Notice, records)] == ["It fails at peaks."]
    assert outcomes(records) == ["done"]


def test_a_model_that_cannot_be_loaded_is_told_once_for_all_variants(engine, experiment, run_all):
    records = run_all(engine, experiment("fail:load", "good", "good b"))
    assert [failure.message for failure in of(Failure, records)] == ["It fails at load."]
    assert outcomes(records) == ["failed", "failed", "failed"]
    assert "measure" not in {progress.phase for progress in of(Progress, records)}, "nothing is measured"


def test_a_request_that_the_first_worker_refuses_is_measured_in_no_part(engine, experiment, run_all):
    records = run_all(engine, experiment("usage:load", "good"))
    assert [failure.kind for failure in of(Failure, records)] == ["usage"]
    assert outcomes(records) == ["failed", "failed"]
    assert of(SliceDone, records) == []


def test_a_worker_that_ignores_leave_is_ended_without_harm(make_engine, experiment, run_all):
    records = run_all(make_engine(leave_s=0.3), experiment("stuck"))
    assert outcomes(records) == ["done"]
    assert of(Failure, records) == []


def test_the_engine_goes_on_after_every_kind_of_death(engine, experiment, run_all):
    for name in ("crash:load", "segv:slice", "exit:profile"):
        assert run_all(engine, experiment(name))[-1].outcome == "failed"
    assert run_all(engine, experiment("good"))[-1].outcome == "done"


def test_a_worker_that_cannot_be_started_is_told(experiment, run_all):
    from gptscope.profiling.client import EngineClient, python_command

    with EngineClient(python_command("--worker-command", '["/does/not/exist"]')) as client:
        records = run_all(client, experiment("good"))
        assert "could not be started" in of(Failure, records)[0].message
        assert records[-1].outcome == "failed"


# ------------------------------------------------------------------------------------------------------- questions


def test_short_questions_are_answered_by_a_worker_of_their_own(engine):
    assert isinstance(engine.ask(AskCapabilities(), 30), Capabilities)
    assert isinstance(engine.ask(InspectModel(model="good"), 30), ModelInspected)
    peaks = engine.ask(MeasurePeaks(threads=3), 30)
    assert isinstance(peaks, Peaks)
    assert peaks.threads == 3, "the worker's kernels got that many threads"
    fetched = [record for record, _ in engine.stream(FetchModel(model="good"), 30)]
    assert isinstance(fetched[-1], ModelFetched)
    assert of(Progress, fetched)


def test_a_question_whose_worker_dies_gets_a_failure(engine):
    failure = engine.ask(InspectModel(model="crash:ask"), 30)
    assert isinstance(failure, Failure)
    assert failure.message.startswith("While it was inspecting crash:ask, the worker was ended by signal 9")
    failure = engine.ask(FetchModel(model="fail:ask"), 30)
    assert isinstance(failure, Failure)
    assert failure.message == "It fails at ask."
    assert isinstance(engine.ask(InspectModel(model="good"), 30), ModelInspected | Failure)


def test_a_second_experiment_is_refused_and_questions_wait_their_turn(engine, experiment):
    engine.send(experiment("slow"))
    second = experiment("good")
    import msgspec

    engine.send(msgspec.structs.replace(second, experiment_id="e2"))
    engine.send(AskCapabilities())
    seen = []
    for record, _ in engine.records(30):
        seen.append(record)
        if isinstance(record, Capabilities):
            break
    refused = of(ExperimentFinished, seen)[0]
    assert (refused.experiment_id, refused.outcome) == ("e2", "failed")
    assert "Another experiment is still running" in of(Failure, seen)[0].message
    assert of(ExperimentFinished, seen)[1] == ExperimentFinished(experiment_id="e1", outcome="done")


def test_requests_that_make_no_sense_are_refused_in_a_sentence(engine, experiment):
    engine.send(GreedyPrompt(prompt=0, new_tokens=1))
    assert engine._process is not None
    from gptscope.profiling import channel

    bad = channel.encode_header(experiment("good")).replace(b'"steps":2', b'"steps":0')
    engine._process.stdin.write(channel.frame(bad))
    engine._process.stdin.flush()
    failures = []
    for record, _ in engine.records(30):
        if isinstance(record, Failure):
            failures.append(record.message)
        if isinstance(record, ExperimentFinished):
            assert (record.experiment_id, record.outcome) == ("e1", "failed")
            break
    assert "command for workers" in failures[0]
    assert "steps is 0, but it must be 1 or more" in failures[1]
