"""Roofline: every kernel's speed over its arithmetic intensity, under the roofs measured on this machine."""

import math
from collections.abc import Sequence

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Axis, ChartData, Line, Point, floats
from gptscope.app.viewmodels.kernel_match import row_key, shown_name
from gptscope.app.viewmodels.scales import log_axis
from gptscope.profiling.metrics.mfu_mbu import compute_peak_tflops, memory_peak_gbps
from gptscope.profiling.metrics.roofline import kernel_gbps, kernel_tflops, ridge_intensity
from gptscope.profiling.records import KernelRow, Peaks, Profile

NOT_MODELLED = "No kernel of this profile has modelled bytes and FLOPs, so there is nothing to place under the roof."
NO_PROFILE = "The roofline appears after a profiled run."
_MAX_POINTS = 400


def build(profile: Profile | None, peaks: Peaks | None, precision: str) -> ChartData:
    """Dots sized by self time; without measured peaks the dots stand without a roof."""
    flat = Axis(low=0, high=1)
    if profile is None:
        return ChartData(x_axis=flat, y_axis=flat, empty=NO_PROFILE)
    placed = [row for row in profile.kernels if row.self_time_us > 0 and kernel_gbps(row) and kernel_tflops(row)]
    placed = sorted(placed, key=lambda row: -row.self_time_us)[:_MAX_POINTS]
    if not placed:
        return ChartData(x_axis=flat, y_axis=flat, empty=NOT_MODELLED)
    memory, _ = memory_peak_gbps(peaks)
    compute, _ = compute_peak_tflops(peaks, precision)
    dots = tuple(_dot(row, placed[0].self_time_us) for row in placed)
    roof = _roof(dots, memory, compute, precision)
    xs = [dot.x for dot in dots] + [float(v) for line in roof for v in line.x]
    ys = [dot.y for dot in dots] + [float(v) for line in roof for v in line.y]
    return ChartData(
        x_axis=log_axis(min(xs), max(xs) * 1.01, unit="FLOP/B", title="FLOPs per byte"),
        y_axis=log_axis(min(ys), max(ys) * 1.01, title="GFLOP/s"),
        lines=tuple(roof),
        points=dots,
        summary=f"{len(dots)} kernels under the roofline.",
    )


def _dot(row: KernelRow, longest_us: float) -> Point:
    gbps, tflops = kernel_gbps(row), kernel_tflops(row)
    assert gbps is not None
    assert tflops is not None
    gflops = 1e3 * tflops
    intensity = gflops / gbps
    name = f"{shown_name(row)}  {row.module}".rstrip()
    speed = f"{fmt.number(gflops)} GFLOP/s, {fmt.number(gbps)} GB/s modelled"
    return Point(
        x=intensity,
        y=gflops,
        size=3.0 + 11.0 * math.sqrt(row.self_time_us / longest_us),
        category=row.category,
        label=f"{name}\n{speed}, {fmt.number(intensity)} FLOP/byte, {fmt.duration(row.self_time_us * 1e-6)} in all",
        key=row_key(row),
    )


def _roof(dots: Sequence[Point], memory: float | None, compute: float | None, precision: str) -> list[Line]:
    """The measured roofs in GFLOP/s."""
    if memory is None:
        return []
    low = min(dot.x for dot in dots) / 2
    high = max(max(dot.x for dot in dots) * 2, 1.0)
    slope = f"slope: {fmt.number(memory)} GB/s"
    if compute is None:
        x = floats([low, high])
        return [Line(name="read", x=x, y=x * memory, role="peak", end_label=slope)]
    ridge = ridge_intensity(compute, memory)
    x = floats([low, ridge, max(high, 4 * ridge)])
    y = floats([low * memory, 1e3 * compute, 1e3 * compute])
    top = f"{precision.upper()} {fmt.number(compute)} TFLOP/s"
    return [Line(name="roof", x=x, y=y, role="peak", end_label=top, end_note=slope)]
