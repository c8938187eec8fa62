"""Open the library file whatever state it is in: new, old, newer, foreign, damaged, read-only."""

import contextlib
import datetime as dt
import os
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from gptscope.profiling.store.entries import LibraryError, NewerLibraryError
from gptscope.profiling.store.schema import APPLICATION_ID, SCHEMA_VERSION, migrate, version_of

FILE_NAME = "library.sqlite3"
BUSY_TIMEOUT_S = 15.0
_RETRY_S = 0.01
CHECKED_BYTES = 32_000_000
"""A library up to this size is checked whole when it is opened (about 5 ms per 10 MB); a larger one as it is read."""

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100


@dataclass(frozen=True)
class OpenedFile:
    """An open library file and what a person should know about how it was opened."""

    connection: sqlite3.Connection
    read_only_reason: str | None
    notices: tuple[str, ...] = ()


def default_folder() -> Path:
    """The library's folder when none is given: the user's data folder for gptscope."""
    return platformdirs.user_data_path("gptscope", appauthor=False)


def open_file(folder: Path, *, repair: bool = True) -> OpenedFile:
    """Open the library in `folder`, making, migrating or replacing it as needed.

    A damaged file is renamed, never deleted. A file from a newer gptscope or another program is not touched.

    Args:
        folder: Where it is.
        repair: False: say that it is damaged instead of setting it aside.

    Raises:
        LibraryError: it cannot be used; the message says why and what to do.
    """
    make_folder(folder)
    path = folder / FILE_NAME
    try:
        if not _is_damaged_at_first_sight(path):
            return _open_and_check(path, ())
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise LibraryError(describe(error, path)) from error
    if not repair:
        raise LibraryError(f"The library {path} is damaged; the next run sets it aside and begins a new one.")
    notice = set_aside(path)
    try:
        return _open_and_check(path, (notice,))
    except sqlite3.DatabaseError as error:
        raise LibraryError(describe(error, path)) from error


def make_folder(folder: Path) -> None:
    """Make the library's folder, or say why it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise LibraryError(
            f"The library folder {folder} cannot be used: {_blocking_file(folder)} is a file, not a folder. "
            "Give another folder with --library."
        ) from error
    except OSError as error:
        raise LibraryError(
            f"The library folder {folder} cannot be made: {error.strerror}. Give another folder with --library."
        ) from error


def why_not_writable(folder: Path) -> str | None:
    """Why a library could not be made in `folder`, without making anything; None when it could."""
    there = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if not there.is_dir():
        return f"{there} is a file, not a folder"
    return None if os.access(there, os.W_OK | os.X_OK) else f"the folder {there} is not writable"


def _blocking_file(folder: Path) -> Path:
    return next((path for path in (folder, *folder.parents) if path.exists() and not path.is_dir()), folder)


def connect(path: Path, *, mode: str = "rwc") -> sqlite3.Connection:
    """A connection in autocommit mode that waits for other writers and may be used by several threads in turn."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode if '=' in mode else 'mode=' + mode}",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA synchronous = NORMAL")  # with WAL: what is committed outlives the process
    return connection


def _open_and_check(path: Path, notices: tuple[str, ...]) -> OpenedFile:
    _refuse_by_header(path)
    try:
        connection, reason = connect(path), None
        try:
            _prove_writable(connection)
        except sqlite3.OperationalError as error:
            connection.close()
            if not is_read_only(error):
                raise
            connection, reason = _connect_read_only(path)
    except sqlite3.OperationalError as error:
        if not is_read_only(error):
            raise
        connection, reason = _connect_read_only(path)
    try:
        _refuse_by_content(connection, path)
        _check_pages(connection, path)
        if reason is None:
            _switch_to_wal(connection)
            migrate(connection)
        else:
            _refuse_old(connection, path)
    except BaseException:
        connection.close()
        raise
    return OpenedFile(connection=connection, read_only_reason=reason, notices=notices)


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Wait while another program writes: SQLite itself does not wait here, whatever the connection's timeout is."""
    until = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_held(error) or time.monotonic() > until:
                raise
            time.sleep(_RETRY_S)
        else:
            return


def _refuse_old(connection: sqlite3.Connection, path: Path) -> None:
    if version_of(connection) < SCHEMA_VERSION:
        raise LibraryError(
            f"The library {path} has an older format and cannot be brought up to date because it is read-only. "
            "Make it writable, or give another folder with --library."
        )


