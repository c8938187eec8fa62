"""What the library says about one run without reading its records."""

from pathlib import Path
from typing import Literal

import msgspec

from gptscope.profiling.experiment import Variant, Workload

Outcome = Literal["running", "done", "cancelled", "failed", "interrupted"]


class LibraryError(ValueError):
    """The library cannot do what was asked; the message says what happened, why, and what to do."""


class NewerLibraryError(LibraryError):
    """The library was made by a newer gptscope; it was not touched."""


class Headline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The few numbers that a list of runs shows. None = not measured."""

    tokens_per_second: float | None = None
    ttft_ms: float | None = None
    itl_p50_ms: float | None = None
    step_ms: float | None = None
    """Median time of one step of the workload's main kind."""
    memory_bytes: float | None = None
    perplexity: float | None = None
    speedup: float | None = None
    """Candidate over baseline of the same experiment; None for a baseline."""
    verdict: str = ""
    """The verdict's title, e.g. `Faster, same output`; empty for a baseline or when nothing was compared."""


class RunEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the library."""

    run_id: str
    experiment_id: str
    position: int
    """Place among the experiment's variants; 0 is the baseline."""
    name: str
    model: str
    workload: Workload
    variant: Variant
    command: str
    created_unix_ns: int
    finished_unix_ns: int | None
    outcome: Outcome
    """`interrupted`: the program that recorded it ended before the run did; what it had measured is kept."""
    headline: Headline
    tags: tuple[str, ...]
    notes: str
    deleted_unix_ns: int | None
    trace: Path | None
    """The gzipped trace as recorded, when it arrived whole."""
