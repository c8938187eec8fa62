"""The library of runs: an SQLite file and a folder of traces. Reading, searching, tagging, deleting with a way back.

A run is kept as the stream of its records; `open` replays them through the same code as a live run.
"""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from gptscope.profiling.channel import ChannelError, decode_record
from gptscope.profiling.experiment import Variant, Workload
from gptscope.profiling.records import CommandDone, ForcedGaps, GreedyTokens, Logits, Notice, Record
from gptscope.profiling.store import opening, trace_files
from gptscope.profiling.store.entries import Headline, LibraryError, Outcome, RunEntry
from gptscope.profiling.store.headline import headline_of
from gptscope.profiling.store.writers import Writer, is_alive

PURGE_AFTER_DAYS = 30
"""Deleted runs can be brought back for this long; then the library forgets them when it is next opened."""

_BATCH = 256
_NS_PER_DAY = 86_400 * 10**9


class Library:
    """One open library. Methods may be called from any thread, and several processes may use one library at once.

    Attributes:
        folder: Where the library and its traces are.
        notices: What happened while opening that a person should know, e.g. that a damaged file was set aside.
        read_only_reason: Why nothing can be written, a sentence without its full stop; None when it can.
    """

    def __init__(self, folder: Path | None = None, *, repair: bool = True) -> None:
        """Open the library in `folder` (default: the user's data folder), making it when there is none.

        With `repair` a damaged file is set aside and a new one begun; without, it is an error.

        Raises:
            LibraryError: it cannot be used; the message says why and what to do.
        """
        self.folder = folder or opening.default_folder()
        opened = opening.open_file(self.folder, repair=repair)
        self._connection = opened.connection
        self._lock = threading.RLock()
        self.read_only_reason = opened.read_only_reason
        self.notices = opened.notices
        if self.read_only_reason is None:
            self._settle_interrupted()
            self._purge_old()

    @property
    def path(self) -> Path:
        """The SQLite file."""
        return self.folder / opening.FILE_NAME

    def close(self) -> None:
        """Close the file; the library cannot be used afterwards."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -------------------------------------------------------------------------------------------------- reading

    def list_runs(self, search: str = "", *, tag: str | None = None, deleted: bool = False) -> tuple[RunEntry, ...]:
        """Runs, newest experiment first, an experiment's variants in their order.

        Args:
            search: Words that all must occur in name, model, workload, levers, verdict, tags, notes, id or outcome.
            tag: Only runs with this tag.
            deleted: The deleted runs instead of the others.
        """
        rows = self._query("SELECT * FROM runs WHERE (deleted_unix_ns IS NOT NULL) = ?", deleted)
        entries = [self._entry(row) for row in rows]
        words = search.casefold().split()
        newest: dict[str, int] = {}
        for entry in entries:
            newest[entry.experiment_id] = max(newest.get(entry.experiment_id, 0), entry.created_unix_ns)
        found = [
            entry
            for entry in entries
            if (tag is None or tag in entry.tags) and all(word in _searched_text(entry) for word in words)
        ]
        return tuple(sorted(found, key=lambda e: (-newest[e.experiment_id], e.experiment_id, e.position)))

    def find(self, run_id: str) -> RunEntry:
        """The run with this id, or whose id begins so; `last` is the newest run that is not deleted.

        Raises:
            LibraryError: no run, or several, begin so.
        """
        if run_id == "last":
            entries = self.list_runs()
            if not entries:
                raise LibraryError(f"The library {self.path} holds no run yet. `gptscope demo` makes some.")
            return max(entries, key=lambda entry: (entry.created_unix_ns, entry.position))
        pattern = run_id.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        rows = self._query("SELECT * FROM runs WHERE run_id = ? OR run_id LIKE ? ESCAPE '\\'", run_id, pattern)
        exact = [row for row in rows if row["run_id"] == run_id]
        if len(exact or rows) > 1:
            some = ", ".join(sorted(row["run_id"] for row in rows)[:4])
            raise LibraryError(f"{len(rows)} runs begin with {run_id!r} ({some}). Give more of the id.")
        if not rows or not run_id:
            raise LibraryError(f"No run {run_id!r} in {self.path}. `gptscope history list` shows what is there.")
        return self._entry((exact or rows)[0])

    def open(self, run_id: str) -> Iterator[Record]:
        """The run's records in the order they came, with those of its experiment that belong to no single run."""
        entry = self.find(run_id)
        return self._records(entry.experiment_id, entry.run_id)

    def open_experiment(self, experiment_id: str) -> Iterator[Record]:
        """All records of all runs of an experiment in the order they came."""
        return self._records(experiment_id, None)

    def _records(self, experiment_id: str, run_id: str | None) -> Iterator[Record]:
        after, unreadable = 0, 0
        while True:
            rows = self._query(
                "SELECT id, body FROM records WHERE experiment_id = ?1 AND id > ?2"
                " AND (?3 IS NULL OR run_id IS NULL OR run_id = ?3) ORDER BY id LIMIT ?4",
                experiment_id,
                after,
                run_id,
                _BATCH,
            )
            for row in rows:
                try:
                    record = decode_record(row["body"])
                except ChannelError:
                    unreadable += 1
                    continue
                assert not isinstance(record, CommandDone | Logits | GreedyTokens | ForcedGaps), "never stored"
                yield record
            if len(rows) < _BATCH:
                break
            after = rows[-1]["id"]
        if unreadable:
            some = f"{unreadable} records" if unreadable > 1 else "1 record"
            message = f"{some} of this run cannot be read (from a newer gptscope, or damaged)."
            yield Notice(message=message, level="warning")

    # -------------------------------------------------------------------------------------------------- changing

    def delete(self, run_id: str) -> RunEntry:
        """Hide a run; `undelete` brings it back until it is purged."""
        entry = self.find(run_id)
        self._change("UPDATE runs SET deleted_unix_ns = ? WHERE run_id = ?", time.time_ns(), entry.run_id)
        return self.find(entry.run_id)

    def undelete(self, run_id: str) -> RunEntry:
        """Bring a deleted run back."""
        entry = self.find(run_id)
        self._change("UPDATE runs SET deleted_unix_ns = NULL WHERE run_id = ?", entry.run_id)
        return self.find(entry.run_id)

    def set_tags(self, run_id: str, tags: Sequence[str]) -> RunEntry:
        """Replace the run's tags; doubles and blanks fall away."""
        entry = self.find(run_id)
        kept = tuple(dict.fromkeys(tag.strip() for tag in tags if tag.strip()))
        self._change("UPDATE runs SET tags = ? WHERE run_id = ?", msgspec.json.encode(kept).decode(), entry.run_id)
        return self.find(entry.run_id)

    def set_notes(self, run_id: str, notes: str) -> RunEntry:
        """Replace the run's notes."""
        entry = self.find(run_id)
        self._change("UPDATE runs SET notes = ? WHERE run_id = ?", notes, entry.run_id)
        return self.find(entry.run_id)

    def purge(self, run_ids: Iterable[str]) -> int:
        """Remove deleted runs for good: their records and traces. Returns how many were removed.

        Raises:
            LibraryError: one of them is not deleted, or the library is read-only.
        """
        entries = [self.find(run_id) for run_id in run_ids]
        for entry in entries:
            if entry.deleted_unix_ns is None:
                raise LibraryError(f"Run {entry.run_id} is not deleted; only deleted runs can be removed for good.")
        for entry in entries:
            with self._transaction() as connection:
                connection.execute("DELETE FROM runs WHERE run_id = ?", (entry.run_id,))
                connection.execute("DELETE FROM records WHERE run_id = ?", (entry.run_id,))
                connection.execute(
                    "DELETE FROM records WHERE experiment_id = ?1"
                    " AND NOT EXISTS (SELECT 1 FROM runs WHERE experiment_id = ?1)",
                    (entry.experiment_id,),
                )
            trace_files.remove(self.folder, entry.run_id)
        return len(entries)

    def _settle_interrupted(self) -> None:
        """Write down which runs were cut short, with the numbers of what they had measured."""
        for row in self._query("SELECT * FROM runs WHERE outcome = 'running'"):
            if _outcome(row) == "interrupted":
                headline = headline_of(self.open(row["run_id"]), row["run_id"])
                self._change(
                    "UPDATE runs SET outcome = 'interrupted', headline = ? WHERE run_id = ? AND outcome = 'running'",
                    msgspec.json.encode(headline).decode(),
                    row["run_id"],
                )

    def _purge_old(self) -> None:
        limit = time.time_ns() - PURGE_AFTER_DAYS * _NS_PER_DAY
        rows = self._query("SELECT run_id FROM runs WHERE deleted_unix_ns < ?", limit)
        self.purge([row["run_id"] for row in rows])

    # ------------------------------------------------------------------------------------------------ the file

    def _query(self, sql: str, *values: object) -> list[sqlite3.Row]:
        with self._lock:
            try:
                cursor = self._connection.cursor()
                cursor.row_factory = sqlite3.Row
                return cursor.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise LibraryError(opening.describe(error, self.path)) from error

    def _change(self, sql: str, *values: object) -> None:
        with self._transaction() as connection:
            connection.execute(sql, values)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        if self.read_only_reason is not None:
            raise LibraryError(f"{self.read_only_reason}: nothing was changed.")
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise LibraryError(opening.describe(error, self.path)) from error
                raise

    def _entry(self, row: sqlite3.Row) -> RunEntry:
        trace = trace_files.trace_path(self.folder, row["run_id"])
        return RunEntry(
            run_id=row["run_id"],
            experiment_id=row["experiment_id"],
            position=row["position"],
            name=row["name"],
            model=row["model"],
            workload=msgspec.json.decode(row["workload"], type=Workload),
            variant=msgspec.json.decode(row["variant"], type=Variant),
            command=row["command"],
            created_unix_ns=row["created_unix_ns"],
            finished_unix_ns=row["finished_unix_ns"],
            outcome=_outcome(row),
            headline=msgspec.json.decode(row["headline"], type=Headline),
            tags=msgspec.json.decode(row["tags"], type=tuple[str, ...]),
            notes=row["notes"],
            deleted_unix_ns=row["deleted_unix_ns"],
            trace=trace if trace.exists() else None,
        )


def _outcome(row: sqlite3.Row) -> Outcome:
    outcome: Outcome = row["outcome"]
    writer = Writer(host=row["writer_host"], pid=row["writer_pid"], started=row["writer_started"])
    if outcome == "running" and not is_alive(writer, row["written_unix_ns"]):
        return "interrupted"
    return outcome


def _searched_text(entry: RunEntry) -> str:
    workload, variant = entry.workload, entry.variant
    levers = (variant.precision, *variant.fusions, variant.kv_cache)
    parts = (entry.run_id, entry.name, entry.model, workload.kind, *levers, entry.outcome, *entry.tags, entry.notes)
    return " ".join((*parts, entry.headline.verdict)).casefold()
