"""Tables of the run library, as a literal list of steps from nothing to the newest form.

`PRAGMA user_version` counts the steps that were applied. A new form is a new step at the end; steps that were released
are never edited. A library with more steps than this list was made by a newer gptscope and is left alone.
"""

import sqlite3

APPLICATION_ID = 0x47505453
"""`GPTS`, in the file's header, so that another program's SQLite file is never taken for a library."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (  # 1: runs and their streams of records
        """CREATE TABLE runs (
            run_id TEXT PRIMARY KEY,
            experiment_id TEXT NOT NULL,
            position INTEGER NOT NULL,
            name TEXT NOT NULL,
            model TEXT NOT NULL,
            workload TEXT NOT NULL,
            variant TEXT NOT NULL,
            command TEXT NOT NULL,
            created_unix_ns INTEGER NOT NULL,
            finished_unix_ns INTEGER,
            outcome TEXT NOT NULL,
            headline TEXT NOT NULL DEFAULT '{}',
            writer_host TEXT NOT NULL,
            writer_pid INTEGER NOT NULL,
            writer_started REAL NOT NULL,
            written_unix_ns INTEGER NOT NULL
        ) WITHOUT ROWID""",
        "CREATE INDEX runs_by_experiment ON runs (experiment_id, position)",
        "CREATE INDEX runs_by_time ON runs (created_unix_ns)",
        """CREATE TABLE records (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            experiment_id TEXT NOT NULL,
            run_id TEXT,
            body BLOB NOT NULL
        )""",
        "CREATE INDEX records_by_experiment ON records (experiment_id, id)",
    ),
    (  # 2: what people add to a run, and deleting with a way back
        "ALTER TABLE runs ADD COLUMN tags TEXT NOT NULL DEFAULT '[]'",
        "ALTER TABLE runs ADD COLUMN notes TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE runs ADD COLUMN deleted_unix_ns INTEGER",
    ),
)

SCHEMA_VERSION = len(MIGRATIONS)


def version_of(connection: sqlite3.Connection) -> int:
    """Number of steps that the open library has had."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def migrate(connection: sqlite3.Connection) -> None:
    """Apply the steps that are missing, all or none. Safe when several processes do it at once."""
    if version_of(connection) >= SCHEMA_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in MIGRATIONS[version_of(connection) :]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
