"""Libraries in every bad state: each is told in a sentence and nothing is lost."""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from gptscope.profiling.records import Record
from gptscope.profiling.store import opening
from gptscope.profiling.store.entries import LibraryError, NewerLibraryError
from gptscope.profiling.store.library import Library
from gptscope.profiling.store.recorder import Recorder
from gptscope.profiling.store.schema import APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION


def keep(folder: Path, records: list[Record]) -> Recorder:
    recorder = Recorder(folder)
    for record in records:
        recorder.add(record)
    return recorder


def make_old(folder: Path, version: int) -> Path:
    """A library as an older gptscope left it: the first `version` steps applied, with one run in it."""
    folder.mkdir(parents=True)
    path = folder / opening.FILE_NAME
    connection = sqlite3.connect(path, isolation_level=None)
    for step in MIGRATIONS[:version]:
        for statement in step:
            connection.execute(statement)
    if version:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(
            "INSERT INTO runs (run_id, experiment_id, position, name, model, workload, variant, command,"
            " created_unix_ns, outcome, writer_host, writer_pid, writer_started, written_unix_ns) VALUES"
            " ('r', 'e', 0, 'old', 'bundled', '{}', '{}', 'gptscope run', 5, 'done', 'h', 1, 1.0, 5)"
        )
        connection.execute(
            "INSERT INTO records (experiment_id, run_id, body) VALUES ('e', 'r', ?)",
            (b'{"type":"notice","message":"from an old version"}',),
        )
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    return path


def test_a_missing_folder_is_made(folder: Path) -> None:
    with Library(folder) as library:
        assert library.list_runs() == ()
        assert library.notices == ()
    assert (folder / opening.FILE_NAME).exists()


def test_the_default_folder_is_the_users_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with Library() as library:
        assert library.folder == opening.default_folder()
        assert library.folder.name == "gptscope"


@pytest.mark.parametrize("version", range(SCHEMA_VERSION))
def test_an_older_library_is_brought_up_to_date_with_its_runs(folder: Path, stream, version: int) -> None:
    make_old(folder, version)
    with Library(folder) as library:
        (found,) = library._query("PRAGMA user_version")
        assert found[0] == SCHEMA_VERSION
        if version:
            assert library.find("r").tags == ()
            assert library.find("r").name == "old"
            (record,) = library.open("r")
            assert record.message == "from an old version"  # type: ignore[union-attr]
            assert library.set_tags("r", ["kept"]).tags == ("kept",)
        assert keep(folder, stream()).close()
        assert len(library.list_runs()) == 2 + bool(version)


def test_a_failed_migration_leaves_the_old_library_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_old(folder, 1)
    broken = (*MIGRATIONS, ("CREATE TABLE later (x)", "no SQL at all"))
    monkeypatch.setattr("gptscope.profiling.store.schema.MIGRATIONS", broken)
    monkeypatch.setattr("gptscope.profiling.store.schema.SCHEMA_VERSION", len(broken))
    with pytest.raises(LibraryError, match="cannot be used"):
        Library(folder)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'later'").fetchone() == (0,)
    connection.close()


def test_a_newer_library_is_refused_and_not_touched(folder: Path) -> None:
    path = make_old(folder, SCHEMA_VERSION)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(NewerLibraryError, match=f"newer gptscope \\(format {SCHEMA_VERSION + 1}"):
        Library(folder)
    assert path.read_bytes() == before
    assert [p.name for p in folder.iterdir()] == [opening.FILE_NAME]


@pytest.mark.parametrize("application", [0, 1234])
def test_another_programs_database_is_refused_and_not_touched(folder: Path, application: int) -> None:
    folder.mkdir(parents=True)
    path = folder / opening.FILE_NAME
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {application}")
    connection.execute("CREATE TABLE mail (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(LibraryError, match="another program's database"):
        Library(folder)
    assert path.read_bytes() == before


def _scribble_over_pages(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)


DAMAGE = {
    "not SQLite at all": lambda path: path.write_bytes(b"hello, this is no library" * 100),
    "pages overwritten": _scribble_over_pages,
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:5000]),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_library_is_kept_aside_and_a_new_one_begun(folder: Path, stream, damage) -> None:
    with Library(folder):
        keep(folder, stream()).close()
    path = folder / opening.FILE_NAME
    damage(path)
    broken = path.read_bytes()
    with Library(folder) as library:
        (notice,) = library.notices
        assert "damaged" in notice
        assert "a new one was begun" in notice
        (aside,) = folder.glob("library.damaged-*.sqlite3")
        assert str(aside) in notice
        assert aside.read_bytes() == broken
        assert library.list_runs() == ()
        assert keep(folder, stream("e2")).close()
        assert len(library.list_runs()) == 2
    with Library(folder) as library:
        assert library.notices == ()


def test_two_damaged_libraries_on_one_day_are_both_kept(folder: Path) -> None:
    for number in range(3):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / opening.FILE_NAME).write_bytes(f"damaged {number} ".encode() * 20)
        Library(folder).close()
    assert len({p.read_bytes() for p in folder.glob("library.damaged-*.sqlite3")}) == 3


def test_an_empty_file_is_a_new_library(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / opening.FILE_NAME).touch()
    with Library(folder) as library:
        assert library.notices == ()


