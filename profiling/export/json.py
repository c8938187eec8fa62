"""A run as one JSON document for programs: every number, how it was got, and what it was measured from.

Top level, in this order; new fields may be added, none is renamed or removed while `schema_version` stays:

    gptscope         always "run"
    schema_version   of this document
    records_version  of the records it was made from
    run_id, name, experiment_id, command, model, seed, threads, started_unix_ns
    variant, workload           as asked for (records `Variant`, `Workload`)
    fusions_applied, fusions_skipped
    machine, versions, environment
    model_info                  sizes of the loaded model
    summary          `RunSummary`: rates, latencies, memory, utilisation; `unknown` has a reason for every null
    slices           in `summary`: one entry per measured attempt
    samples          list of batches: phase, kind, slice, attempt, start_ns, duration_ns, tokens, context, loss
    profile          steps, overhead, wall_us, busy_us, device, notes, kernels (records `KernelRow`),
                     operators (records `OperatorRow`)
    scales           of narrow recipes: per layer and tensor, largest magnitudes and scales (records `ScaleSeries`)
    evidence         per lever: in_effect (true, false, null = the profile cannot tell), sentence
    quality          against the baseline, null when it was not compared
    layer_errors     the layer map (record `LayerErrors`), null when it was not asked for
    peaks            ceilings of the machine
    text             what was generated
    failures, notices

Times end in their unit. NaN and infinities, which JSON does not have, become null.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from gptscope.profiling.export.files import ExportError, write_whole
from gptscope.profiling.metrics.run_summary import RunSummary
from gptscope.profiling.metrics.summary import RunAccumulator
from gptscope.profiling.records import (
    SCHEMA_VERSION as RECORDS_VERSION,
)
from gptscope.profiling.records import (
    Failure,
    GeneratedText,
    LayerErrors,
    Notice,
    Quality,
    Record,
    RunStarted,
    ScaleHistory,
    SliceDone,
    StepSamples,
)

SCHEMA_VERSION = 1
"""Raised when a field changes its meaning or goes away."""


def run_document(records: Iterable[Record], run_id: str | None = None) -> dict[str, Any]:
    """The document of one run (without `run_id` of the first in the stream), as plain values.

    Raises:
        ExportError: The stream has no such run.
    """
    stream = list(records)
    started = next((r for r in stream if isinstance(r, RunStarted) and run_id in {None, r.run_id}), None)
    if started is None:
        raise ExportError(f"There is no run {run_id} in these records." if run_id else "There is no run to export.")
    run_id = started.run_id
    run = RunAccumulator(run_id)
    for record in stream:
        run.add(record)
    own = [r for r in stream if getattr(r, "run_id", None) in {run_id, None}]
    loaded, profile = run.loaded, run.profile
    document = {
        "gptscope": "run",
        "schema_version": SCHEMA_VERSION,
        "records_version": RECORDS_VERSION,
        "run_id": run_id,
        "name": started.name,
        "experiment_id": started.experiment_id,
        "command": started.command,
        "model": started.model,
        "seed": started.seed,
        "threads": started.threads,
        "started_unix_ns": started.started_unix_ns,
        "variant": started.variant,
        "workload": started.workload,
        "fusions_applied": loaded.fusions if loaded is not None else None,
        "fusions_skipped": loaded.skipped if loaded is not None else None,
        "machine": started.machine,
        "versions": started.versions,
        "environment": started.environment,
        "model_info": loaded.model if loaded is not None else None,
        "summary": _summary(run.summary(final=True)),
        "samples": _samples(own),
        "profile": profile,
        "evidence": run.evidence.items if run.evidence is not None else (),
        "scales": [one for r in own if isinstance(r, ScaleHistory) for one in r.series],
        "quality": next((r for r in own if isinstance(r, Quality)), None),
        "layer_errors": next((r for r in own if isinstance(r, LayerErrors)), None),
        "peaks": run.peaks,
        "text": "".join(r.text for r in own if isinstance(r, GeneratedText)),
        "failures": [r for r in own if isinstance(r, Failure)],
        "notices": [r for r in own if isinstance(r, Notice)],
    }
    plain: dict[str, Any] = finite(msgspec.to_builtins(document))
    return plain


def _summary(summary: RunSummary) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(summary)
    if summary.step_bytes is not None:
        fields["step_bytes"]["total"] = summary.step_bytes.total
    return fields


def _samples(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Batches of steps as they came, each with the attempt at its slice."""
    batches = []
    attempts: dict[int, int] = {}
    for record in records:
        if isinstance(record, SliceDone):
            attempts[record.slice] = record.attempt + 1
        elif isinstance(record, StepSamples):
            batch = msgspec.to_builtins(record)
            del batch["type"], batch["run_id"]
            batches.append({"attempt": attempts.get(record.slice, 0), **batch})
    return batches


def finite(value: Any) -> Any:
    """The same plain value with every NaN and infinity replaced by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def run_json(records: Iterable[Record], run_id: str | None = None) -> bytes:
    """The document as indented UTF-8 JSON that ends with a line break; `ExportError` as `run_document`."""
    return msgspec.json.format(msgspec.json.encode(run_document(records, run_id)), indent=2) + b"\n"


def export_json(records: Iterable[Record], path: Path, run_id: str | None = None, *, overwrite: bool = False) -> Path:
    """Write the document; `ExportError` as `run_document` and `write_whole`."""
    return write_whole(path, [run_json(records, run_id)], overwrite=overwrite)
