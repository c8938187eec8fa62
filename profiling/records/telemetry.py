"""Samples of the machine, taken outside the measured process."""

import msgspec

from gptscope.profiling.records.message import Message


class CpuSample(msgspec.Struct, frozen=True, kw_only=True):
    """Percent of one core unless said otherwise; None = unknown on this system."""

    worker_percent: float
    other_percent: float
    """Load of everything that is not gptscope."""
    own_percent: float
    """Load of gptscope's own engine and client processes."""
    steal_percent: float | None = None
    frequency_mhz: float | None = None
    max_frequency_mhz: float | None = None
    temperature_c: float | None = None


class GpuSample(msgspec.Struct, frozen=True, kw_only=True):
    """One NVML reading."""

    utilisation_percent: float | None = None
    memory_used_bytes: int | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    dram_active_percent: float | None = None
    """Hardware counter (GPM), Hopper and newer."""


class Telemetry(Message, frozen=True):
    """One sample of the machine, taken outside the measured process."""

    time_ns: int
    """`time.perf_counter_ns`, comparable with `StepSamples.start_ns`."""
    cpu: CpuSample
    worker_rss_bytes: int | None = None
    memory_available_bytes: int | None = None
    gpu: GpuSample | None = None
    gpu_reason: str | None = None
    """Why `gpu` is None."""
    run_id: str | None = None
    """The run that was being measured at that time."""