@pytest.mark.parametrize("tail", ["", "deeper/still"])
def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path, tail: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(LibraryError, match=r"file is a file, not a folder.*--library"):
        Library(tmp_path / "file" / tail)
    assert (tmp_path / "file").read_text() == "mine"


READ_ONLY_SCRIPT = """
import os, sys
from pathlib import Path
from gptscope.profiling.store.library import Library
from gptscope.profiling.store.entries import LibraryError
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    library = Library(Path(sys.argv[1]))
except LibraryError as error:
    print("refused:", error)
    sys.exit()
print(library.read_only_reason)
print(len(library.list_runs()), len(list(library.open("e1-a"))))
try:
    library.delete("e1-a")
except LibraryError as error:
    print(error)
"""


def as_other_user(folder: Path) -> list[str]:
    """Run the script as somebody who may not write there."""
    result = subprocess.run(
        [sys.executable, "-P", "-c", READ_ONLY_SCRIPT, str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.splitlines()


@pytest.fixture
def open_folder(tmp_path: Path):
    """A folder below `tmp_path` that other users can reach, writable again afterwards."""
    for path in (tmp_path, *tmp_path.parents):
        if path.name.startswith(("pytest-", "test_")):
            path.chmod(0o755)
    folder = tmp_path / "shared"
    yield folder
    folder.chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")
@pytest.mark.parametrize("with_open_writer", [False, True])
def test_a_read_only_library_shows_its_runs_and_says_that_nothing_was_changed(
    open_folder: Path, stream, with_open_writer: bool
) -> None:
    library = Library(open_folder)
    keep(open_folder, stream()).close()
    if not with_open_writer:
        library.close()
    for path in open_folder.rglob("*"):
        path.chmod(0o444)
    open_folder.chmod(0o555)
    reason, counts, error = as_other_user(open_folder)
    library.close()
    assert reason == f"The library {open_folder / opening.FILE_NAME} is read-only"
    assert counts == f"2 {len([r for r in stream() if getattr(r, 'run_id', 'e1-a') == 'e1-a'])}"
    assert error == f"{reason}: nothing was changed."


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")
def test_a_read_only_folder_without_a_library_is_refused(open_folder: Path) -> None:
    open_folder.mkdir()
    open_folder.chmod(0o555)
    (line,) = as_other_user(open_folder)
    assert line.startswith("refused: There is no library in")
    assert "--library" in line


def test_records_wait_in_memory_while_the_disk_is_full(folder: Path, stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gptscope.profiling.store.recorder.RETRY_S", 0.0)
    connect = opening.connect
    full = [True]

    def connect_to_a_small_disk(path: Path, **options: str) -> sqlite3.Connection:
        connection = connect(path, **options)
        if full[0]:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    with Library(folder) as library:
        monkeypatch.setattr(opening, "connect", connect_to_a_small_disk)
        told: list[str] = []
        recorder = Recorder(folder, told.append)
        for record in stream(slices=300):
            recorder.add(record)
        recorder.flush(20)
        (sentence,) = told
        assert sentence.startswith("There is no space left on the disk of the library")
        assert sentence.endswith("Free some space. The run goes on; its records wait in memory.")
        assert library.list_runs() == ()
        full[0] = False
        recorder._stream.close()
        assert recorder.close()
        assert list(library.open_experiment("e1")) == stream(slices=300)


def test_a_disk_that_stays_full_is_told_at_the_end(folder: Path, stream, monkeypatch: pytest.MonkeyPatch) -> None:
    with Library(folder):
        connect = opening.connect

        def connect_to_a_full_disk(path: Path, **options: str) -> sqlite3.Connection:
            connection = connect(path, **options)
            connection.execute("PRAGMA max_page_count = 1")
            return connection

        monkeypatch.setattr(opening, "connect", connect_to_a_full_disk)
        recorder = keep(folder, stream(slices=300))
        assert not recorder.close()
        assert recorder.problems[-1] == f"None of this run's records were kept in the library {folder}."


def test_a_library_that_breaks_during_a_run_is_replaced_and_the_run_is_kept_whole(folder: Path, stream) -> None:
    told: list[str] = []
    with Library(folder):
        pass
    recorder = Recorder(folder, told.append)
    first, rest = stream()[:6], stream()[6:]
    for record in first:
        recorder.add(record)
    recorder.flush(20)
    recorder._stream.close()  # so that the next batch reads the file, not pages in memory
    path = folder / opening.FILE_NAME
    path.write_bytes(b"scribbled over " * 1000)
    for record in rest:
        recorder.add(record)
    assert recorder.close()
    assert len(told) == 1
    assert "a new one was begun" in told[0]
    with Library(folder) as library:
        assert list(library.open_experiment("e1")) == stream()


def test_a_library_deleted_during_a_run_is_made_again_with_the_whole_run(folder: Path, stream) -> None:
    Library(folder).close()
    recorder = Recorder(folder)
    first, rest = stream()[:6], stream()[6:]
    for record in first:
        recorder.add(record)
    recorder.flush(20)
    shutil.rmtree(folder)
    for record in rest:
        recorder.add(record)
    assert recorder.close()
    with Library(folder) as library:
        assert list(library.open_experiment("e1")) == stream()
