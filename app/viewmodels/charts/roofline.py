"""Roofline: every kernel's speed over its arithmetic intensity, under the roofs measured on this machine."""

import math

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Axis, ChartData, Line, Point, floats
from gptscope.app.viewmodels.charts.kernel_times import short_name
from gptscope.app.viewmodels.scales import log_axis
from gptscope.profiling.metrics.mfu_mbu import compute_peak_tflops, memory_peak_gbps
from gptscope.profiling.metrics.roofline import RooflinePoint, ridge_intensity, roofline_points
from gptscope.profiling.records import Peaks, Profile

NOT_MODELLED = "No kernel of this profile has modelled bytes and FLOPs, so there is nothing to place under the roof."
NO_PROFILE = "The roofline appears after a profiled run."
_MAX_POINTS = 400


def build(profile: Profile | None, peaks: Peaks | None, precision: str) -> ChartData:
    """Dots sized by self time; without measured peaks the dots stand without a roof and the title says so."""
    flat = Axis(low=0, high=1)
    if profile is None:
        return ChartData(x_axis=flat, y_axis=flat, empty=NO_PROFILE)
    points = roofline_points(profile.kernels)[:_MAX_POINTS]
    if not points:
        return ChartData(x_axis=flat, y_axis=flat, empty=NOT_MODELLED)
    memory, _ = memory_peak_gbps(peaks)
    compute, _ = compute_peak_tflops(peaks, precision)
    lines = _roof(points, memory, compute, precision)
    xs = [p.intensity for p in points] + [float(v) for line in lines for v in line.x]
    ys = [p.tflops for p in points] + [float(v) for line in lines for v in line.y]
    longest = max(p.time_us for p in points)
    dots = tuple(
        Point(
            x=p.intensity,
            y=p.tflops * 1e3,
            size=3.0 + 11.0 * math.sqrt(p.time_us / longest),
            category=p.category,
            label=_label(p),
            key=f"{p.name}|{p.module}",
        )
        for p in points
    )
    return ChartData(
        x_axis=log_axis(min(xs), max(xs) * 1.01, unit="FLOP/B", title="FLOPs per byte"),
        y_axis=log_axis(min(ys) * 1e3, max(ys) * 1.01e3, title="GFLOP/s"),
        lines=tuple(
            Line(
                name=line.name, x=line.x, y=line.y * 1e3, role="peak", end_label=line.end_label, end_note=line.end_note
            )
            for line in lines
        ),
        points=dots,
        summary=f"{len(dots)} kernels under the roofline.",
    )


def _roof(points: list[RooflinePoint], memory: float | None, compute: float | None, precision: str) -> list[Line]:
    if memory is None:
        return []
    low = min(p.intensity for p in points) / 2
    high = max(max(p.intensity for p in points) * 2, 1.0)
    if compute is None:
        x = floats([low, high])
        return [Line(name="read", x=x, y=x * memory / 1e3, end_label=f"read {fmt.number(memory)} GB/s")]
    ridge = ridge_intensity(compute, memory)
    high = max(high, 4 * ridge)
    x = floats([low, ridge, high])
    roof, slope = f"{precision.upper()} {fmt.number(compute)} TFLOP/s", f"slope: {fmt.number(memory)} GB/s"
    return [Line(name="roof", x=x, y=floats([low * memory / 1e3, compute, compute]), end_label=roof, end_note=slope)]


def _label(point: RooflinePoint) -> str:
    name = f"{short_name(point.name)}  {point.module}".rstrip()
    speed = f"{fmt.number(point.tflops * 1e3)} GFLOP/s, {fmt.number(point.gbps)} GB/s modelled"
    return f"{name}\n{speed}, {fmt.number(point.intensity)} FLOP/byte, {fmt.number(point.time_us / 1e3)} ms in all"
