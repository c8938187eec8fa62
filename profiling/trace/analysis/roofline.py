"""Points for a roofline: what each kernel computed per byte it had to move, where shapes tell."""

from dataclasses import dataclass

from gptscope.profiling.trace.analysis.kernels import KernelSums


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """One kernel; modelled bytes and FLOPs over measured time."""

    name: str
    category: str
    flops_per_byte: float
    flops_per_s: float
    bytes_per_s: float
    share: float


def roofline_points(kernels: list[KernelSums]) -> list[RooflinePoint]:
    """Kernels that have both, by falling share of time."""
    points = []
    for kernel in kernels:
        compute, bandwidth = kernel.flops_per_s, kernel.bytes_per_s
        if compute and bandwidth and kernel.flops and kernel.bytes:
            intensity = kernel.flops / kernel.bytes
            points.append(RooflinePoint(kernel.short, kernel.category, intensity, compute, bandwidth, kernel.share))
    return points
