"""How much of the machine's ceilings a step uses: MFU, MBU, and the labels they carry.

* MFU, model FLOPs utilisation: modelled FLOPs / time / peak FLOP/s (Chowdhery et al. 2022, PaLM).
* MBU, model bandwidth utilisation: modelled bytes / time / peak bytes/s (Databricks, "LLM Inference Performance
  Engineering: Best Practices", 2023).

The peak is the one measured on this machine; a published one stands beside it. Nothing is clipped at 100 %.
"""

from collections.abc import Mapping

import msgspec

from gptscope.profiling.records import Peaks

ABOVE_PEAK_NOTE = "cache-resident or model wrong"
PEAK_OF: dict[str, str] = {
    "int8-weight-only": "bf16",
    "int8-dynamic": "int8",
    "int8-static": "int8",
    "int8-smoothquant": "int8",
    "fp8-delayed": "bf16",
    "fp8-current": "bf16",
    "fp8-rowwise": "bf16",
    "mxfp8": "bf16",
    "nvfp4": "bf16",
}
"""Recipe -> the format in which its products are really computed here, where it is not the recipe's own name."""


def peak_name(precision: str) -> str:
    """The format whose matrix products are the ceiling of a recipe."""
    return PEAK_OF.get(precision, precision)


class Utilisation(msgspec.Struct, frozen=True, kw_only=True):
    """A modelled rate beside the ceiling it is held against."""

    achieved: float
    """In the peak's unit: 10^9 bytes/s or 10^12 FLOP/s."""
    peak: float | None
    fraction: float | None
    """achieved / peak; may exceed 1."""
    note: str | None = None
    """Why there is no fraction, or what one above 1 means."""


def utilisation(achieved: float, peak: float | None, why_no_peak: str) -> Utilisation:
    """Compare a rate with its peak; without a (positive) peak the fraction is None and the note says why."""
    if peak is None or peak <= 0:
        return Utilisation(achieved=achieved, peak=None, fraction=None, note=why_no_peak)
    fraction = achieved / peak
    return Utilisation(
        achieved=achieved, peak=peak, fraction=fraction, note=ABOVE_PEAK_NOTE if fraction > 1.0 else None
    )


def memory_peak_gbps(peaks: Peaks | None) -> tuple[float | None, str]:
    """The highest measured memory rate (10^9 bytes/s), or None with the reason."""
    if peaks is None:
        return None, "this machine's memory bandwidth has not been measured yet"
    rates = [rate for rate in (peaks.read_gbps, peaks.copy_gbps) if rate is not None]
    if not rates:
        return None, peaks.unknown.get("read_gbps", "the memory bandwidth could not be measured")
    return max(rates), ""


def compute_peak_tflops(peaks: Peaks | None, precision: str) -> tuple[float | None, str]:
    """The measured matrix product rate (10^12 FLOP/s) at a precision, or None with the reason."""
    if peaks is None:
        return None, "this machine's matrix product rate has not been measured yet"
    name = peak_name(precision)
    rate = peaks.gemm_tflops.get(name)
    if rate is None:
        return None, peaks.unknown.get(name, f"the {name} matrix product rate could not be measured")
    return rate, ""


def published_peak(published: Mapping[str, float], key: str) -> tuple[float | None, str]:
    """A published figure such as `memory_gbps` or `bf16_tflops`, or None with the reason."""
    value = published.get(key)
    return value, "" if value is not None else f"no published figure for {key} of this device"
