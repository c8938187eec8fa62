"""Trace files beside the library: `traces/RUN.json.gz`, written in pieces into `RUN.json.gz.part`, then renamed."""

import contextlib
from pathlib import Path

FOLDER = "traces"


def trace_path(library_folder: Path, run_id: str) -> Path:
    """Where the whole trace of a run is kept."""
    return library_folder / FOLDER / f"{_file_name(run_id)}.json.gz"


def part_path(library_folder: Path, run_id: str) -> Path:
    """Where the trace of a run grows until its last piece is there."""
    whole = trace_path(library_folder, run_id)
    return whole.with_name(whole.name + ".part")


def append(library_folder: Path, run_id: str, offset: int, piece: bytes, *, last: bool) -> None:
    """Write one piece at its offset; after the last one give the file its final name.

    Writing the same piece twice changes nothing.

    Raises:
        OSError: the disk is full or the folder cannot be written.
        ValueError: a piece before this one is missing.
    """
    part = part_path(library_folder, run_id)
    part.parent.mkdir(parents=True, exist_ok=True)
    with part.open("wb" if offset == 0 else "r+b") as file:
        size = file.seek(0, 2)
        if offset > size:
            raise ValueError(f"its piece at byte {size} never arrived")
        file.seek(offset)
        file.write(piece)
    if last:
        part.replace(trace_path(library_folder, run_id))


def remove(library_folder: Path, run_id: str) -> None:
    """Delete the run's trace, whole or in part; missing files are fine."""
    for path in (trace_path(library_folder, run_id), part_path(library_folder, run_id)):
        with contextlib.suppress(OSError):
            path.unlink()


def _file_name(run_id: str) -> str:
    """The run's id as a file name that cannot leave the folder, whoever made the id."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in run_id).lstrip(".") or "_"
