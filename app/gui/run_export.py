"""A run into files: the same trace, JSON and tables as the command line writes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gptscope.app.gui.library_access import LibraryAccess
from gptscope.app.viewmodels.run_csv import kernel_csv, step_csv
from gptscope.app.viewmodels.run_view import RunView
from gptscope.profiling.store.entries import RunEntry


@dataclass(frozen=True)
class RunExporter:
    """One kind of file. `missing` says why this run has nothing to write, or is empty."""

    title: str
    ending: str
    filter: str
    missing: Callable[[RunEntry, RunView], str]
    write: Callable[[Path, RunEntry, LibraryAccess], None]


def _always(_entry: RunEntry, _run: RunView) -> str:
    return ""


def _no_trace(entry: RunEntry, _run: RunView) -> str:
    return "" if entry.trace is not None else "This run has no trace: it was not profiled, or ended before that."


def _no_profile(_entry: RunEntry, run: RunView) -> str:
    return "" if run.profile is not None else "This run has no kernel table: it was not profiled, or ended before that."


def _no_steps(_entry: RunEntry, run: RunView) -> str:
    return "" if run.first_step_ns is not None else "This run has no steps: it ended before the first one."


def write_whole(file: Path, data: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    part = file.with_name(file.name + ".part")
    try:
        part.write_bytes(data)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _write_trace(file: Path, entry: RunEntry, _library: LibraryAccess) -> None:
    import gzip

    assert entry.trace is not None
    data = entry.trace.read_bytes()
    write_whole(file, data if file.suffix == ".gz" else gzip.decompress(data))


def _write_json(file: Path, entry: RunEntry, library: LibraryAccess) -> None:
    from gptscope.app.cli.document import experiment_document
    from gptscope.app.cli.json_output import encode_document

    records = library.records(entry.experiment_id)
    document = experiment_document(records, (entry.run_id,), kept_in=library.folder, not_kept=None)
    write_whole(file, encode_document("experiment", document))


def _write_kernels(file: Path, entry: RunEntry, library: LibraryAccess) -> None:
    write_whole(file, kernel_csv(library.records(entry.experiment_id), entry.run_id).encode("utf-8"))


def _write_steps(file: Path, entry: RunEntry, library: LibraryAccess) -> None:
    write_whole(file, step_csv(library.records(entry.experiment_id), entry.run_id).encode("utf-8"))


EXPORTERS: dict[str, RunExporter] = {
    "trace": RunExporter("Save the trace", ".json.gz", "Kineto trace (*.json.gz *.json)", _no_trace, _write_trace),
    "json": RunExporter("Save the run", ".json", "JSON (*.json)", _always, _write_json),
    "kernels": RunExporter("Save the kernel table", "-kernels.csv", "CSV (*.csv)", _no_profile, _write_kernels),
    "steps": RunExporter("Save the step samples", "-steps.csv", "CSV (*.csv)", _no_steps, _write_steps),
}
