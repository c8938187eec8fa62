"""Tables of an opened trace, each made from one analysis, on a thread; a row's key leads back to the timeline."""

from collections.abc import Callable
from dataclasses import dataclass

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.tables import Table
from gptscope.app.viewmodels.trace_columns import (
    NS_PER_MS,
    NS_PER_US,
    bar,
    categories,
    counts,
    numbers,
    percents,
    table,
    text,
)
from gptscope.profiling.trace.analysis import (
    PARTS,
    Linked,
    collective_sums,
    copy_sums,
    gap_sums,
    kernel_sums,
    module_sums,
    operator_sums,
    step_times,
)
from gptscope.profiling.trace.analysis.advice import advise
from gptscope.profiling.trace.analysis.memory import device_memory, operator_memory
from gptscope.profiling.trace.analysis.utilisation import device_use
from gptscope.profiling.trace.names import short_name


@dataclass(frozen=True)
class TraceTable:
    """One tab: what it is called and how its table is made."""

    title: str
    make: Callable[[Linked], Table]


def kernels(linked: Linked) -> Table:
    """Kernels by name, or without device work operators by their own time."""
    rows = kernel_sums(linked)
    what = "kernels, copies and fills" if linked.has_device else "operators by their own time"
    total, calls = sum(row.total_ns for row in rows), sum(row.calls for row in rows)
    rate = [row.bytes / (row.total_ns / 1e9) / 1e9 if row.bytes and row.total_ns else None for row in rows]
    flops = [row.flops / (row.total_ns / 1e9) / 1e12 if row.flops and row.total_ns else None for row in rows]
    tensor = {True: "yes", False: "no", None: "n/a"}
    columns = [
        text("Kernel" if linked.has_device else "Operator", [row.short for row in rows], width=300, stretch=True),
        categories([row.category for row in rows]),
        text("Module", [row.module for row in rows], width=180, tip="Where most of its time belongs"),
        counts("Calls", [row.calls for row in rows]),
        numbers("Total ms", [row.total_ns for row in rows], scale=NS_PER_MS, strong=True),
        bar("Share of work", [row.share for row in rows]),
        numbers("Mean µs", [row.mean_ns for row in rows], scale=NS_PER_US),
        numbers("Longest µs", [row.max_ns for row in rows], scale=NS_PER_US, width=84),
        numbers("GB/s", rate, tip="Modelled bytes from the recorded shapes over time"),
        numbers("TFLOP/s", flops, tip="Modelled from the recorded shapes"),
    ]
    if linked.has_device:
        columns.append(text("Tensor cores", [tensor[row.tensor_cores] for row in rows], width=90, tip="By its name"))
        columns.append(text("Operator", [short_name(row.operator) if row.operator else "" for row in rows], width=150))
    return table(
        columns,
        [f"{row.name}\n{row.category}" for row in rows],
        swatches=[row.category for row in rows],
        sort=4,
        footer={0: f"{fmt.count(len(rows))} {what}", 3: fmt.count(calls), 4: fmt.number(total / NS_PER_MS), 5: "100 %"},
        empty="This trace has neither device work nor operators.",
    )


def operators(linked: Linked) -> Table:
    """Operators by name and shapes."""
    rows = operator_sums(linked, by_shape=True)
    own = sum(row.host_self_ns for row in rows)
    columns = [
        text("Operator", [row.short for row in rows], width=220, stretch=True),
        categories([row.category for row in rows]),
        text("Shapes", [row.shapes for row in rows], width=200),
        text("Module", [row.module for row in rows], width=170, tip="Where most of its time belongs"),
        counts("Calls", [row.calls for row in rows]),
        numbers("Self ms", [row.host_self_ns for row in rows], scale=NS_PER_MS, strong=True, tip="On the host"),
        numbers("Total ms", [row.host_total_ns for row in rows], scale=NS_PER_MS, tip="With the operators inside"),
    ]
    if linked.has_device:
        columns += [
            numbers(
                "Device self ms",
                [row.device_self_ns for row in rows],
                scale=NS_PER_MS,
                width=100,
                tip="Of the kernels that it launched itself",
            ),
            numbers("Device total ms", [row.device_total_ns for row in rows], scale=NS_PER_MS, width=104),
        ]
    return table(
        columns,
        [f"{row.name}\n{row.shapes}" for row in rows],
        swatches=[row.category for row in rows],
        sort=7 if linked.has_device else 5,
        footer={0: f"{fmt.count(len(rows))} operators", 5: fmt.number(own / NS_PER_MS)},
        empty="No operators were recorded (profiler activity CPU).",
    )


