"""Tabs about devices: idle gaps, use, launches, graphs, copies, communication, memory; and what would help."""

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.charts import trace_bars, trace_plots
from gptscope.app.viewmodels.charts.trace_columns import delay_columns
from gptscope.app.viewmodels.columns import (
    NS_PER_MS,
    NS_PER_US,
    bar,
    counts,
    many,
    numbers,
    percents,
    sizes,
    table,
    text,
)
from gptscope.app.viewmodels.tables import total_of
from gptscope.app.viewmodels.trace_page import TraceChart, TracePage
from gptscope.profiling.trace.analysis import (
    Linked,
    advise,
    collective_sums,
    copy_sums,
    device_memory,
    device_use,
    gap_sums,
    graph_sums,
    launch_calls,
    launch_sums,
    operator_memory,
)
from gptscope.profiling.trace.names import short_name


def gaps(linked: Linked) -> TracePage:
    """Why devices were idle."""
    rows = gap_sums(linked)
    total = sum(row.total_ns for row in rows)
    columns = [
        text("Cause", [row.cause for row in rows], width=150),
        text("Device", [f"GPU {row.device}" for row in rows], width=70),
        counts("Gaps", [row.gaps for row in rows], adds=True),
        numbers("Total ms", [row.total_ns for row in rows], scale=NS_PER_MS, strong=True, width=88, adds=True),
        bar("Share of idle time", [row.total_ns / total if total else 0.0 for row in rows], adds=True),
        numbers("Median µs", [row.median_ns for row in rows], scale=NS_PER_US, width=95),
        numbers("Longest µs", [row.longest_ns for row in rows], scale=NS_PER_US, width=102),
        text("What it means", [row.meaning for row in rows], width=440, stretch=True),
    ]
    keys = [f"{row.device}\n{row.cause}" for row in rows]
    footer = {
        0: "all gaps",
        2: fmt.count(sum(row.gaps for row in rows)),
        3: fmt.number(total / NS_PER_MS),
        4: "100 %",
    }
    empty = "No device work was recorded, so there are no gaps between it."
    made = table(columns, keys, sort=3, footer=footer, empty=empty)
    chart = TraceChart("Idle gaps by cause", "ms between two pieces of work", trace_bars.gap_bars(rows))
    longest = [(row.longest_start_ns, row.longest_start_ns + row.longest_ns) for row in rows]
    return TracePage(made, chart, dict(zip(keys, longest, strict=True)))


def devices(linked: Linked) -> TracePage:
    """How busy each device was."""
    rows = device_use(linked)
    columns = [
        text("Device", [f"GPU {row.device}" + (f", {row.name}" if row.name else "") for row in rows], stretch=True),
        counts("Streams", [row.streams for row in rows], width=81),
        counts("Pieces of work", [row.kernels for row in rows], width=130),
        numbers("Window ms", [row.window_ns for row in rows], scale=NS_PER_MS, width=95, tip="First to last work"),
        numbers(
            "Busy ms", [row.busy_ns for row in rows], scale=NS_PER_MS, strong=True, tip="Union: overlaps once", width=81
        ),
        percents("Busy", [row.busy_ns / row.window_ns if row.window_ns else None for row in rows]),
        numbers("Idle ms", [row.idle_ns for row in rows], scale=NS_PER_MS, width=81),
        numbers("Overlap ms", [row.overlap_ns for row in rows], scale=NS_PER_MS, width=102),
        numbers("Compute ms", [row.compute_ns for row in rows], scale=NS_PER_MS, width=102),
        numbers("Copies ms", [row.copy_ns for row in rows], scale=NS_PER_MS, width=95),
        numbers("Communication ms", [row.communication_ns for row in rows], scale=NS_PER_MS, width=144),
        numbers(
            "Exposed comm. ms",
            [row.exposed_communication_ns for row in rows],
            scale=NS_PER_MS,
            width=144,
            tip="Communication while nothing was computed",
        ),
    ]
    made = table(columns, [str(row.device) for row in rows], empty="No device work was recorded.", sortable=False)
    tip = "From the first to the last work of each device; the parts add up to that window."
    return TracePage(made, TraceChart("Busy, overlapping, idle", "ms", trace_bars.device_bars(rows), tip=tip))


