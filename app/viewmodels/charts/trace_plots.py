"""Plots beside the tables of a trace: kernels under known roofs, copies by size, memory over time."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Axis, ChartData, Floats, Line, Point, floats
from gptscope.app.viewmodels.charts.bars import no_plot
from gptscope.app.viewmodels.scales import linear_axis, log_axis, memory_axis
from gptscope.profiling.machine.published import PublishedPeaks, published_peaks
from gptscope.profiling.trace.analysis import DeviceUse, KernelSums, Linked, roofline_points
from gptscope.profiling.trace.analysis.memory import allocators
from gptscope.profiling.trace.grouping import group_by

MOMENT = "moment"
"""A key that begins so means a moment, in nanoseconds of the file's clock."""
_NS_PER_MS = 1e6
_MOST_POINTS = 400
_STRETCHES = 200
_ROOFS = (("bf16_tflops", "BF16 tensor cores"), ("fp16_tflops", "FP16 tensor cores"))


def shown_peaks(devices: Sequence[DeviceUse]) -> PublishedPeaks | None:
    """The vendor's figures, only where all devices are of one known kind."""
    names = {one.name for one in devices}
    return published_peaks(names.pop()) if len(names) == 1 else None


def roofline(linked: Linked, kernels: Sequence[KernelSums], devices: Sequence[DeviceUse]) -> ChartData:
    """Dots sized by time; roofs only from figures that the vendor published for this very device."""
    pairs = [(kernel, point) for kernel in kernels for point in roofline_points([kernel])][:_MOST_POINTS]
    if not pairs:
        return no_plot(no_roofline(linked))
    longest = max(kernel.total_ns for kernel, _ in pairs)
    dots = tuple(
        Point(
            x=point.flops_per_byte,
            y=point.flops_per_s / 1e9,
            size=3.0 + 9.0 * math.sqrt(kernel.total_ns / longest),
            category=kernel.category,
            label=f"{kernel.short}\n{fmt.quantity(point.flops_per_s, 'flops')},"
            f" {fmt.quantity(point.bytes_per_s, 'bandwidth')}, {fmt.number(point.flops_per_byte)} FLOP/byte, modelled;"
            f" {fmt.number(kernel.total_ns / _NS_PER_MS)} ms in all",
            key=f"{kernel.name}\n{kernel.category}",
        )
        for kernel, point in pairs
    )
    lines = _roofs(dots, shown_peaks(devices))
    xs = [dot.x for dot in dots] + [float(v) for line in lines for v in line.x]
    ys = [dot.y for dot in dots] + [float(v) for line in lines for v in line.y]
    return ChartData(
        x_axis=_named(log_axis(min(xs), max(xs), title="FLOPs per byte")),
        y_axis=log_axis(min(ys), max(ys) * (3 if lines else 1.01), title="GFLOP/s"),
        lines=lines,
        points=dots,
        summary=f"Kernels by FLOPs per byte and FLOP/s, modelled from their shapes: {fmt.count(len(dots))}.",
    )


def no_roofline(linked: Linked) -> str:
    """Why there are no points."""
    if linked.operators.size and not (linked.trace.shapes != 0).any():
        return "n/a: recorded without record_shapes=True, so bytes and FLOPs are unknown."
    if not linked.operators.size:
        return "n/a: no operators were recorded (profiler activity CPU), so shapes, bytes and FLOPs are unknown."
    return "n/a: no kernel here has both modelled bytes and modelled FLOPs."


def _roofs(dots: Sequence[Point], peaks: PublishedPeaks | None) -> tuple[Line, ...]:
    memory = peaks.figures.get("memory_gbps") if peaks is not None else None
    if peaks is None or memory is None:
        return ()
    low = min(min(dot.x for dot in dots) / 2, 1.0)
    tops = [(peaks.figures[key], name) for key, name in _ROOFS if key in peaks.figures][:1]
    tops += [(peaks.figures["fp32_tflops"], "FP32")] if "fp32_tflops" in peaks.figures else []
    if not tops:
        x = floats([low, max(max(dot.x for dot in dots) * 2, 1.0)])
        return (Line(name="memory", x=x, y=x * memory, role="peak", end_label=f"{fmt.number(memory)} GB/s"),)
    lines = []
    last = max(*(dot.x for dot in dots), 1e3 * tops[0][0] / memory)
    high = 10.0 ** (math.ceil(math.log10(last)) + 2)  # room for the names at the right end, beside the dots
    for number, (tflops, name) in enumerate(tops):
        ridge, label = 1e3 * tflops / memory, f"{name} {fmt.number(tflops)} TFLOP/s"
        x, y = floats([ridge, high]), floats([1e3 * tflops] * 2)
        if number == 0:
            x, y = floats([low, *x]), floats([low * memory, *y])
            label = f"{fmt.number(memory)} GB/s, {label}"
        lines.append(Line(name=name, x=x, y=y, role="peak", end_label=label))
    return tuple(lines)


