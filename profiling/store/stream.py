"""Records on their way into the library's file: held in memory until they are written, one transaction per batch."""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from gptscope.profiling.channel import encode_header
from gptscope.profiling.experiment import variant_name
from gptscope.profiling.records import (
    Capabilities,
    ExperimentFinished,
    ExperimentStarted,
    Hello,
    Progress,
    Record,
    RunFinished,
    RunStarted,
)
from gptscope.profiling.store import opening
from gptscope.profiling.store.entries import Headline
from gptscope.profiling.store.headline import headline_of, with_verdicts
from gptscope.profiling.store.refused import is_refused
from gptscope.profiling.store.writers import this_process

_SIGN_OF_LIFE_S = 10.0
_NOT_KEPT = (Hello, Capabilities, Progress)
"""Records that say nothing about a finished run."""


class RecordStream:
    """The records of the current experiment and how many of them are in the file. Used by one thread.

    Attributes:
        lost_traces: Runs whose trace could not be written; its further pieces are left out.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / opening.FILE_NAME
        self._connection: sqlite3.Connection | None = None
        self._file_id: tuple[int, int] | None = None
        self._experiment: ExperimentStarted | None = None
        self._items: list[tuple[str, Record]] = []
        """(experiment id, record), the current experiment's and what an earlier one's could not be written."""
        self._written = 0
        self._open_runs: set[str] = set()
        self._interrupted: dict[str, Headline] = {}
        self._headlines: dict[str, Headline] = {}
        """Not in the file yet."""
        self._last_write = 0.0
        self.lost_traces: set[str] = set()

    def take(self, record: Record) -> None:
        """Hold one record until the next `write`."""
        if isinstance(record, ExperimentStarted):
            self.interrupt_open_runs()  # the engine that ran them died without a word
            self._experiment = record
            self._forget_written()
        if self._experiment is None or isinstance(record, _NOT_KEPT):
            return
        self._items.append((self._experiment.experiment_id, record))
        if isinstance(record, RunStarted):
            self._open_runs.add(record.run_id)
        elif isinstance(record, RunFinished):
            self._open_runs.discard(record.run_id)
        elif isinstance(record, ExperimentFinished):
            self._experiment = None

    def _forget_written(self) -> None:
        """Drop experiments before the current one that are whole in the file, with their headline numbers.

        What is still to be written of an earlier experiment needs all of its records, for these numbers.
        """
        if self._experiment is None:
            return
        needed = {experiment for experiment, _ in self._items[self._written :]} | {self._experiment.experiment_id}
        kept = [item for item in self._items[: self._written] if item[0] in needed]
        self._items[: self._written] = kept
        self._written = len(kept)

    def interrupt_open_runs(self) -> None:
        """No more records will come for runs without an end: the next `write` marks them as interrupted."""
        records = [record for _, record in self._items]
        for run_id in self._open_runs:
            self._interrupted[run_id] = headline_of(records, run_id)
        self._open_runs.clear()

    def is_written(self) -> bool:
        """True when everything that was taken is in the file."""
        return self._written == len(self._items) and not self._interrupted and not self._headlines

    def is_new(self) -> bool:
        """True while nothing of what is held in memory is in the file."""
        return self._written == 0

    def rewind(self) -> None:
        """Write everything that is still in memory again, into what is now the library's file."""
        self._written = 0

    def close(self) -> None:
        """Close the file; the next `write` opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def write(self) -> None:
        """Bring the file up to date in one transaction, then the headline numbers of runs that ended in another.

        A request that was refused leaves the file again: it never ran.

        Raises:
            sqlite3.Error: nothing of this batch is in the file; call again later.
            OSError: likewise.
        """
        now = time.monotonic()
        silent = bool(self._open_runs) and now - self._last_write > _SIGN_OF_LIFE_S
        if self.is_written() and not silent:
            return
        connection = self._connect()
        batch = self._items[self._written :]
        self._transaction(connection, lambda: self._insert(connection, batch))
        self._written, self._last_write = len(self._items), now
        self._headlines |= self._headlines_of(batch) | self._interrupted
        self._interrupted.clear()
        if self._headlines:
            self._transaction(connection, lambda: _update_headlines(connection, self._headlines))
            self._headlines.clear()
        self._forget_written()

    def _connect(self) -> sqlite3.Connection:
        """The open connection; a new one when the file was moved or deleted under us."""
        if self._connection is not None and self._file_id != _file_id(self._path):
            self.close()
            self.rewind()
        if self._connection is None:
            if not self._path.exists():
                opening.open_file(self._folder).connection.close()
            self._connection = opening.connect(self._path)
            self._file_id = _file_id(self._path)
        return self._connection

    def _transaction(self, connection: sqlite3.Connection, action: Callable[[], None]) -> None:
        try:
            connection.execute("BEGIN IMMEDIATE")
            action()
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _insert(self, connection: sqlite3.Connection, batch: list[tuple[str, Record]]) -> None:
        for _, record in batch:
            if isinstance(record, RunStarted):
                self._insert_run(connection, record)
            elif isinstance(record, RunFinished):
                connection.execute(
                    "UPDATE runs SET outcome = ?, finished_unix_ns = ? WHERE run_id = ?",
                    (record.outcome, record.finished_unix_ns, record.run_id),
                )
        connection.executemany(
            "INSERT INTO records (experiment_id, run_id, body) VALUES (?, ?, ?)",
            [(experiment, getattr(record, "run_id", None), encode_header(record)) for experiment, record in batch],
        )
        connection.executemany(
            "UPDATE runs SET written_unix_ns = ? WHERE run_id = ?", [(time.time_ns(), run) for run in self._open_runs]
        )
        connection.executemany(
            "UPDATE runs SET outcome = 'interrupted' WHERE run_id = ?", [(run,) for run in self._interrupted]
        )
        for table in ("records", "runs"):
            connection.executemany(
                f"DELETE FROM {table} WHERE experiment_id = ?",  # noqa: S608 - one of two names
                [(experiment,) for experiment in self._refused(batch)],
            )

    def _insert_run(self, connection: sqlite3.Connection, run: RunStarted) -> None:
        started = next((r for e, r in self._items if e == run.experiment_id and isinstance(r, ExperimentStarted)), None)
        position = started.run_ids.index(run.run_id) if started and run.run_id in started.run_ids else 0
        writer = this_process()
        connection.execute(
            "INSERT OR IGNORE INTO runs (run_id, experiment_id, position, name, model, workload, variant, command,"
            " created_unix_ns, outcome, writer_host, writer_pid, writer_started, written_unix_ns)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'running', ?, ?, ?, ?)",
            (
                run.run_id,
                run.experiment_id,
                position,
                run.name or variant_name(run.variant),
                run.model,
                msgspec.json.encode(run.workload).decode(),
                msgspec.json.encode(run.variant).decode(),
                run.command,
                run.started_unix_ns,
                writer.host,
                writer.pid,
                writer.started,
                time.time_ns(),
            ),
        )

    def _refused(self, batch: list[tuple[str, Record]]) -> list[str]:
        """Experiments that ended in this batch without having run."""
        ended = [experiment for experiment, record in batch if isinstance(record, ExperimentFinished)]
        return [one for one in ended if is_refused(record for experiment, record in self._items if experiment == one)]

    def _headlines_of(self, batch: list[tuple[str, Record]]) -> dict[str, Headline]:
        """Headline numbers of the runs that ended in this batch; with verdicts once the experiment has ended."""
        headlines: dict[str, Headline] = {}
        for experiment_id in dict.fromkeys(experiment for experiment, _ in batch):
            records = [record for experiment, record in self._items if experiment == experiment_id]
            news = [record for experiment, record in batch if experiment == experiment_id]
            ended = [record.run_id for record in news if isinstance(record, RunFinished)]
            headlines |= {run_id: headline_of(records, run_id) for run_id in ended}
            if any(isinstance(record, ExperimentFinished) for record in news):
                started = next((record for record in records if isinstance(record, ExperimentStarted)), None)
                headlines |= with_verdicts(records, started.run_ids) if started is not None else {}
        return headlines


def _update_headlines(connection: sqlite3.Connection, headlines: dict[str, Headline]) -> None:
    connection.executemany(
        "UPDATE runs SET headline = ? WHERE run_id = ?",
        [(msgspec.json.encode(headline).decode(), run_id) for run_id, headline in headlines.items()],
    )


def _file_id(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return (stat.st_dev, stat.st_ino)
