"""Records between taking and writing: what two experiments in one batch must not do to each other."""

from pathlib import Path

import pytest

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
