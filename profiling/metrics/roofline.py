"""Roofline model (Williams, Waterman and Patterson 2009): what memory and arithmetic allow, and where work lies.

attainable FLOP/s = min(peak FLOP/s, arithmetic intensity x peak bytes/s)
"""

from collections.abc import Iterable

import msgspec

from gptscope.profiling.records import KernelRow


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


def ridge_intensity(peak_tflops: float, peak_gbps: float) -> float:
    """Intensity (FLOPs per byte) from which on a kernel is limited by arithmetic rather than by memory."""
    return peak_tflops * 1e3 / peak_gbps


def kernel_gbps(row: KernelRow) -> float | None:
    """Modelled bandwidth of a kernel row, 10^9 bytes/s; None when its bytes are not modelled.

    The time is the total one: an operator's bytes are counted at the operator, and what runs inside it is part of it.
    """
    return row.bytes / row.total_time_us / 1e3 if row.bytes and row.total_time_us > 0 else None


def kernel_tflops(row: KernelRow) -> float | None:
    """Modelled arithmetic rate of a kernel row, 10^12 FLOP/s; None when its FLOPs are not modelled."""
    return row.flops / row.total_time_us / 1e6 if row.flops and row.total_time_us > 0 else None


def roofline_points(kernels: Iterable[KernelRow]) -> list[RooflinePoint]:
    """Dots of all kernels whose bytes and FLOPs are modelled and whose time is not zero, longest first."""
    points = []
    for row in kernels:
        gbps, tflops = kernel_gbps(row), kernel_tflops(row)
        if gbps is None or tflops is None:
            continue
        points.append(
            RooflinePoint(
                name=row.label or row.name,
                category=row.category,
                module=row.module,
                intensity=tflops * 1e3 / gbps,
                tflops=tflops,
                gbps=gbps,
                time_us=row.self_time_us,
            )
        )
    return sorted(points, key=lambda p: -p.time_us)
