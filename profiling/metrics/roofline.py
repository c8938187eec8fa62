"""Roofline model (Williams, Waterman and Patterson 2009): what memory and arithmetic allow, and where work lies.

attainable FLOP/s = min(peak FLOP/s, arithmetic intensity x peak bytes/s)
"""

from collections.abc import Iterable

import msgspec
from gptscope.profiling.records import KernelRow

US_PER_S = 1e6


class RooflinePoint(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel on the chart."""

    name: str
    category: str
    module: str
    intensity: float
    """FLOPs per byte."""
    tflops: float
    """Achieved, 10^12 FLOP/s."""
    gbps: float
    """Achieved, 10^9 bytes/s, modelled."""
    time_us: float
    """Self time, the size of the dot."""


def arithmetic_intensity(flops: float, n_bytes: float) -> float | None:
    """FLOPs per byte moved; None without any bytes."""
    return flops / n_bytes if n_bytes > 0 else None


def attainable_tflops(intensity: float, peak_tflops: float, peak_gbps: float) -> float:
    """The roof above an arithmetic intensity, in 10^12 FLOP/s."""
    return min(peak_tflops, intensity * peak_gbps / 1e3)


def ridge_intensity(peak_tflops: float, peak_gbps: float) -> float:
    """Intensity (FLOPs per byte) from which on a kernel is limited by arithmetic rather than by memory."""
    return peak_tflops * 1e3 / peak_gbps


def roofline_points(kernels: Iterable[KernelRow]) -> list[RooflinePoint]:
    """Dots of all kernels whose bytes and FLOPs are modelled and whose time is not zero, longest first."""
    points = []
    for row in kernels:
        if not row.bytes or not row.flops or row.self_time_us <= 0:
            continue
        seconds = row.self_time_us / US_PER_S
        points.append(
            RooflinePoint(
                name=row.name,
                category=row.category,
                module=row.module,
                intensity=row.flops / row.bytes,
                tflops=row.flops / seconds / 1e12,
                gbps=row.bytes / seconds / 1e9,
                time_us=row.self_time_us,
            )
        )
    return sorted(points, key=lambda p: -p.time_us)


def least_step_seconds(flops: float, n_bytes: float, peak_tflops: float, peak_gbps: float) -> float:
    """The shortest possible time of a step: arithmetic at its peak or traffic at its peak, whichever is longer."""
    return max(flops / (peak_tflops * 1e12), n_bytes / (peak_gbps * 1e9))
