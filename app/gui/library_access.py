"""The library of runs as the window uses it: opens late, never blocks for long, turns errors into sentences."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from gptscope.profiling.records import Record
from gptscope.profiling.store.entries import LibraryError, RunEntry
from gptscope.profiling.store.library import Library
from gptscope.profiling.store.recorder import Recorder

_T = TypeVar("_T")


class LibraryAccess(QObject):
    """One open library with its recorder; without a usable library runs still work, they are only not kept."""

    changed = Signal()
    problem = Signal(str)

    def __init__(self, folder: Path | None) -> None:
        super().__init__()
        self._wanted = folder
        self._opened: tuple[int, int] | None = None
        self._library: Library | None = None
        self._recorder: Recorder | None = None
        self.failure = ""
        self._open()

    def _open(self) -> None:
        self.failure = ""
        try:
            self._library = Library(self._wanted)
        except LibraryError as error:
            self.failure = str(error)
            return
        self._opened = _identity(self._library.path)
        if self._library.read_only_reason is None:
            self._recorder = Recorder(self._library.folder, self.problem.emit)
        else:
            self.failure = f"{self._library.read_only_reason}: new runs are not kept."

    @property
    def notices(self) -> tuple[str, ...]:
        """What happened while opening that a person should know."""
        found = tuple(self._library.notices) if self._library is not None else ()
        return (*found, self.failure) if self.failure else found

    @property
    def folder(self) -> Path | None:
        """Where the library is."""
        return self._library.folder if self._library is not None else None

    @property
    def is_removed(self) -> bool:
        """Somebody has deleted, moved or replaced the open library's file."""
        return self._library is not None and _identity(self._library.path) != self._opened

    @property
    def unkept_reason(self) -> str:
        """Why runs are not kept at the moment, as a sentence; empty while they are."""
        if self.failure:
            return self.failure
        if self.is_removed:
            return f"The library {self.folder} was deleted or moved. The next run begins a new one there."
        return self._recorder.holding if self._recorder is not None else ""

    def reopen(self) -> None:
        """Begin anew where the library was."""
        self.close()
        self._open()
        self.changed.emit()

    def record(self, record: Record, payload: bytes = b"") -> None:
        """Keep one record; returns at once."""
        if self._recorder is not None:
            self._recorder.add(record, payload)

    def entries(self, search: str = "", *, deleted: bool = False) -> tuple[RunEntry, ...]:
        """Runs that match, newest first; empty when there is no library."""
        return self._guard(lambda library: library.list_runs(search, deleted=deleted)) or ()

    def find(self, run_id: str) -> RunEntry | None:
        """One run, None when it is not there."""
        if self._library is None:
            return None
        try:
            return self._library.find(run_id)
        except LibraryError:
            return None

    def records(self, experiment_id: str) -> list[Record]:
        """All records of an experiment."""
        return self._guard(lambda library: list(library.open_experiment(experiment_id))) or []

    def delete(self, run_id: str) -> bool:
        """Hide a run; `undelete` brings it back."""
        return self._changing(lambda library: library.delete(run_id))

    def undelete(self, run_id: str) -> bool:
        """Bring a deleted run back."""
        return self._changing(lambda library: library.undelete(run_id))

    def set_tags(self, run_id: str, tags: list[str]) -> bool:
        """Replace a run's tags."""
        return self._changing(lambda library: library.set_tags(run_id, tags))

    def set_notes(self, run_id: str, notes: str) -> bool:
        """Replace a run's notes."""
        return self._changing(lambda library: library.set_notes(run_id, notes))

    def close(self) -> None:
        """Write what is left and close."""
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None
        if self._library is not None:
            self._library.close()
            self._library = None

    def _changing(self, change: Callable[[Library], object]) -> bool:
        done = self._guard(lambda library: (change(library),)) is not None
        if done:
            self.changed.emit()
        return done

    def _guard(self, use: Callable[[Library], _T]) -> _T | None:
        if self._library is None:
            return None
        try:
            return use(self._library)
        except LibraryError as error:
            self.problem.emit(str(error))
            return None


def _identity(file: Path) -> tuple[int, int] | None:
    """Tells a file from another of the same name; None when there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
