"""The typed result of summarising a run."""

from typing import Literal

import msgspec

from gptscope.profiling.experiment import Variant, Workload
from gptscope.profiling.metrics.bytes_model import StepBytes
from gptscope.profiling.metrics.latency import Distribution
from gptscope.profiling.metrics.mfu_mbu import Utilisation
from gptscope.profiling.metrics.statistics import Estimate
from gptscope.profiling.records import StepKind

Outcome = Literal["running", "done", "cancelled", "failed", "interrupted"]


class SliceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at one slice."""

    number: int
    attempt: int
    pair: int | None
    counted: bool
    disturbed: str | None
    steps: int
    median_ms: float | None
    tokens_per_s: float | None


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a table, card or export says about one run. None = unknown; `unknown[field]` says why."""

    run_id: str | None
    name: str
    model: str
    outcome: Outcome
    workload: Workload | None
    variant: Variant | None
    headline: StepKind
    """The kind of step that `tokens_per_s`, `step_time`, MFU and MBU are about."""
    tokens_per_s: Estimate | None
    prompt_tokens_per_s: Estimate | None
    ttft: Distribution | None
    itl: Distribution | None
    tpot_ms: float | None
    step_time: Distribution | None
    flops_per_step: float | None
    step_bytes: StepBytes | None
    """Modelled, of a step at the median context."""
    achieved_gbps: float | None
    """Modelled bytes over time, 10^9 bytes/s."""
    achieved_tflops: float | None
    measured_peak_gbps: float | None
    measured_peak_tflops: float | None
    mbu: Utilisation | None
    mfu: Utilisation | None
    published_mbu: Utilisation | None
    published_mfu: Utilisation | None
    peak_process_bytes: int | None
    peak_device_bytes: int | None
    kv_cache_bytes: int | None
    weight_bytes: int | None
    load_s: float | None
    start_s: float | None
    compile_s: float | None
    """0 when nothing was compiled."""
    graph_breaks: int | None
    """Places where Python interrupts a compiled region."""
    compiled_regions: int | None
    acceptance: float | None
    """Share of guessed tokens that were right, 0 to 1 (speculative decoding)."""
    tokens_per_step: float | None
    """Mean over the counted decode steps; None without speculation, where it is 1 per sequence."""
    first_step_s: float | None
    profiler_overhead: float | None
    profile_busy_share: float | None
    slices_counted: int
    slices_repeated: int
    slices_disturbed: int
    """Counted although disturbed, because every attempt was."""
    disturbed_reasons: tuple[str, ...]
    slices: tuple[SliceSummary, ...]
    warnings: tuple[str, ...]
    failure: str | None
    unknown: dict[str, str]
