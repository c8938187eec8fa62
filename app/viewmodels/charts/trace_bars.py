"""Bars beside the tables of a trace: what took the time, by kind, module, device, cause, collective, graph."""

from collections.abc import Sequence
from dataclasses import dataclass

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.charts.bars import BarChart, BarPart, BarRow, Look, no_bars
from gptscope.app.viewmodels.charts.kernel_times import category_title
from gptscope.app.viewmodels.scales import linear_axis
from gptscope.profiling.trace.analysis import (
    CollectiveSums,
    DeviceUse,
    GapSums,
    GraphSums,
    Linked,
    ModuleSums,
    TensorCoreUse,
)

NO_DEVICE = "n/a: no device work was recorded (profiler activity CUDA), so there is no device to show."
_NS_PER_MS = 1e6


@dataclass(frozen=True)
class Piece:
    """One row of a table: its key, short name, kind of work and time."""

    key: str
    name: str
    category: str
    ns: int


def by_category(pieces: Sequence[Piece], empty: str) -> BarChart:
    """One bar per kind of work, made of the rows of the table, longest first."""
    groups: dict[str, list[Piece]] = {}
    for piece in pieces:
        if piece.ns > 0:
            groups.setdefault(piece.category, []).append(piece)
    whole = sum(piece.ns for piece in pieces)
    rows = []
    for category, inside in sorted(groups.items(), key=lambda item: -sum(one.ns for one in item[1])):
        inside.sort(key=lambda piece: -piece.ns)
        time = sum(piece.ns for piece in inside)
        parts = [
            BarPart(value=one.ns / _NS_PER_MS, look=category, key=one.key, label=f"{one.name}: {_ms(one.ns)}")
            for one in inside
        ]
        text = f"{_ms(time)}, {fmt.share(time / whole)}"
        rows.append(BarRow(name=category_title(category), key=inside[0].key, text=text, parts=tuple(parts)))
    return _chart(rows, empty)


def module_bars(modules: Sequence[ModuleSums], *, on_device: bool, empty: str) -> BarChart:
    """Modules by the time of their own operators, without the modules inside."""
    own: dict[str, int] = {one.path: one.device_self_ns if on_device else one.host_self_ns for one in modules}
    rows = []
    for path, ns in sorted(own.items(), key=lambda item: -item[1]):
        if ns > 0:
            name = path or "outside any module"
            part = BarPart(value=ns / _NS_PER_MS, look="base", key=path, label=f"{name}: {_ms(ns)}")
            short = ".".join(name.split(".")[-2:])
            rows.append(BarRow(name=short, key=path, text=_ms(ns), parts=(part,)))
    return _chart(rows, empty)


def tensor_core_bars(use: dict[str, TensorCoreUse], linked: Linked) -> BarChart:
    """Matrix products and attention: on tensor cores, beside them, or not to be told by the kernel's name."""
    if not linked.has_device:
        return no_bars("n/a: no device work was recorded; tensor cores are part of GPUs.")
    rows = []
    for category, one in use.items():
        if not one.eligible_ns:
            continue
        shares = ((one.used_ns, category, "on tensor cores"), (one.unused_ns, f"{category}:faint", "not on them"))
        text = "n/a: names do not tell" if one.used_share is None else fmt.percent(one.used_ns / one.eligible_ns)
        if one.unknown_ns and one.used_share is not None:
            text += f", {fmt.share(one.unknown_ns / one.eligible_ns)} not told"
        rows.append(
            _stacked(category_title(category), category, text, (*shares, (one.unknown_ns, "hollow", "cannot be told")))
        )
    legend = (("base", "on tensor cores"), ("base:faint", "not on them"), ("hollow", "cannot be told by the name"))
    empty = "n/a: this trace has neither matrix products nor attention on a device."
    return _chart(rows, empty, legend=legend)


