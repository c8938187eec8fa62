"""Tabs of an opened trace, each made from one analysis, on a thread; a row's key leads back to the timeline."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels import trace_device_tables as device_tables
from gptscope.app.viewmodels.charts import trace_bars, trace_plots
from gptscope.app.viewmodels.charts.kernel_times import category_title
from gptscope.app.viewmodels.charts.trace_bars import Piece
from gptscope.app.viewmodels.charts.trace_columns import PART_TITLES, step_columns
from gptscope.app.viewmodels.columns import (
    NS_PER_MS,
    NS_PER_US,
    bar,
    categories,
    counts,
    many,
    numbers,
    short_path,
    table,
    text,
)
from gptscope.app.viewmodels.tables import Column
from gptscope.app.viewmodels.trace_page import TraceChart, TracePage, TraceTab
from gptscope.profiling.trace.analysis import (
    PARTS,
    KernelSums,
    Linked,
    category_sums,
    device_use,
    kernel_sums,
    module_sums,
    operator_sums,
    roofline_points,
    step_times,
    tensor_cores_by_category,
)
from gptscope.profiling.trace.names import short_name

_RATE_TIP = "Modelled bytes from the recorded shapes, or as the device counted, over the time of these calls"


def _kernel_key(row: KernelSums) -> str:
    return f"{row.name}\n{row.category}"


def _column(columns: Sequence[Column], title: str) -> int:
    return [column.title for column in columns].index(title)


def _module(paths: Sequence[str]) -> Column:
    return text("Module", [short_path(path) for path in paths], width=170, tip="Where most of its time belongs")


def kernels(linked: Linked) -> TracePage:
    """Kernels by name, or without device work operators by their own time."""
    rows = kernel_sums(linked)
    all_rows = many(len(rows), "kernel, copy or fill", "kernels, copies and fills")
    if not linked.has_device:
        all_rows = many(len(rows), "operator by its own time", "operators by their own time")
    total, calls = sum(row.total_ns for row in rows), sum(row.calls for row in rows)
    tensor = {True: "yes", False: "no", None: "n/a"}
    columns = [
        text("Kernel" if linked.has_device else "Operator", [row.short for row in rows], width=240, stretch=True),
        categories([row.category for row in rows]),
        counts("Calls", [row.calls for row in rows], width=67, adds=True),
        numbers("Total ms", [row.total_ns for row in rows], scale=NS_PER_MS, width=88, strong=True, adds=True),
        bar("Share of work", [row.share for row in rows], width=124, adds=True),
        numbers("Mean µs", [row.mean_ns for row in rows], scale=NS_PER_US, width=81),
        numbers("Longest µs", [row.max_ns for row in rows], scale=NS_PER_US, width=102),
        numbers("GB/s", [row.bytes_per_s for row in rows], scale=1e9, tip=_RATE_TIP),
        numbers(
            "TFLOP/s", [row.flops_per_s for row in rows], scale=1e12, tip="Modelled from the recorded shapes", width=81
        ),
    ]
    if len(linked.nesting.modules) > 1:
        columns.insert(5, _module([row.module for row in rows]))
    if linked.has_device:
        columns.append(text("Tensor cores", [tensor[row.tensor_cores] for row in rows], width=90, tip="By its name"))
        columns.append(text("Operator", [short_name(row.operator) if row.operator else "" for row in rows], width=150))
    made = table(
        columns,
        [_kernel_key(row) for row in rows],
        swatches=[row.category for row in rows],
        sort=3,
        footer={0: all_rows, 2: fmt.count(calls), 3: fmt.number(total / NS_PER_MS), 4: "100 %"},
        empty="This trace has neither device work nor operators.",
    )
    pieces = [Piece(_kernel_key(row), row.short, row.category, row.total_ns) for row in rows]
    source = "ms, each part is a kernel" if linked.has_device else "ms, each part is an operator's own time"
    return TracePage(made, TraceChart("Time by category", source, trace_bars.by_category(pieces, made.empty)))


def kinds(linked: Linked) -> TracePage:
    """Kinds of work, and whether matrix products ran on tensor cores."""
    rows, use = category_sums(linked), tensor_cores_by_category(linked)
    total = sum(row.total_ns for row in rows)
    columns = [
        text("Category", [category_title(row.category) for row in rows], width=160, stretch=True),
        counts("Calls", [row.calls for row in rows], width=67, adds=True),
        numbers("Total ms", [row.total_ns for row in rows], scale=NS_PER_MS, strong=True, width=88, adds=True),
        bar("Share of work", [row.share for row in rows], adds=True),
    ]
    footer = {
        0: many(len(rows), "category", "categories"),
        1: fmt.count(sum(row.calls for row in rows)),
        2: fmt.number(total / NS_PER_MS),
        3: "100 %",
    }
    tip = "Matrix products and attention, told by the kernels' names"
    if linked.has_device:
        found = [use.get(row.category) for row in rows]
        parts = {
            "On tensor cores ms": [one.used_ns if one else None for one in found],
            "Not on them ms": [one.unused_ns if one else None for one in found],
            "Cannot be told ms": [one.unknown_ns if one else None for one in found],
        }
        columns += [
            numbers(title, times, scale=NS_PER_MS, width=144, tip=tip, adds=True) for title, times in parts.items()
        ]
        footer |= {4 + i: fmt.number(sum(t or 0 for t in times) / NS_PER_MS) for i, times in enumerate(parts.values())}
    keys = [row.category for row in rows]
    empty = "This trace has neither device work nor operators."
    made = table(columns, keys, swatches=keys, sort=2, footer=footer, empty=empty)
    if not linked.has_device:
        pieces = [Piece(row.category, category_title(row.category), row.category, row.total_ns) for row in rows]
        return TracePage(made, TraceChart("Time by category", "ms on the host", trace_bars.by_category(pieces, empty)))
    bars = trace_bars.tensor_core_bars(use, linked)
    return TracePage(made, TraceChart("Tensor cores", "ms of matrix products", bars, tip=f"{tip}."))


def operators(linked: Linked) -> TracePage:
    """Operators by name, and on demand by name and shapes."""
    page = _operators(linked, by_shape=False)
    if not (linked.trace.shapes != 0).any():
        return page
    return replace(page, by_shape=_operators(linked, by_shape=True))


def _operators(linked: Linked, *, by_shape: bool) -> TracePage:
    rows = operator_sums(linked, by_shape=by_shape)
    keys = [f"{row.name}\n{row.shapes}" if by_shape else row.name for row in rows]
    on_device = linked.has_device
    columns = [
        text("Operator", [row.short for row in rows], width=180 if by_shape else 240, stretch=True),
        categories([row.category for row in rows]),
        counts("Calls", [row.calls for row in rows], width=67, adds=True),
        numbers(
            "Self ms",
            [row.host_self_ns for row in rows],
            scale=NS_PER_MS,
            strong=not on_device,
            tip="On the host",
            width=81,
            adds=True,
        ),
        numbers(
            "Total ms", [row.host_total_ns for row in rows], scale=NS_PER_MS, tip="With the operators inside", width=88
        ),
    ]
    if on_device:
        columns += [
            numbers(
                "Device self ms",
                [row.device_self_ns for row in rows],
                scale=NS_PER_MS,
                width=130,
                strong=True,
                tip="Of the kernels that it launched itself",
                adds=True,
            ),
            numbers("Device total ms", [row.device_total_ns for row in rows], scale=NS_PER_MS, width=137),
        ]
    if by_shape:
        columns.insert(2, text("Shapes", [row.shapes for row in rows], width=150))
    if len(linked.nesting.modules) > 1:
        columns.append(_module([row.module for row in rows]))
    all_rows = many(len(rows), "operator")
    if by_shape:
        all_rows = f"{many(len(rows), 'row')}, {many(len({row.name for row in rows}), 'operator')}"
    footer = {0: all_rows} | {
        place: column.total(float(np.nansum(column.values)))
        for place, column in enumerate(columns)
        if column.total is not None and isinstance(column.values, np.ndarray)
    }
    made = table(
        columns,
        keys,
        swatches=[row.category for row in rows],
        sort=_column(columns, "Device self ms" if on_device else "Self ms"),
        footer=footer,
        empty="No operators were recorded (profiler activity CPU).",
    )
    pieces = [
        Piece(key, row.short, row.category, row.device_self_ns if on_device else row.host_self_ns)
        for key, row in zip(keys, rows, strict=True)
    ]
    source = "ms on the device" if on_device else "ms of their own on the host"
    return TracePage(made, TraceChart("Operators by category", source, trace_bars.by_category(pieces, made.empty)))


def modules(linked: Linked) -> TracePage:
    """Modules as a tree, layers counted together."""
    rows = module_sums(linked)
    names = ["    " * (row.depth - 1) + (row.path.rpartition(".")[2] or "outside any module") for row in rows]
    columns = [
        text("Module", names, width=320, stretch=True),
        counts("Calls", [row.calls for row in rows], width=67),
        numbers("Host self ms", [row.host_self_ns for row in rows], scale=NS_PER_MS, width=116),
        numbers("Host total ms", [row.host_total_ns for row in rows], scale=NS_PER_MS, width=123),
    ]
    if linked.has_device:
        columns += [
            numbers("Device self ms", [row.device_self_ns for row in rows], scale=NS_PER_MS, width=130),
            numbers("Device total ms", [row.device_total_ns for row in rows], scale=NS_PER_MS, width=137),
        ]
    columns.append(bar("Share of work", [row.share for row in rows], tip="With the modules inside"))
    empty = "No modules were recorded: use with_modules or with_stack, or profile with gptscope."
    made = table(columns, [row.path for row in rows], empty=empty, sortable=False)
    where = "device" if linked.has_device else "host"
    source = f"ms on the {where}"
    bars = trace_bars.module_bars(rows, on_device=linked.has_device, empty=f"n/a: {empty[0].lower()}{empty[1:]}")
    tip = "Without the modules inside; layers count together."
    return TracePage(made, TraceChart("Modules by own time", source, bars, tip=tip))


def steps(linked: Linked) -> TracePage:
    """What each step's time went to."""
    rows = step_times(linked)
    used = [part for part in PARTS if any(row.parts_ns[part] for row in rows)]
    busy = [numbers("Device busy ms", [row.device_busy_ns for row in rows], scale=NS_PER_MS, width=130)]
    busy = busy if linked.has_device else []
    titles = [f"{PART_TITLES.get(part, part)} ms".capitalize() for part in used]
    columns = [
        text("Step", [row.name + ("" if row.finished else " (cut off)") for row in rows], width=180, stretch=True),
        numbers("Wall ms", [row.wall_ns for row in rows], scale=NS_PER_MS, strong=True, width=81),
        *busy,
        *(
            numbers(title, [row.parts_ns[part] for row in rows], scale=NS_PER_MS, width=7 * len(title) + 28)
            for part, title in zip(used, titles, strict=True)
        ),
    ]
    keys = [f"{row.start_ns}\n{row.start_ns + row.wall_ns}" for row in rows]
    sums = [sum(row.wall_ns for row in rows)]
    sums += [sum(row.device_busy_ns for row in rows)] if busy else []
    sums += [sum(row.parts_ns[part] for row in rows) for part in used]
    footer = {0: many(len(rows), "step") if linked.windows.marked else "no steps are marked"}
    footer |= {place + 1: fmt.number(ns / NS_PER_MS) for place, ns in enumerate(sums)}
    made = table(columns, keys, footer=footer, empty="This trace marks no steps.", sortable=False)
    tip = "A moment counts for the first of these that has something in it; device work hides what the host did."
    chip = "" if linked.windows.marked else "no steps marked"
    return TracePage(made, TraceChart("Steps", "ms of wall time", step_columns(rows), chip=chip, tip=tip))


