"""Which file a trace command means: a path, or a kept run by its id, by how its id begins, or by `last`."""

import os
from pathlib import Path

from gptscope.app.cli.failing import CommandError


def trace_file(given: Path, library: Path | None) -> Path:
    """The file itself, or else the trace that the library keeps of such a run.

    What looks like a path (it has a folder or an ending) is never taken for a run.

    Raises:
        CommandError: there is neither, or the run has no trace.
    """
    text = str(given)
    if given.name != text or given.suffix or os.path.exists(given):  # noqa: PTH110 (Path raises for too long names)
        return given
    from gptscope.app.cli.keeping import open_library
    from gptscope.profiling.store import opening
    from gptscope.profiling.store.entries import LibraryError

    if not ((library or opening.default_folder()) / opening.FILE_NAME).exists():
        raise CommandError(f"There is no file {text}, and no run either: {library or 'the library'} holds none yet.")
    with open_library(library) as kept:
        try:
            entry = kept.find(text)
        except LibraryError as error:
            raise CommandError(f"There is no file {text}. {error}") from error
    if entry.trace is None:
        raise CommandError(
            f"Run {entry.run_id} ({entry.name}) has no trace: it was not profiled, or ended before that."
        )
    return entry.trace
