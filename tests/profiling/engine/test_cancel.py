"""Cancel takes effect within a second, whatever is going on, and keeps what was measured."""

import contextlib
import time

import psutil
import pytest

from gptscope.profiling.records import (
    AskCapabilities,
    ExperimentFinished,
    ExperimentStarted,
    Failure,
    Hello,
    InspectModel,
    ModelInspected,
    ModelLoaded,
    Notice,
    Profile,
    Progress,
    RunFinished,
    RunStarted,
    SliceDone,
    StepSamples,
    TraceChunk,
)

WITHIN_S = 1.0


def cancel_when(client, start, condition, wait_until_gone):
    """Run, cancel as soon as a record meets the condition; return records and the seconds until the end."""
    records, cancelled_at, workers = [], None, []
    for record, _ in client.stream(start, 30):
        records.append(record)
        if isinstance(record, Hello) and record.role == "worker":
            with contextlib.suppress(psutil.NoSuchProcess):  # cancelled before its greeting was read
                workers.append(psutil.Process(record.pid))
        if cancelled_at is None and condition(records):
            tree = [child for worker in workers if worker.is_running() for child in worker.children(recursive=True)]
            client.cancel()
            cancelled_at = time.perf_counter()
    assert cancelled_at is not None
    seconds = time.perf_counter() - cancelled_at
    assert wait_until_gone([*workers, *tree], WITHIN_S) == []
    return records, seconds


def after(kind, count=1):
    return lambda records: sum(isinstance(record, kind) for record in records) == count


MOMENTS = {
    "before any worker is up": ("good", after(ExperimentStarted)),
    "while loading": ("hang:load", after(RunStarted)),
    "while warming up with compilers": ("children hang:warmup", after(ModelLoaded)),
    "while measuring peaks": ("hang:peaks", after(StepSamples, 2)),
    "while measuring": ("slow", after(SliceDone)),
    "while profiling": ("hang:profile", after(SliceDone, 4)),
    "while the trace is sent": ("trace:2000", after(TraceChunk)),
    "in a flood of records": ("flood", after(Notice)),
    "while evaluating": ("hang:evaluate", after(Profile, 2)),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_cancel_ends_the_experiment_within_a_second(moment, engine, experiment, wait_until_gone):
    name, condition = MOMENTS[moment]
    records, seconds = cancel_when(engine, experiment(name, "good", quality=True), condition, wait_until_gone)
    assert seconds < WITHIN_S
    ended = [record.outcome for record in records if isinstance(record, RunFinished)]
    assert ended == ["cancelled", "cancelled"]
    assert records[-1] == ExperimentFinished(experiment_id="e1", outcome="cancelled")
    assert not [record for record in records if isinstance(record, Failure)]
    assert isinstance(engine.ask(InspectModel(model="good"), 30), ModelInspected), "the engine is ready for more"


def test_slices_that_were_done_before_are_kept(engine, experiment, wait_until_gone):
    records, _ = cancel_when(engine, experiment("hang:profile"), after(SliceDone, 2), wait_until_gone)
    assert any(isinstance(record, SliceDone) for record in records)
    ended = next(record for record in records if isinstance(record, RunFinished))
    assert ended.first_step_s is not None


def test_a_question_and_what_waits_behind_it_are_cancelled_in_a_sentence(engine, experiment):
    engine.send(InspectModel(model="hang:ask"))
    engine.send(AskCapabilities())
    engine.send(experiment("good"))
    time.sleep(0.3)
    begun = time.perf_counter()
    engine.cancel()
    records = []
    for record, _ in engine.records(30):
        records += [record] if not isinstance(record, Hello | Progress) else []
        if len(records) == 3:
            break
    assert time.perf_counter() - begun < WITHIN_S
    failures = {record.message for record in records if isinstance(record, Failure) and record.kind == "cancelled"}
    assert failures == {
        "Cancelled while inspecting hang:ask.",
        "Cancelled while finding out what this machine offers.",
    }
    assert ExperimentFinished(experiment_id="e1", outcome="cancelled") in records


def test_cancel_without_anything_to_cancel_does_nothing(engine):
    engine.cancel()
    assert isinstance(engine.ask(InspectModel(model="good"), 30), ModelInspected)


def test_a_second_cancel_changes_nothing(engine, experiment):
    records = []
    for record, _ in engine.stream(experiment("hang:load"), 30):
        records.append(record)
        if isinstance(record, RunStarted):
            for _ in range(5):
                engine.cancel()
    assert [record.outcome for record in records if isinstance(record, RunFinished)] == ["cancelled"]
    assert isinstance(engine.ask(InspectModel(model="good"), 30), ModelInspected)