def modules(linked: Linked) -> Table:
    """Modules as a tree, layers counted together."""
    rows = module_sums(linked)
    columns = [
        text(
            "Module", ["    " * row.depth + (row.path or "outside any module") for row in rows], width=320, stretch=True
        ),
        counts("Calls", [row.calls for row in rows]),
        numbers("Host self ms", [row.host_self_ns for row in rows], scale=NS_PER_MS, width=92),
        numbers("Host total ms", [row.host_total_ns for row in rows], scale=NS_PER_MS, width=96),
    ]
    if linked.has_device:
        columns += [
            numbers("Device self ms", [row.device_self_ns for row in rows], scale=NS_PER_MS, width=100),
            numbers("Device total ms", [row.device_total_ns for row in rows], scale=NS_PER_MS, width=104),
        ]
    columns.append(bar("Share of work", [row.share for row in rows], tip="With the modules inside"))
    empty = "No modules were recorded: use with_modules or with_stack, or profile with gptscope."
    return table(columns, [row.path for row in rows], empty=empty, sortable=False)


def steps(linked: Linked) -> Table:
    """What each step's time went to."""
    rows = step_times(linked)
    columns = [
        text("Step", [row.name + ("" if row.finished else " (cut off)") for row in rows], width=180, stretch=True),
        numbers("Wall ms", [row.wall_ns for row in rows], scale=NS_PER_MS, strong=True),
        numbers("Device busy ms", [row.device_busy_ns for row in rows], scale=NS_PER_MS, width=104),
        *(
            numbers(f"{part} ms", [row.parts_ns.get(part, 0) for row in rows], scale=NS_PER_MS, width=110)
            for part in PARTS
        ),
    ]
    keys = [f"{row.start_ns}\n{row.start_ns + row.wall_ns}" for row in rows]
    return table(columns, keys, empty="This trace marks no steps.", sortable=False)


def gaps(linked: Linked) -> Table:
    """Why devices were idle."""
    rows = gap_sums(linked)
    total = sum(row.total_ns for row in rows)
    columns = [
        text("Cause", [row.cause for row in rows], width=150),
        text("What it means", [row.meaning for row in rows], width=420, stretch=True),
        text("Device", [f"GPU {row.device}" for row in rows], width=70),
        counts("Gaps", [row.gaps for row in rows]),
        numbers("Total ms", [row.total_ns for row in rows], scale=NS_PER_MS, strong=True),
        bar("Share of idle time", [row.total_ns / total if total else 0.0 for row in rows]),
        numbers("Median µs", [row.median_ns for row in rows], scale=NS_PER_US, width=80),
        numbers("Longest µs", [row.longest_ns for row in rows], scale=NS_PER_US, width=84),
    ]
    keys = [f"{row.device}\n{row.cause}" for row in rows]
    return table(columns, keys, sort=4, empty="No device work was recorded, so there are no gaps between it.")


def copies(linked: Linked) -> Table:
    """Copies and fills with their bandwidth."""
    rows = copy_sums(linked)
    columns = [
        text("Copy", [row.name for row in rows], width=260, stretch=True),
        counts("Calls", [row.calls for row in rows]),
        numbers("Total ms", [row.total_ns for row in rows], scale=NS_PER_MS, strong=True),
        numbers("MB", [row.bytes for row in rows], scale=1e6, tip="As the device counted"),
        numbers("GB/s", [row.bytes_per_s for row in rows], scale=1e9),
        text("Host memory", ["not pinned" if row.pageable else "pinned or none" for row in rows], width=110),
    ]
    return table(columns, [row.name for row in rows], sort=2, empty="No copies or fills were recorded on a device.")


