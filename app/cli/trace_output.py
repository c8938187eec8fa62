"""Writes traces where `--trace` says, piece by piece as they arrive, each under its final name only when whole."""

import contextlib
import tempfile
from pathlib import Path

from gptscope.app.viewmodels.variant_names import short_names
from gptscope.profiling.export import ExportError, export_trace
from gptscope.profiling.export.files import final_place, is_written_straight
from gptscope.profiling.records import TraceChunk


class TraceOutput:
    """One file for one variant; for several, their names are put before the ending: `t-baseline.json.gz`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._run_ids: tuple[str, ...] = ()
        self._failed: dict[str, str] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.written: dict[str, Path] = {}

    def set_runs(self, run_ids: tuple[str, ...]) -> None:
        """Name the runs, the baseline first."""
        self._run_ids = run_ids

    def add(self, chunk: TraceChunk, payload: bytes) -> None:
        """Write one piece; a disk that is full is told by `finish`."""
        if chunk.run_id in self._failed:
            return
        path = self.path_of(chunk.run_id)
        part = self._part(path)
        try:
            with part.open("wb" if chunk.offset == 0 else "r+b") as file:
                file.seek(chunk.offset)
                file.write(payload)
            if chunk.last:
                self.written[chunk.run_id] = export_trace(part, path, overwrite=True)
                part.unlink()
        except (OSError, ExportError) as error:
            reason = f"{error.strerror}." if isinstance(error, OSError) else str(error)
            self._failed[chunk.run_id] = f"The trace could not be written to {path}: {reason}"
            with contextlib.suppress(OSError):
                part.unlink()

    def path_of(self, run_id: str) -> Path:
        """Where a run's trace goes."""
        if len(self._run_ids) < 2 or run_id not in self._run_ids:
            return self._path
        return named(self._path, self._run_ids.index(run_id))

    @property
    def failed(self) -> tuple[str, ...]:
        """Sentences about what could not be written."""
        return tuple(self._failed.values())

    def finish(self) -> None:
        """Remove what did not arrive whole."""
        for run_id in (*self._run_ids, ""):
            with contextlib.suppress(OSError):
                self._part(self.path_of(run_id)).unlink()
        if self._folder is not None:
            self._folder.cleanup()

    def _part(self, path: Path) -> Path:
        """Where pieces are gathered: beside their place, unless that is a pipe or a device."""
        if not is_written_straight(final_place(path)):
            return path.with_name(path.name + ".part")
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="gptscope-trace-")
        return Path(self._folder.name) / path.name


def named(path: Path, index: int) -> Path:
    """`out/t.json.gz` of the baseline is `out/t-baseline.json.gz`, of variant 1 `out/t-A.json.gz`."""
    stem, dot, endings = path.name.partition(".")
    return path.with_name(f"{stem}-{short_names(index + 1)[index]}{dot}{endings}")