def launches(linked: Linked) -> TracePage:
    """How long the device took to begin what the host launched, by runtime call."""
    rows = launch_calls(linked)
    columns = [
        text("Call", [row.name for row in rows], width=190, stretch=True),
        counts("Launches", [row.launches for row in rows], width=88, adds=True),
        counts("Pieces of work", [row.launched for row in rows], width=130, adds=True),
        numbers("Median delay µs", [row.median_delay_ns for row in rows], scale=NS_PER_US, width=137, strong=True,
                tip="From the launch's beginning to that of its first work"),
        numbers("p95 delay µs", [row.p95_delay_ns for row in rows], scale=NS_PER_US, width=116),
        numbers("Longest µs", [row.longest_delay_ns for row in rows], scale=NS_PER_US, width=102),
        percents("Empty queue", [row.empty_queue_share for row in rows], width=109,
                 tip="Share that began within 15 µs: the device was waiting for it"),
        numbers("In calls ms", [row.call_ns for row in rows], scale=NS_PER_MS, width=109, tip="Time of the host",
                adds=True),
        numbers("Median call µs", [row.median_call_ns for row in rows], scale=NS_PER_US, width=130),
    ]  # fmt: skip
    every = launch_sums(linked)
    footer = {
        0: "all launches",
        1: fmt.count(every.launches),
        2: fmt.count(every.launched),
        3: fmt.number(None if every.median_delay_ns is None else every.median_delay_ns / NS_PER_US),
        4: fmt.number(None if every.p95_delay_ns is None else every.p95_delay_ns / NS_PER_US),
        6: fmt.percent(every.empty_queue_share),
        7: fmt.number(every.call_ns / NS_PER_MS),
        8: fmt.number(None if every.median_call_ns is None else every.median_call_ns / NS_PER_US),
    }
    chart = delay_columns(linked)
    why = chart.empty.removeprefix("n/a: ")
    empty = why[:1].upper() + why[1:]
    made = table(columns, [row.name for row in rows], sort=1, footer=footer, empty=empty)
    source = "number of launches"
    chip = f"{fmt.count(every.negative_delays)} before their launch" if every.negative_delays else ""
    return TracePage(made, TraceChart("Launch delays", source, chart, chip=chip))


def graphs(linked: Linked) -> TracePage:
    """CUDA and HIP graphs, and other calls that launched several kernels at once."""
    rows = graph_sums(linked)
    columns = [
        text("Launched by", [row.name for row in rows], width=240, stretch=True),
        counts("Launches", [row.launches for row in rows], width=88, adds=True),
        counts("Kernels", [row.kernels for row in rows], width=81),
        numbers("Per launch", [row.kernels / row.launches for row in rows], width=102),
        counts("Most at once", [row.most_kernels for row in rows], width=116),
        numbers("Device ms", [row.device_ns for row in rows], scale=NS_PER_MS, width=95, strong=True),
        bar("Share of work", [row.share for row in rows], tip="Of all device work"),
    ]
    empty = "No graph was launched: every kernel had a launch of its own."
    if not linked.has_device or not (linked.launch >= 0).any():
        empty = "No launches of device work were recorded, so graphs cannot be told."
    made = table(columns, [row.name for row in rows], sort=5, empty=empty)
    bars = trace_bars.graph_bars(rows, f"n/a: {empty[0].lower()}{empty[1:]}")
    return TracePage(made, TraceChart("Work launched as graphs", "ms of device work", bars))