def communication(linked: Linked) -> Table:
    """Collectives, and how much of them no computation hides."""
    rows = collective_sums(linked)
    exposed = [row.exposed_ns / row.total_ns if row.total_ns else None for row in rows]
    columns = [
        text("Collective", [row.name for row in rows], width=260, stretch=True),
        counts("Calls", [row.calls for row in rows]),
        numbers("Total ms", [row.total_ns for row in rows], scale=NS_PER_MS, strong=True),
        numbers("Exposed ms", [row.exposed_ns for row in rows], scale=NS_PER_MS, width=90, tip="Nothing else ran"),
        percents("Exposed", exposed),
        numbers("Mean µs", [row.mean_ns for row in rows], scale=NS_PER_US),
        numbers("Longest µs", [row.longest_ns for row in rows], scale=NS_PER_US, width=84),
    ]
    empty = "No communication between devices was recorded."
    return table(columns, [row.name for row in rows], sort=2, empty=empty)


def devices(linked: Linked) -> Table:
    """How busy each device was."""
    rows = device_use(linked)
    columns = [
        text("Device", [f"GPU {row.device}" + (f", {row.name}" if row.name else "") for row in rows], stretch=True),
        counts("Streams", [row.streams for row in rows]),
        counts("Pieces of work", [row.kernels for row in rows], width=100),
        numbers("Window ms", [row.window_ns for row in rows], scale=NS_PER_MS, width=84, tip="First to last work"),
        numbers("Busy ms", [row.busy_ns for row in rows], scale=NS_PER_MS, strong=True, tip="Union: overlaps once"),
        percents("Busy", [row.busy_ns / row.window_ns if row.window_ns else None for row in rows]),
        numbers("Idle ms", [row.idle_ns for row in rows], scale=NS_PER_MS),
        numbers("Overlap ms", [row.overlap_ns for row in rows], scale=NS_PER_MS, width=84),
        numbers("Compute ms", [row.compute_ns for row in rows], scale=NS_PER_MS, width=86),
        numbers("Copies ms", [row.copy_ns for row in rows], scale=NS_PER_MS),
        numbers("Communication ms", [row.communication_ns for row in rows], scale=NS_PER_MS, width=124),
    ]
    return table(columns, [str(row.device) for row in rows], empty="No device work was recorded.", sortable=False)


def memory(linked: Linked) -> Table:
    """Who allocated how much, over all devices."""
    rows = operator_memory(linked)
    peaks = [
        f"{one.device}: peak {fmt.quantity(one.peak_bytes, 'bytes', 'totals were not recorded')}"
        for one in device_memory(linked)
    ]
    columns = [
        text("Operator", [row.operator for row in rows], width=300, stretch=True),
        counts("Allocations", [row.allocations for row in rows], width=90),
        numbers("Allocated MB", [row.allocated_bytes for row in rows], scale=1e6, width=100, strong=True),
        numbers("Largest MB", [row.largest_bytes for row in rows], scale=1e6, width=90),
    ]
    footer = {0: "; ".join(peaks)} if peaks else None
    empty = "No allocations were recorded (profiler option profile_memory)."
    return table(columns, [row.operator for row in rows], sort=2, footer=footer, empty=empty)


def advice(linked: Linked) -> Table:
    """What would help, with the numbers behind it."""
    rows = advise(linked)
    columns = [
        text("About", [row.topic for row in rows], width=150),
        text("What the trace says", [row.sentence for row in rows], width=700, stretch=True),
        percents("Share of time", [row.weight for row in rows], width=100, tip="Share of the time that it is about"),
    ]
    return table(columns, [row.topic for row in rows], sort=2, empty="The numbers of this trace call for no advice.")


TABLES: dict[str, TraceTable] = {
    "kernels": TraceTable("Kernels", kernels),
    "operators": TraceTable("Operators", operators),
    "modules": TraceTable("Modules", modules),
    "steps": TraceTable("Steps", steps),
    "gaps": TraceTable("Gaps", gaps),
    "advice": TraceTable("Advice", advice),
    "devices": TraceTable("Devices", devices),
    "copies": TraceTable("Copies", copies),
    "communication": TraceTable("Communication", communication),
    "memory": TraceTable("Memory", memory),
}
"""Key -> tab, in the order in which they stand and are made."""
