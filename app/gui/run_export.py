"""A run into files, through the exporters that the command line uses too."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gptscope.app.gui.library_access import LibraryAccess
from gptscope.app.viewmodels.run_view import RunView
from gptscope.profiling.export import export_json, export_kernels, export_steps, export_trace
from gptscope.profiling.store.entries import RunEntry


@dataclass(frozen=True)
class RunExporter:
    """One kind of file. `missing` says why this run has nothing to write, or is empty."""

    title: str
    ending: str
    filter: str
    missing: Callable[[RunEntry, RunView], str]
    write: Callable[[Path, RunEntry, LibraryAccess], object]


def _always(_entry: RunEntry, _run: RunView) -> str:
    return ""


def _no_trace(entry: RunEntry, _run: RunView) -> str:
    return "" if entry.trace is not None else "This run has no trace: it was not profiled, or ended before that."


def _no_profile(_entry: RunEntry, run: RunView) -> str:
    return "" if run.profile is not None else "This run has no kernel table: it was not profiled, or ended before that."


def _no_steps(_entry: RunEntry, run: RunView) -> str:
    return "" if run.first_step_ns is not None else "This run has no steps: it ended before the first one."


def _write_trace(file: Path, entry: RunEntry, _library: LibraryAccess) -> Path:
    assert entry.trace is not None
    return export_trace(entry.trace, file, overwrite=True)


def _write_json(file: Path, entry: RunEntry, library: LibraryAccess) -> Path:
    return export_json(library.records(entry.experiment_id), file, entry.run_id, overwrite=True)


def _write_kernels(file: Path, entry: RunEntry, library: LibraryAccess) -> Path:
    return export_kernels(library.records(entry.experiment_id), file, entry.run_id, overwrite=True)


def _write_steps(file: Path, entry: RunEntry, library: LibraryAccess) -> Path:
    return export_steps(library.records(entry.experiment_id), file, entry.run_id, overwrite=True)


EXPORTERS: dict[str, RunExporter] = {
    "trace": RunExporter("Save the trace", ".json.gz", "Kineto trace (*.json.gz *.json)", _no_trace, _write_trace),
    "json": RunExporter("Save the run", ".json", "JSON (*.json)", _always, _write_json),
    "kernels": RunExporter("Save the kernel table", "-kernels.csv", "CSV (*.csv)", _no_profile, _write_kernels),
    "steps": RunExporter("Save the step samples", "-steps.csv", "CSV (*.csv)", _no_steps, _write_steps),
}
