"""Records between taking and writing: what two experiments in one batch must not do to each other."""

from pathlib import Path

import pytest

from gptscope.profiling.records import ExperimentFinished, Failure, RunFinished
from gptscope.profiling.store.library import Library
from gptscope.profiling.store.stream import RecordStream


def test_an_end_that_is_written_only_after_the_next_experiment_began_still_has_its_numbers(
    folder: Path, stream
) -> None:
    first, second = stream("one", slices=6), stream("two")
    with Library(folder) as library:
        kept = RecordStream(folder)
        for record in first[:-3]:  # all but the runs' ends and the experiment's
            kept.take(record)
        kept.write()
        for record in first[-3:]:
            kept.take(record)
        for record in second:
            kept.take(record)
        kept.write()
        kept.close()
        baseline, candidate = (library.find(run_id) for run_id in ("one-a", "one-b"))
        assert baseline is not None
        assert candidate is not None
        assert baseline.outcome == candidate.outcome == "done"
        assert baseline.headline.tokens_per_second == pytest.approx(100)
        assert candidate.headline.tokens_per_second == pytest.approx(200)
        assert candidate.headline.speedup == pytest.approx(2)
        assert candidate.headline.verdict == "Faster, output not compared"
        assert list(library.open_experiment("one")) == first
        assert list(library.open_experiment("two")) == second


def test_an_interrupted_run_keeps_the_numbers_it_had_when_the_next_experiment_begins(folder: Path, stream) -> None:
    with Library(folder) as library:
        kept = RecordStream(folder)
        for record in stream("one", finish=False):
            kept.take(record)
        kept.write()
        for record in stream("two"):
            kept.take(record)
        kept.write()
        kept.close()
        entry = library.find("one-a")
        assert entry is not None
        assert entry.outcome == "interrupted"
        assert entry.headline.tokens_per_second == pytest.approx(100)


def test_an_experiment_that_is_written_leaves_memory_when_the_next_one_is(folder: Path, stream) -> None:
    with Library(folder):
        kept = RecordStream(folder)
        for record in stream("one"):
            kept.take(record)
        kept.write()
        for record in stream("two"):
            kept.take(record)
        kept.write()
        assert kept.is_written()
        assert {experiment for experiment, _ in kept._items} == {"two"}
        kept.close()


@pytest.mark.parametrize("kind", ["usage", "model", "offline", "memory"])
def test_a_request_that_was_refused_is_no_run(folder: Path, stream, kind) -> None:
    """The records come as they are made, so the run is in the file before it is refused."""
    started, first, second, *_ = stream("refused")
    with Library(folder) as library:
        kept = RecordStream(folder)
        for record in (started, first, second):
            kept.take(record)
        kept.write()
        assert [entry.outcome for entry in library.list_runs()] == ["running", "running"]
        kept.take(Failure(kind=kind, message="It cannot be run as asked.", run_id=first.run_id))
        for run in (first, second):
            kept.take(RunFinished(run_id=run.run_id, outcome="failed", finished_unix_ns=1))
        kept.take(ExperimentFinished(experiment_id="refused", outcome="failed"))
        kept.write()
        kept.close()
        assert kept.is_written()
        assert library.list_runs() == ()
        assert list(library.open_experiment("refused")) == []


@pytest.mark.parametrize("kind", ["worker_died", "timeout", "internal", "disk"])
def test_a_run_that_broke_is_kept(folder: Path, stream, kind) -> None:
    started, first, *_ = stream("broken")
    with Library(folder) as library:
        kept = RecordStream(folder)
        for record in (started, first, Failure(kind=kind, message="It broke.", run_id=first.run_id)):
            kept.take(record)
        kept.take(RunFinished(run_id=first.run_id, outcome="failed", finished_unix_ns=1))
        kept.take(ExperimentFinished(experiment_id="broken", outcome="failed"))
        kept.write()
        kept.close()
        assert [entry.outcome for entry in library.list_runs()] == ["failed"]


def test_one_refused_variant_beside_one_that_ran_is_kept(folder: Path, stream) -> None:
    records = stream("one")
    refusal = Failure(kind="usage", message="There is no precision int9.", run_id="one-b")
    with Library(folder) as library:
        kept = RecordStream(folder)
        for record in (*records[:-1], refusal, ExperimentFinished(experiment_id="one", outcome="failed")):
            kept.take(record)
        kept.write()
        kept.close()
        assert {entry.run_id for entry in library.list_runs()} == {"one-a", "one-b"}
