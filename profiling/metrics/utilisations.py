"""Achieved rates of the counted steps against measured and published peaks, each missing one with its reason."""

from dataclasses import dataclass, field

from gptscope.profiling.metrics.bytes_model import StepBytes
from gptscope.profiling.metrics.mfu_mbu import (
    Utilisation,
    compute_peak_tflops,
    memory_peak_gbps,
    peak_name,
    published_peak,
    utilisation,
)
from gptscope.profiling.metrics.modelled import ModelledWork
from gptscope.profiling.records import Peaks


@dataclass(slots=True)
class Rates:
    """Everything modelled about a run's speed; None = unknown, `unknown` says why."""

    flops_per_step: float | None = None
    step_bytes: StepBytes | None = None
    achieved_gbps: float | None = None
    achieved_tflops: float | None = None
    mbu: Utilisation | None = None
    mfu: Utilisation | None = None
    published_mbu: Utilisation | None = None
    published_mfu: Utilisation | None = None
    unknown: dict[str, str] = field(default_factory=dict)


MODELLED_FIELDS = (
    "flops_per_step", "step_bytes", "achieved_gbps", "achieved_tflops", "mbu", "mfu", "published_mbu", "published_mfu",
)  # fmt: skip


def no_rates(reason: str) -> Rates:
    """Nothing is known, for one reason."""
    return Rates(unknown=dict.fromkeys(MODELLED_FIELDS, reason))


def rates(work: ModelledWork, seconds: float, steps: int, precision: str, peaks: Peaks | None) -> Rates:
    """Divide modelled work by measured time and hold it against the peaks.

    Args:
        work: Modelled work of all counted steps.
        seconds: Time of the same steps, > 0.
        steps: How many they are.
        precision: Recipe whose compute peak counts.
        peaks: Of the machine, if known.
    """
    gbps, tflops = work.bytes / seconds / 1e9, work.flops / seconds / 1e12
    result = Rates(flops_per_step=work.flops / steps, step_bytes=work.step, achieved_gbps=gbps, achieved_tflops=tflops)
    result.mbu = _against(result, "mbu", gbps, *memory_peak_gbps(peaks))
    result.mfu = _against(result, "mfu", tflops, *compute_peak_tflops(peaks, precision))
    published = peaks.published if peaks is not None else {}
    result.published_mbu = _against(result, "published_mbu", gbps, *published_peak(published, "memory_gbps"))
    key = f"{peak_name(precision)}_tflops"
    result.published_mfu = _against(result, "published_mfu", tflops, *published_peak(published, key))
    return result


def _against(result: Rates, name: str, achieved: float, peak: float | None, reason: str) -> Utilisation | None:
    """The utilisation, or None (noting why) when the peak is unknown."""
    value = utilisation(achieved, peak, reason)
    if value.fraction is None:
        result.unknown[name] = reason
        return None
    return value
