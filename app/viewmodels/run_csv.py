"""Kernel table and step samples of one run as CSV, every value in the unit its column names."""

import csv
import io
from collections.abc import Iterable

from gptscope.profiling.records import Profile, Record, StepSamples

_KERNEL_COLUMNS = (
    "name",
    "category",
    "module",
    "calls",
    "self_time_us",
    "total_time_us",
    "share",
    "bytes",
    "flops",
    "input_shapes",
)
_STEP_COLUMNS = ("slice", "phase", "kind", "start_ns", "duration_ns", "tokens", "context", "loss")


def kernel_csv(records: Iterable[Record], run_id: str) -> str:
    """One row per kernel, summed over the profiled steps; empty cells are unknown."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*_KERNEL_COLUMNS, "dtypes", "profiled_steps"])
    profiles = [record for record in records if isinstance(record, Profile) and record.run_id == run_id]
    for profile in profiles[-1:]:
        for row in profile.kernels:
            values = ["" if (value := getattr(row, name)) is None else value for name in _KERNEL_COLUMNS]
            writer.writerow([*values, " ".join(row.dtypes), profile.steps])
    return out.getvalue()


def step_csv(records: Iterable[Record], run_id: str) -> str:
    """One row per step, warm-up and profiled ones too (slice -1)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_STEP_COLUMNS)
    for record in records:
        if isinstance(record, StepSamples) and record.run_id == run_id:
            for index, (start, duration, tokens) in enumerate(
                zip(record.start_ns, record.duration_ns, record.tokens, strict=True)
            ):
                context = record.context[index] if record.context else ""
                loss = record.loss[index] if record.loss else ""
                writer.writerow([record.slice, record.phase, record.kind, start, duration, tokens, context, loss])
    return out.getvalue()