def _prove_writable(connection: sqlite3.Connection) -> None:
    """Raise what SQLite says about writing; `BEGIN IMMEDIATE` alone says nothing about a read-only file."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(f"PRAGMA user_version = {version_of(connection)}")
    finally:
        connection.execute("ROLLBACK")


def _connect_read_only(path: Path) -> tuple[sqlite3.Connection, str]:
    """Open without writing a byte; `immutable` where even the shared-memory file beside it cannot be made."""
    if not path.exists():
        raise LibraryError(
            f"There is no library in {path.parent} and none can be made there: the folder is read-only. "
            "Give another folder with --library."
        )
    reason = f"The library {path} is read-only"
    try:
        connection = connect(path, mode="ro")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection = connect(path, mode="immutable=1&mode=ro")
    return connection, reason


def _is_damaged_at_first_sight(path: Path) -> bool:
    """True for a file that has content but does not begin like an SQLite file."""
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise LibraryError(f"The library {path} cannot be read: {error.strerror}.") from error
    return bool(head) and head != _MAGIC


def _refuse_by_header(path: Path) -> None:
    """Refuse a newer or foreign file from its bytes alone, before SQLite opens (and perhaps tidies) it."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
        if len(header) == _HEADER_BYTES:
            version, application = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
            _refuse(path, version, application)


def _refuse_by_content(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN")  # one moment: another process may be making the tables right now
    try:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        version = version_of(connection)
    finally:
        connection.execute("ROLLBACK")
    if tables and application == 0:
        application = -1  # a file with tables that nobody signed
    _refuse(path, version, application)


def _refuse(path: Path, version: int, application: int) -> None:
    if application not in (0, APPLICATION_ID):
        raise LibraryError(
            f"{path} is another program's database; it was not touched. Give another folder with --library."
        )
    if version > SCHEMA_VERSION:
        raise NewerLibraryError(
            f"The library {path} was made by a newer gptscope (format {version}, this one knows {SCHEMA_VERSION}); "
            "it was not touched. Update gptscope, or give another folder with --library."
        )


def _check_pages(connection: sqlite3.Connection, path: Path) -> None:
    if path.stat().st_size <= CHECKED_BYTES:
        (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if answer != "ok":
            raise sqlite3.DatabaseError(f"database disk image is malformed: {answer}")


def set_aside(path: Path) -> str:
    """Rename a damaged library (and its journal) with today's date; returns the sentence that says so."""
    stamp = dt.datetime.now(tz=dt.UTC).strftime("%Y-%m-%dT%H%M%S")
    kept = path.with_name(f"{path.stem}.damaged-{stamp}{path.suffix}")
    number = 1
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.stem}.damaged-{stamp}-{number}{path.suffix}")
    try:
        path.replace(kept)
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + suffix).replace(kept.with_name(kept.name + suffix))
    except OSError as error:
        raise LibraryError(
            f"The library {path} is damaged and cannot be set aside: {error.strerror}. "
            "Move it away, or give another folder with --library."
        ) from error
    return f"The library was damaged. It is kept as {kept}, and a new one was begun."


def is_damage(error: sqlite3.Error) -> bool:
    """True when SQLite says that the file itself is broken."""
    name = getattr(error, "sqlite_errorname", None) or ""
    return name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or "malformed" in str(error)


def is_held(error: sqlite3.Error) -> bool:
    """True when another program is writing."""
    return (getattr(error, "sqlite_errorname", None) or "").startswith("SQLITE_BUSY")


def is_read_only(error: sqlite3.Error) -> bool:
    """True when the file or its folder may not be written."""
    name = getattr(error, "sqlite_errorname", None) or ""
    return name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"))


def describe(error: sqlite3.Error, path: Path) -> str:
    """One sentence for a person from an SQLite error."""
    name = getattr(error, "sqlite_errorname", None) or ""
    if name.startswith("SQLITE_FULL"):
        return f"There is no space left on the disk of the library {path}. Free some space."
    if is_held(error):
        return f"The library {path} is held by another program. Close it, or give another folder with --library."
    if is_read_only(error):
        return f"The library {path} is read-only"
    if is_damage(error):
        return f"A part of the library {path} is damaged ({error})."
    return f"The library {path} cannot be used: {error}."