def device_bars(devices: Sequence[DeviceUse]) -> BarChart:
    """Each device's window: one piece of work at a time, several at once, nothing. The parts add up to the window."""
    rows = [
        _stacked(
            f"GPU {one.device}",
            str(one.device),
            f"busy {fmt.percent(one.busy_share)}",
            (
                (one.busy_ns - one.overlap_ns, "accent", "busy with one"),
                (one.overlap_ns, "t1", "several at once"),
                (one.idle_ns, "hatch", "idle"),
            ),
        )
        for one in devices
    ]
    legend = (("accent", "busy with one piece of work"), ("t1", "several at once"), ("hatch", "idle"))
    return _chart(rows, NO_DEVICE, legend=legend)


def gap_bars(gaps: Sequence[GapSums]) -> BarChart:
    """Idle time by what it waited for; several devices each on their own."""
    several = len({one.device for one in gaps}) > 1
    whole = sum(one.total_ns for one in gaps)
    rows = []
    for one in sorted(gaps, key=lambda gap: -gap.total_ns):
        name = f"{one.cause}, GPU {one.device}" if several else one.cause
        key = f"{one.device}\n{one.cause}"
        label = f"{name}: {_ms(one.total_ns)} in {_gaps(one.gaps)}"
        part = BarPart(value=one.total_ns / _NS_PER_MS, look="hatch", key=key, label=label)
        text = f"{_ms(one.total_ns)}, {fmt.share(one.total_ns / whole if whole else 0.0)}"
        rows.append(BarRow(name=name, key=key, text=text, parts=(part,)))
    return _chart(rows, NO_DEVICE)


def collective_bars(collectives: Sequence[CollectiveSums]) -> BarChart:
    """Each collective's time: hidden behind other kernels or not."""
    rows = [
        _stacked(
            one.name,
            one.name,
            f"{_ms(one.total_ns)}, {fmt.percent(one.exposed_ns / one.total_ns if one.total_ns else 0.0)} exposed",
            (
                (one.exposed_ns, "communication", "exposed"),
                (one.total_ns - one.exposed_ns, "communication:faint", "hidden behind computation"),
            ),
        )
        for one in collectives
    ]
    legend = (("communication", "exposed: nothing else ran"), ("communication:faint", "hidden behind computation"))
    return _chart(rows, "n/a: no communication between devices was recorded.", legend=legend)


def graph_bars(graphs: Sequence[GraphSums], empty: str) -> BarChart:
    """Device time by the call that launched several kernels at once."""
    rows = []
    for one in graphs:
        each = fmt.number(one.kernels / one.launches)
        label = f"{one.name}: {_ms(one.device_ns)} in {fmt.count(one.launches)} launches of {each} kernels"
        part = BarPart(value=one.device_ns / _NS_PER_MS, look="base", key=one.name, label=label)
        text = f"{_ms(one.device_ns)}, {fmt.share(one.share)} of work"
        rows.append(BarRow(name=one.name, key=one.name, text=text, parts=(part,)))
    return _chart(rows, empty)


def _stacked(name: str, key: str, text: str, parts: Sequence[tuple[int, Look, str]]) -> BarRow:
    made = [
        BarPart(value=ns / _NS_PER_MS, look=look, key=key, label=f"{name}, {what}: {_ms(ns)}")
        for ns, look, what in parts
        if ns > 0
    ]
    return BarRow(name=name, key=key, text=text, parts=tuple(made))


def _chart(rows: Sequence[BarRow], empty: str, *, legend: tuple[tuple[Look, str], ...] = ()) -> BarChart:
    longest = max((row.length for row in rows), default=0.0)
    if longest <= 0:
        return no_bars(empty)
    return BarChart(
        axis=linear_axis(0, longest, unit="ms", title="milliseconds", exact=True),
        rows=tuple(rows),
        legend=legend,
        summary="; ".join(f"{row.name} {row.text}" for row in rows[:8]),
    )


def _ms(ns: float) -> str:
    return f"{fmt.number(ns / _NS_PER_MS)} ms"


def _gaps(count: int) -> str:
    return f"{fmt.count(count)} gap{'s' if count != 1 else ''}"
