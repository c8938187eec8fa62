"""Tables as CSV for spreadsheets and scripts. Units stand in the column names; an unknown value is an empty cell."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gptscope.profiling.export.files import ExportError, write_whole
from gptscope.profiling.metrics.roofline import kernel_gbps, kernel_tflops
from gptscope.profiling.records import Profile, Record, SliceDone, StepSamples

KERNEL_COLUMNS = (
    "label", "name", "category", "module", "calls", "calls_per_step", "self_time_us", "total_time_us", "share",
    "bytes_modelled", "gb_per_s_modelled", "flops_modelled", "tflop_per_s_modelled", "input_shapes", "dtypes",
)  # fmt: skip
STEP_COLUMNS = (
    "phase", "kind", "slice", "attempt", "step", "start_us", "duration_us", "tokens", "context_tokens", "loss",
    "slice_disturbed",
)  # fmt: skip
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def kernel_csv(records: Iterable[Record], run_id: str | None = None) -> str:
    """The kernel table of one run (without `run_id` of the first that has one).

    Raises:
        ExportError: Nothing was profiled.
    """
    profile = next((r for r in records if isinstance(r, Profile) and run_id in {None, r.run_id}), None)
    if profile is None:
        raise ExportError("This run has no kernel table: nothing was profiled.")
    rows = [
        (
            row.label or row.name,
            row.name,
            row.category,
            row.module,
            row.calls,
            row.calls / profile.steps if profile.steps else None,
            row.self_time_us,
            row.total_time_us,
            row.share,
            row.bytes,
            kernel_gbps(row),
            row.flops,
            kernel_tflops(row),
            row.input_shapes,
            " ".join(row.dtypes),
        )
        for row in profile.kernels
    ]
    return csv_text(KERNEL_COLUMNS, rows)


def step_csv(records: Iterable[Record], run_id: str | None = None) -> str:
    """Every step of one run, warm-up and profiled ones too, in the order in which they ran.

    `start_us` counts from the first of them. `slice_disturbed` says why a slice's attempt is not counted.

    Raises:
        ExportError: The run has no steps.
    """
    batches: list[tuple[StepSamples, int]] = []
    disturbed: dict[tuple[int, int], str] = {}
    attempts: dict[int, int] = {}
    for record in records:
        if isinstance(record, StepSamples | SliceDone):
            run_id = run_id or record.run_id
            if record.run_id != run_id:
                continue
            if isinstance(record, StepSamples):
                batches.append((record, attempts.get(record.slice, 0)))
            else:  # a slice's samples come before its end, so what follows is the next attempt
                disturbed[record.slice, record.attempt] = record.disturbed or ""
                attempts[record.slice] = record.attempt + 1
    if not batches:
        raise ExportError("This run has no steps yet.")
    origin_ns = min((min(batch.start_ns) for batch, _ in batches if batch.start_ns), default=0)
    rows: list[tuple[Any, ...]] = []
    numbers: dict[tuple[str, int, int], int] = {}
    for batch, attempt in batches:
        measured = batch.phase == "measure"
        for i, (start_ns, duration_ns, tokens) in enumerate(
            zip(batch.start_ns, batch.duration_ns, batch.tokens, strict=True)
        ):
            place = (batch.phase, batch.slice, attempt)
            numbers[place] = numbers.get(place, -1) + 1
            rows.append(
                (
                    batch.phase,
                    batch.kind,
                    batch.slice if measured else None,
                    attempt if measured else None,
                    numbers[place],
                    (start_ns - origin_ns) / 1e3,
                    duration_ns / 1e3,
                    tokens,
                    batch.context[i] if i < len(batch.context) else None,
                    batch.loss[i] if i < len(batch.loss) else None,
                    disturbed.get((batch.slice, attempt), "") if measured else "",
                )
            )
    return csv_text(STEP_COLUMNS, rows)


def export_kernels(
    records: Iterable[Record], path: Path, run_id: str | None = None, *, overwrite: bool = False
) -> Path:
    """Write the kernel table; `ExportError` as `kernel_csv` and `write_whole`."""
    return write_whole(path, [kernel_csv(records, run_id).encode()], overwrite=overwrite)


def export_steps(records: Iterable[Record], path: Path, run_id: str | None = None, *, overwrite: bool = False) -> Path:
    """Write the step samples; `ExportError` as `step_csv` and `write_whole`."""
    return write_whole(path, [step_csv(records, run_id).encode()], overwrite=overwrite)


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A CSV file: a heading line, then one line per row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return text.getvalue()


def _cell(value: Any) -> Any:
    """Numbers without noise digits, and no text that a spreadsheet would run as a formula."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.9g}" if abs(value) < 1e6 else f"{value:.3f}"
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return "'" + value
    return value