def copy_points(linked: Linked) -> ChartData:
    """Copies and fills of one name and size together: how fast they were."""
    trace = linked.trace
    rows = linked.work[trace.in_categories("gpu_memcpy", "gpu_memset")[linked.work]]
    if not rows.size:
        return no_plot("n/a: no copies or fills were recorded on a device.")
    counted = rows[(trace.moved_bytes[rows] > 0) & (trace.duration_ns[rows] > 0)]
    if not counted.size:
        return no_plot("n/a: the device did not count the bytes of these copies.")
    size = trace.moved_bytes[counted].astype(np.int64)
    groups = group_by(trace.name[counted], size)
    time, calls = groups.sums(trace.duration_ns[counted]), groups.sizes()
    order = np.argsort(-time)[:_MOST_POINTS]
    longest = float(time.max())
    dots = []
    for i in order.tolist():
        entry = int(groups.first[i])
        name, n_bytes = trace.name_of(int(counted[entry])), int(size[entry])
        rate = n_bytes * int(calls[i]) / float(time[i])
        kind = "copy" if "memcpy" in trace.category_of(int(counted[entry])) else "other"
        label = f"{name}\n{fmt.count(int(calls[i]))} of {fmt.quantity(n_bytes, 'bytes')}, {fmt.number(rate)} GB/s"
        radius = 3.0 + 7.0 * math.sqrt(float(time[i]) / longest)
        dots.append(Point(x=n_bytes / 1e6, y=rate, size=radius, category=kind, label=label, key=name))
    xs, ys = [dot.x for dot in dots], [dot.y for dot in dots]
    return ChartData(
        x_axis=_named(log_axis(min(xs), max(xs), title="MB per copy")),
        y_axis=log_axis(min(ys), max(ys), title="GB/s"),
        points=tuple(dots),
        summary=f"Copies and fills by size and bandwidth: {fmt.count(int(counted.size))}.",
    )


def memory_lines(linked: Linked) -> ChartData:
    """What torch's allocators had given out, device by device, with the peak of each."""
    if not len(linked.trace.memory):
        return no_plot("n/a: recorded without profile_memory=True.")
    start, end = linked.span_ns
    lines, dots = [], []
    for name, memory in allocators(linked):
        here = np.flatnonzero((memory.allocated >= 0) & (memory.time_ns >= start) & (memory.time_ns <= end))
        here = here[np.argsort(memory.time_ns[here], kind="stable")]
        if not here.size:
            continue
        x, y = (memory.time_ns[here] - start) / _NS_PER_MS, memory.allocated[here] / 1e6
        best = int(np.argmax(y))
        label = f"{name} at most {fmt.quantity(float(y[best]) * 1e6, 'bytes')}"
        held_x, held_y = _held(x, y, (end - start) / _NS_PER_MS)
        lines.append(Line(name=name, x=held_x, y=held_y, end_label=label))
        key = f"{MOMENT}\n{int(memory.time_ns[here][best])}"
        about = f"{label}, {fmt.number(float(x[best]))} ms from the beginning"
        dots.append(Point(x=float(x[best]), y=float(y[best]), size=4.0, category="other", label=about, key=key))
    if not lines:
        return no_plot("n/a: how much was in use in all was not recorded here.")
    order = sorted(range(len(lines)), key=lambda i: -float(lines[i].y.max()))
    lines = [_in_role(lines[i], first=place == 0) for place, i in enumerate(order)]
    top = float(lines[0].y.max())
    return ChartData(
        x_axis=linear_axis(0, (end - start) / _NS_PER_MS, title="ms from the beginning", exact=True, named=True),
        y_axis=memory_axis(1.15 * top),
        lines=tuple(lines),
        points=tuple(dots),
        summary="; ".join(line.end_label for line in lines),
    )


def _held(x: Floats, y: Floats, end: float) -> tuple[Floats, Floats]:
    """Stairs: a value holds until the next one. Of very many, each stretch keeps its first, least, most and last."""
    if x.size <= 2 * _STRETCHES:
        until = np.append(x, end)
        return np.repeat(until, 2)[1:-1], np.repeat(y, 2)
    stretch = np.minimum(x / max(end, 1e-9) * _STRETCHES, _STRETCHES - 1).astype(np.int64)
    first = np.flatnonzero(np.append([True], stretch[1:] != stretch[:-1]))
    last = np.append(first[1:], x.size) - 1
    before = np.append(y[0], y[last[:-1]])
    low, high = np.minimum.reduceat(y, first), np.maximum.reduceat(y, first)
    xs = np.column_stack((x[first], x[first], x[first], x[last])).ravel()
    ys = np.column_stack((before, low, high, y[last])).ravel()
    return np.append(xs, end), np.append(ys, y[-1])


def _named(axis: Axis) -> Axis:
    """With its title below the ticks."""
    return dataclasses.replace(axis, named=True)


def _in_role(line: Line, *, first: bool) -> Line:
    return dataclasses.replace(line, role="current" if first else "other")


def memory_at(chart: ChartData, x: float) -> str:
    """`10.4 ms   CUDA 0 523 MB`."""
    places = [(line, int(np.searchsorted(line.x, x, side="right")) - 1) for line in chart.lines]
    texts = [f"{line.name} {fmt.quantity(float(line.y[i]) * 1e6, 'bytes')}" for line, i in places if i >= 0]
    return f"{fmt.number(x)} ms   {', '.join(texts)}" if texts else ""
