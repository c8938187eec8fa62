"""The state of the run library in a few lines, for `doctor`. Looks only: a damaged library is not replaced here."""

from pathlib import Path

import msgspec

from gptscope.app.viewmodels.formatting import count, quantity
from gptscope.profiling.store import opening
from gptscope.profiling.store.entries import LibraryError
from gptscope.profiling.store.library import Library


class LibraryState(msgspec.Struct, frozen=True, kw_only=True):
    """What `doctor` says about the library."""

    folder: str
    runs: int | None
    """None: there is none yet, or it cannot be read."""
    bytes: int
    """The SQLite file and the traces."""
    problem: str | None
    """Why runs cannot be kept; None when they can."""

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The same for people."""
        runs = "none yet" if self.runs is None else count(self.runs)
        return (
            ("Folder", self.folder),
            ("Runs", self.problem if self.problem is not None and self.runs is None else runs),
            ("Size", quantity(self.bytes, "bytes")),
            ("Writable", "yes" if self.problem is None else self.problem),
        )


def describe_library(folder: Path | None) -> LibraryState:
    """Look at the library in `folder` (default: the user's), making nothing."""
    place = folder or opening.default_folder()
    if not (place / opening.FILE_NAME).exists():
        problem = opening.why_not_writable(place)
        return LibraryState(folder=str(place), runs=None, bytes=0, problem=problem)
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    try:
        with Library(place, repair=False) as library:
            runs = len(library.list_runs())
            return LibraryState(folder=str(place), runs=runs, bytes=size, problem=library.read_only_reason)
    except LibraryError as error:
        return LibraryState(folder=str(place), runs=None, bytes=size, problem=str(error))
