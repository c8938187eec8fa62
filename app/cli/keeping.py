"""Whether and where a run is kept: opens the library, or says why the run goes on without it."""

import argparse
from pathlib import Path

from gptscope.app.cli.failing import CommandError
from gptscope.profiling.records import Record
from gptscope.profiling.store.entries import LibraryError, NewerLibraryError
from gptscope.profiling.store.library import Library
from gptscope.profiling.store.recorder import Recorder


def open_library(folder: Path | None) -> Library:
    """The library that commands about kept runs work on.

    Raises:
        CommandError: it cannot be used.
    """
    try:
        return Library(folder)
    except LibraryError as error:
        raise CommandError(str(error)) from error


class Keeping:
    """Hands a run's records to the library, if there is one that can take them.

    Attributes:
        folder: The library's folder; None when nothing can be kept.
        reason: Why not everything is kept; None when it is.
        asked_not_to: Whether `--no-keep` was given.
        given: Whether `--library` named the folder.
        notices: What a person should know about the library before the run.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        """Open the library the options ask for.

        Raises:
            CommandError: `--library` names one that cannot be used, or the library is from a newer gptscope.
        """
        self.folder: Path | None = None
        self.reason: str | None = None
        self.notices: tuple[str, ...] = ()
        self.asked_not_to: bool = args.no_keep
        self.given = args.library is not None
        self._recorder: Recorder | None = None
        if args.no_keep:
            self.reason = "--no-keep was given"
            return
        try:
            library = Library(args.library)
        except LibraryError as error:
            if args.library is not None or isinstance(error, NewerLibraryError):
                raise CommandError(f"{error} Or run with --no-keep.") from error
            self.reason = str(error)
            self.notices = (f"{error} The run goes on, but is not kept.",)
            return
        self.notices = library.notices
        if library.read_only_reason is not None:
            self.reason = library.read_only_reason
            self.notices += (f"{self.reason}. The run goes on, but is not kept.",)
        else:
            self.folder = library.folder
            self._recorder = Recorder(library.folder)
        library.close()

    def add(self, record: Record, payload: bytes) -> None:
        """Keep one record."""
        if self._recorder is not None:
            self._recorder.add(record, payload)

    def finish(self) -> tuple[str, ...]:
        """Write what is left; returns sentences about what could not be kept."""
        if self._recorder is None:
            return ()
        if not self._recorder.close():
            self.reason = self._recorder.problems[-1]
        problems, self._recorder = self._recorder.problems, None
        return problems
