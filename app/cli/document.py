"""The JSON form of an experiment: every number of every run, for programs. Its fields are listed in docs/json.md."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from gptscope.app.cli.verdicts import judge_all
from gptscope.profiling.export import ExportError, run_document
from gptscope.profiling.metrics.verdict import Verdict
from gptscope.profiling.quality.loss_curves import LossComparison, compare_all
from gptscope.profiling.records import ExperimentFinished, ExperimentStarted, Failure, Notice, Record

R = TypeVar("R", bound=Record)


class KeptDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Where the runs are kept."""

    library: str | None
    reason: str | None
    """Why they are not."""


class ExperimentDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one experiment."""

    experiment_id: str | None
    outcome: str
    started_unix_ns: int | None
    source: str | None
    baseline_run_id: str | None
    kept: KeptDocument
    failures: tuple[Failure, ...]
    """Of no single run."""
    notices: tuple[Notice, ...]
    verdicts: tuple[Verdict, ...]
    """One per candidate that has a baseline in these records."""
    losses: tuple[LossComparison, ...]
    """One per candidate that trained beside the baseline."""
    runs: tuple[dict[str, Any], ...]
    """As `profiling.export.run_document` makes them; a variant that never started has none."""


def experiment_document(
    records: Sequence[Record], run_ids: Sequence[str], *, kept_in: Path | None, not_kept: str | None
) -> ExperimentDocument:
    """The document of some runs of one experiment's records."""
    started = _last(records, ExperimentStarted)
    ended = _last(records, ExperimentFinished)
    with_baseline = started is not None and list(run_ids[:1]) == list(started.run_ids[:1])
    runs = []
    for run_id in run_ids:
        try:
            runs.append(run_document(records, run_id))
        except ExportError:  # its worker never came up; the experiment's failures say why
            continue
    return ExperimentDocument(
        experiment_id=started.experiment_id if started is not None else None,
        outcome=ended.outcome if ended is not None else "interrupted",
        started_unix_ns=started.started_unix_ns if started is not None else None,
        source=started.experiment.model if started is not None else None,
        baseline_run_id=started.run_ids[0] if started is not None else None,
        kept=KeptDocument(library=str(kept_in) if kept_in is not None else None, reason=not_kept),
        failures=tuple(r for r in records if isinstance(r, Failure) and r.run_id is None),
        notices=tuple(r for r in records if isinstance(r, Notice) and r.run_id is None),
        verdicts=tuple(judge_all(records, [run_id for run_id in run_ids if started and run_id != started.run_ids[0]])),
        losses=tuple(compare_all(records, run_ids)) if with_baseline else (),
        runs=tuple(runs),
    )


def _last(records: Sequence[Record], kind: type[R]) -> R | None:
    return next((record for record in reversed(records) if isinstance(record, kind)), None)
