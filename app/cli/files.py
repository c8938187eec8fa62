"""Files that hold one run each: CSV tables, copied traces."""

from collections.abc import Sequence
from pathlib import Path

from gptscope.app.cli.failing import CommandError
from gptscope.app.cli.json_output import check_writable
from gptscope.app.cli.trace_output import named
from gptscope.profiling.export import ExportError, export_kernels, export_steps, export_trace
from gptscope.profiling.records import Record
from gptscope.profiling.store.entries import RunEntry


class FileOutput:
    """Where `--csv` goes: the kernel table in F, the step samples in F-steps beside it.

    With several runs their names are put before the ending: `k-baseline.csv`, `k-A.csv`, `k-A-steps.csv`.
    """

    def __init__(self, path: Path | None) -> None:
        """Check the target.

        Raises:
            CommandError: it cannot be written.
        """
        self._path = path
        if path is not None:
            check_writable(path, "--csv")

    def write(self, records: Sequence[Record], run_ids: Sequence[str]) -> tuple[list[Path], list[str]]:
        """Write both tables of each run; returns what was written, and sentences about what could not be."""
        written: list[Path] = []
        failed: list[str] = []
        for index, run_id in enumerate(run_ids if self._path is not None else ()):
            assert self._path is not None
            path = self._path if len(run_ids) == 1 else named(self._path, index)
            steps = path.with_name(f"{path.stem}-steps{path.suffix}")
            for export, target in ((export_kernels, path), (export_steps, steps)):
                try:
                    written.append(export(records, target, run_id, overwrite=True))
                except ExportError as error:
                    failed.append(str(error))
        return written, failed


def copy_trace(entry: RunEntry, path: Path) -> Path:
    """Copy a kept run's trace to `path`; unpacked when that does not end with `.gz`.

    Raises:
        CommandError: there is no whole trace, or it cannot be written.
    """
    check_writable(path, "--trace")
    if entry.trace is None:
        raise CommandError(
            f"Run {entry.run_id} has no trace: nothing was profiled, or the run ended before its trace was whole."
        )
    try:
        return export_trace(entry.trace, path, overwrite=True)
    except ExportError as error:
        raise CommandError(str(error)) from error
