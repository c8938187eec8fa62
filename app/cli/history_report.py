"""Prints kept runs."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from gptscope.app.cli.console import Cell, Column, Console, Style
from gptscope.app.cli.run_report import print_run
from gptscope.app.viewmodels import formatting as f
from gptscope.profiling.records import ExperimentStarted, Record, RunStarted
from gptscope.profiling.store.entries import RunEntry
from gptscope.profiling.store.library import Library

_LEAST_ID = 8
_OUTCOME_STYLES: dict[str, Style] = {"done": "", "failed": "bad", "interrupted": "warn", "cancelled": "warn"}


def print_list(
    console: Console, entries: Sequence[RunEntry], library: Library, *, searched: bool, deleted: bool
) -> None:
    """One line per run, newest experiment first."""
    if not entries:
        what = "deleted run" if deleted else "run"
        where = f"No {what} matches in {library.path}." if searched else f"No {what} in {library.path} yet."
        console.line(where if searched or deleted else f"{where} `gptscope demo` makes some.")
        return
    columns = (
        Column("run", "left"),
        Column("when", "left"),
        Column("model", "left", name=True),
        Column("workload", "left"),
        Column("variant", "left", name=True),
        Column("tok/s"),
        Column("ratio"),
        Column("verdict", "left"),
        Column("tags", "left"),
    )
    names = short_ids([entry.run_id for entry in entries])
    sizes = Counter(entry.experiment_id for entry in entries)
    rows = [_row(entry, names[entry.run_id], alone=sizes[entry.experiment_id] == 1) for entry in entries]
    console.table(columns, rows)


def short_ids(run_ids: Sequence[str]) -> dict[str, str]:
    """The shortest beginnings, of one length, that tell these runs apart and are long enough to stay so."""
    for length in range(_LEAST_ID, max(map(len, run_ids), default=0)):
        if len({run_id[:length] for run_id in run_ids}) == len(run_ids):
            return {run_id: run_id[:length] for run_id in run_ids}
    return {run_id: run_id for run_id in run_ids}


def _row(entry: RunEntry, name: str, *, alone: bool) -> tuple[str | Cell, ...]:
    headline = entry.headline
    verdict = headline.verdict or ("baseline" if entry.position == 0 and not alone else "")
    unfinished = entry.outcome != "done"
    return (
        name,
        f.when(entry.created_unix_ns),
        entry.model,
        entry.workload.kind,
        entry.name,
        f.number(headline.tokens_per_second),
        "" if headline.speedup is None else f.ratio(headline.speedup),
        Cell(entry.outcome if unfinished else verdict, _OUTCOME_STYLES.get(entry.outcome, "")),
        ", ".join(entry.tags),
    )


def print_entry(console: Console, entry: RunEntry, records: Sequence[Record]) -> None:
    """One kept run: how it stands, then what `run` printed."""
    state = "deleted, " if entry.deleted_unix_ns is not None else ""
    console.line(f"Run       {entry.run_id}, {f.when(entry.created_unix_ns)}, {state}{entry.outcome}")
    if entry.tags:
        console.line(f"Tags      {', '.join(entry.tags)}")
    if entry.notes:
        console.line(f"Notes     {entry.notes}")
    print_run(console, records, entry.run_id)
    console.line()
    console.line(f"Trace     {entry.trace if entry.trace is not None else 'n/a: none arrived whole'}")
    console.line(f"Repeat    {entry.command}")


def experiment_runs(records: Sequence[Record]) -> tuple[str, ...]:
    """The runs of an experiment that are in its records (purged ones are not), baseline first."""
    started = next((record for record in records if isinstance(record, ExperimentStarted)), None)
    there = {record.run_id for record in records if isinstance(record, RunStarted)}
    return tuple(run_id for run_id in started.run_ids if run_id in there) if started is not None else ()


def list_document(entries: Sequence[RunEntry]) -> list[dict[str, Any]]:
    """The same for programs."""
    documents = []
    for entry in entries:
        fields: dict[str, Any] = msgspec.to_builtins(entry, builtin_types=(), enc_hook=str)
        documents.append(fields)
    return documents
