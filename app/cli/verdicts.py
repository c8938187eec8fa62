"""The verdict on every candidate of an experiment's records."""

from collections.abc import Iterable, Sequence

from gptscope.app.cli.run_report import accumulate
from gptscope.profiling.metrics.compare import judge
from gptscope.profiling.metrics.verdict import Verdict
from gptscope.profiling.records import ExperimentStarted, Quality, Record


def judge_all(records: Sequence[Record], candidates: Iterable[str]) -> list[Verdict]:
    """One verdict per candidate, in order; none when the records hold no experiment."""
    started = next((record for record in records if isinstance(record, ExperimentStarted)), None)
    if started is None:
        return []
    baseline = accumulate(records, started.run_ids[0])
    return [judge(baseline, accumulate(records, run_id), quality_of(records, run_id)) for run_id in candidates]


def quality_of(records: Iterable[Record], run_id: str) -> Quality | None:
    """How the run's output compares with the baseline's, if it was evaluated."""
    return next((record for record in records if isinstance(record, Quality) and record.run_id == run_id), None)