def copies(linked: Linked) -> TracePage:
    """Copies and fills with their bandwidth."""
    rows = copy_sums(linked)
    moved = sizes("", [row.bytes for row in rows], tip="As the device counted", adds=True)
    columns = [
        text("Copy", [row.name for row in rows], width=260, stretch=True),
        counts("Calls", [row.calls for row in rows], width=67, adds=True),
        numbers("Total ms", [row.total_ns for row in rows], scale=NS_PER_MS, strong=True, width=88, adds=True),
        moved,
        numbers("GB/s", [row.bytes_per_s for row in rows], scale=1e9),
        text("Host memory", ["not pinned" if row.pageable else "pinned or none" for row in rows], width=110),
    ]
    footer = {
        0: many(len(rows), "kind of copy or fill", "kinds of copies and fills"),
        1: fmt.count(sum(row.calls for row in rows)),
        2: fmt.number(sum(row.total_ns for row in rows) / NS_PER_MS),
        3: total_of(moved) or fmt.unknown(),
    }
    empty = "No copies or fills were recorded on a device."
    made = table(columns, [row.name for row in rows], sort=2, footer=footer, empty=empty)
    shown = trace_plots.copy_points(linked)
    tip = "Copies and fills of one name and size together, as the device counted their bytes."
    return TracePage(made, TraceChart("Copies by size", "GB/s", shown, tip=tip))


def communication(linked: Linked) -> TracePage:
    """Collectives, and how much of them no computation hides."""
    rows = collective_sums(linked)
    exposed = [row.exposed_ns / row.total_ns if row.total_ns else None for row in rows]
    columns = [
        text("Collective", [row.name for row in rows], width=260, stretch=True),
        counts("Calls", [row.calls for row in rows], width=67, adds=True),
        numbers("Total ms", [row.total_ns for row in rows], scale=NS_PER_MS, strong=True, width=88, adds=True),
        numbers(
            "Exposed ms",
            [row.exposed_ns for row in rows],
            scale=NS_PER_MS,
            width=102,
            tip="Nothing else ran",
            adds=True,
        ),
        percents("Exposed", exposed, width=81),
        numbers("Mean µs", [row.mean_ns for row in rows], scale=NS_PER_US, width=81),
        numbers("Longest µs", [row.longest_ns for row in rows], scale=NS_PER_US, width=102),
    ]
    empty = "No communication between devices was recorded."
    total, bare = sum(row.total_ns for row in rows), sum(row.exposed_ns for row in rows)
    footer = {
        0: many(len(rows), "collective"),
        1: fmt.count(sum(row.calls for row in rows)),
        2: fmt.number(total / NS_PER_MS),
        3: fmt.number(bare / NS_PER_MS),
        4: fmt.percent(bare / total if total else 0.0),
    }
    made = table(columns, [row.name for row in rows], sort=2, footer=footer, empty=empty)
    tip = "Exposed: while no other kernel ran on the device."
    return TracePage(made, TraceChart("Overlap with computation", "ms", trace_bars.collective_bars(rows), tip=tip))


def memory(linked: Linked) -> TracePage:
    """Who allocated how much, over all devices."""
    rows = operator_memory(linked)
    found = device_memory(linked)
    peaks = [f"{one.device}: peak {fmt.quantity(one.peak_bytes, 'bytes', 'totals were not recorded')}" for one in found]
    if found and all(one.peak_bytes is None for one in found):
        peaks = ["peaks n/a: totals were not recorded"]
    columns = [
        text("Operator", [short_name(row.operator) for row in rows], width=300, stretch=True),
        counts("Allocations", [row.allocations for row in rows], width=109),
        sizes("Allocated", [row.allocated_bytes for row in rows], width=116, strong=True),
        sizes("Largest", [row.largest_bytes for row in rows], width=102),
    ]
    footer = {0: "; ".join(peaks)} if peaks else None
    empty = "No allocations were recorded (profiler option profile_memory)."
    made = table(columns, [row.operator for row in rows], sort=2, footer=footer, empty=empty)
    chart = TraceChart(
        "Memory over time",
        "allocated",
        trace_plots.memory_lines(linked),
        read_out=trace_plots.memory_at,
        tip="What torch's allocators had given out, over the time from the beginning.",
    )
    return TracePage(made, chart)


def advice(linked: Linked) -> TracePage:
    """What would help, with the numbers behind it."""
    rows = advise(linked)
    columns = [
        text("About", [row.topic for row in rows], width=150),
        text("What the trace says", [row.sentence for row in rows], width=700, stretch=True),
        percents("Share of time", [row.weight for row in rows], width=123, tip="Share of the time that it is about"),
    ]
    made = table(columns, [row.topic for row in rows], sort=2, empty="The numbers of this trace call for no advice.")
    return TracePage(made)