def roofline(linked: Linked) -> TracePage:
    """Kernels whose bytes and FLOPs can be modelled."""
    kernels, use = kernel_sums(linked), device_use(linked)
    pairs = [(kernel, point) for kernel in kernels for point in roofline_points([kernel])]
    points = [point for _, point in pairs]
    columns = [
        text("Kernel" if linked.has_device else "Operator", [one.name for one in points], width=300, stretch=True),
        categories([one.category for one in points]),
        numbers("FLOP/byte", [one.flops_per_byte for one in points], width=95, tip="Modelled from the shapes"),
        numbers("TFLOP/s", [one.flops_per_s for one in points], scale=1e12, width=84),
        numbers("GB/s", [one.bytes_per_s for one in points], scale=1e9, width=84),
        numbers("Total ms", [kernel.total_ns for kernel, _ in pairs], scale=NS_PER_MS, strong=True, width=88),
        bar("Share of work", [one.share for one in points]),
    ]
    modelled = sum(one.share for one in points)
    made = table(
        columns,
        [_kernel_key(kernel) for kernel, _ in pairs],
        swatches=[one.category for one in points],
        sort=5,
        footer={0: f"{fmt.count(len(pairs))} of {fmt.count(len(kernels))} rows modelled", 6: fmt.percent(modelled)},
        empty=trace_plots.no_roofline(linked),
    )
    peaks = trace_plots.shown_peaks(use)
    roofs = (
        f"Roofs: {peaks.source}." if peaks is not None else "No roofs: no published figures of this device are known."
    )
    tip = f"Bytes and FLOPs are modelled from the recorded shapes. {roofs}"
    chip = "roofs published" if peaks is not None else "roofs not known"
    shown = trace_plots.roofline(linked, kernels, use)
    return TracePage(made, TraceChart("Roofline", "GFLOP/s", shown, chip=chip, tip=tip))


TABLES: dict[str, TraceTab] = {
    "kernels": TraceTab("Kernels", kernels),
    "categories": TraceTab("Categories", kinds),
    "operators": TraceTab("Operators", operators),
    "modules": TraceTab("Modules", modules),
    "steps": TraceTab("Steps", steps),
    "devices": TraceTab("Devices", device_tables.devices),
    "gaps": TraceTab("Gaps", device_tables.gaps),
    "launches": TraceTab("Launches", device_tables.launches),
    "graphs": TraceTab("Graphs", device_tables.graphs),
    "copies": TraceTab("Copies", device_tables.copies),
    "communication": TraceTab("Communication", device_tables.communication),
    "memory": TraceTab("Memory", device_tables.memory),
    "roofline": TraceTab("Roofline", roofline),
    "advice": TraceTab("Advice", device_tables.advice),
}
"""Key -> tab, in the order in which they stand and are made."""
