"""What `gptscope trace` prints, and the same for programs."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gptscope.app.cli.console import Column, Console, Style
from gptscope.app.cli.trace_lanes import draw_lanes
from gptscope.app.viewmodels import formatting as f
from gptscope.profiling.printable import printable
from gptscope.profiling.trace import HealthNote
from gptscope.profiling.trace.analysis import (
    PARTS,
    KernelSums,
    Linked,
    TraceSummary,
    health_notes,
    kernel_sums,
    module_sums,
    operator_sums,
    step_times,
    summarise,
)

Document = dict[str, Any]
_HEALTH_STYLES: dict[str, Style] = {"missing": "dim", "ignored": "dim", "suspicious": "warn"}


def print_summary(console: Console, path: Path, linked: Linked, args: argparse.Namespace) -> Document:
    """Everything about one trace."""
    summary = summarise(linked)
    pairs = [
        ("Events", f"{f.count(summary.events)}, {f.count(summary.timed_events)} with a duration"),
        ("Time", _time(summary.span_ns)),
        ("Host", f"operators {_time(summary.host_busy_ns)}"),
    ]
    if summary.rank:
        pairs.append(("Rank", str(summary.rank)))
    for use in summary.devices:
        pairs.append((f"Device {use.device}", use.name or "n/a: the trace does not name it"))
        pairs.append(("", f"busy {_time(use.busy_ns)} of {_time(use.window_ns)} ({f.percent(use.busy_share)})"))
        talk = f"{_time(use.communication_ns)}, {_time(use.exposed_communication_ns)} exposed"
        pairs.append(("", f"compute {_time(use.compute_ns)}, copies {_time(use.copy_ns)}, communication {talk}"))
    if summary.launches.launched:
        waits = "n/a" if summary.launches.median_delay_ns is None else _time(summary.launches.median_delay_ns)
        launches = f"{f.count(summary.launches.launches)} for {f.count(summary.launches.launched)} kernels"
        pairs.append(("Launches", f"{launches}, median delay {waits}"))
    for memory in summary.memory:
        peak = f.quantity(memory.peak_bytes, "bytes", "no totals recorded")
        pairs.append((f"Memory {memory.device}", f"peak {peak}, {f.count(memory.allocations)} allocations"))
    if summary.tensor_cores.used_share is not None:
        pairs.append(
            ("Tensor cores", f"{f.percent(summary.tensor_cores.used_share)} of matrix products that can be told")
        )
    console.pairs(pairs, str(path))
    _print_steps(console, linked)
    _print_categories(console, summary)
    _print_kernels(console, summary.kernels, args.top, on_device=summary.has_device)
    _print_gaps(console, summary)
    if summary.advice:
        console.line()
        console.line("Advice", "title")
        for advice in summary.advice:
            console.line(f"  {printable(advice.sentence)}")
    _print_health(console, summary.health)
    return {"file": str(path), **_builtins(summary)}


def print_kernels(console: Console, path: Path, linked: Linked, args: argparse.Namespace) -> Document:
    """The kernel table."""
    rows = kernel_sums(linked)
    console.line(str(path), "title")
    _print_kernels(console, rows, args.top, on_device=linked.has_device)
    return {"file": str(path), "has_device": linked.has_device, "kernels": _builtins(rows)}


def print_operators(console: Console, path: Path, linked: Linked, args: argparse.Namespace) -> Document:
    """The operator table."""
    rows = operator_sums(linked, by_shape=args.by_shape)
    shown = rows[: args.top]
    columns = [Column("operator", "left", name=True), Column("category", "left", spare=3)]
    columns += [Column("shapes", "left", name=True)] if args.by_shape else []
    columns += [Column("calls"), Column("host self ms"), Column("host total ms", spare=2)]
    columns += [Column("device self ms"), Column("device total ms", spare=1)] if linked.has_device else []
    columns += [Column("module", "left", name=True, spare=4)] if any(row.module for row in shown) else []
    table = []
    for row in shown:
        cells = [row.name, row.category, *([row.shapes] if args.by_shape else []), f.count(row.calls)]
        cells += [_ms(row.host_self_ns), _ms(row.host_total_ns)]
        cells += [_ms(row.device_self_ns), _ms(row.device_total_ns)] if linked.has_device else []
        table.append([*cells, row.module][: len(columns)])
    console.table(columns, table, str(path))
    _print_rest(console, len(rows) - len(shown))
    return {"file": str(path), "has_device": linked.has_device, "operators": _builtins(rows)}


def print_modules(console: Console, path: Path, linked: Linked, args: argparse.Namespace) -> Document:
    """The module tree."""
    rows = module_sums(linked, collapse=not args.layers)
    if not rows:
        console.line(f"{path}: n/a: no modules recorded. Record with with_stack=True or with_modules=True.", "warn")
    else:
        columns = [Column("module", "left", name=True), Column("calls"), Column("share")]
        columns += [Column("host self ms", spare=2), Column("host total ms")]
        columns += [Column("device self ms", spare=1), Column("device total ms")] if linked.has_device else []
        table = []
        for row in rows[: args.top]:
            name = "  " * max(row.depth - 1, 0) + (row.path.rpartition(".")[2] or "outside modules")
            cells = [name, f.count(row.calls), f.percent(row.share), _ms(row.host_self_ns), _ms(row.host_total_ns)]
            table.append([*cells, _ms(row.device_self_ns), _ms(row.device_total_ns)][: len(columns)])
        console.table(columns, table, str(path))
        _print_rest(console, len(rows) - min(args.top, len(rows)))
    return {"file": str(path), "has_device": linked.has_device, "modules": _builtins(rows)}


def print_timeline(console: Console, path: Path, linked: Linked, _: argparse.Namespace) -> Document:
    """Tracks drawn with characters."""
    console.line(f"{path}, {_time(linked.span_ns[1] - linked.span_ns[0])}", "title")
    tracks = draw_lanes(console, linked)
    _print_steps(console, linked)
    steps = _builtins(step_times(linked))
    return {
        "file": str(path),
        "start_ns": linked.span_ns[0],
        "end_ns": linked.span_ns[1],
        "tracks": tracks,
        "steps": steps,
    }


def print_health(console: Console, path: Path, linked: Linked, _: argparse.Namespace) -> Document:
    """What is wrong with a trace."""
    notes = health_notes(linked)
    console.line(str(path), "title")
    if not notes:
        console.line("  Nothing is damaged, missing or suspicious.", "good")
    _print_health(console, notes, title=False)
    return {"file": str(path), "notes": _builtins(notes)}


def _print_kernels(console: Console, kernels: Sequence[KernelSums], top: int, *, on_device: bool) -> None:
    if not kernels:
        console.line("  no kernels and no operators recorded", "warn")
        return
    what = "kernel" if on_device else "operator"
    columns = [Column(what, "left", name=True), Column("category", "left", spare=1)]
    columns += [Column("calls"), Column("total ms")]
    columns += [Column("mean us"), Column("share")]
    rates = any(k.bytes_per_s or k.flops_per_s for k in kernels[:top])
    columns += [Column("GB/s"), Column("TFLOP/s")] if rates else []
    rows = []
    for k in kernels[:top]:
        cells = [k.short, k.category, f.count(k.calls), _ms(k.total_ns), f.number(k.mean_ns / 1e3), f.percent(k.share)]
        if rates:
            bandwidth, compute = k.bytes_per_s, k.flops_per_s
            cells.append(f.number(None if bandwidth is None else bandwidth / 1e9))
            cells.append(f.number(None if compute is None else compute / 1e12))
        rows.append(cells)
    console.line()
    console.table(columns, rows, "Kernels" if on_device else "Operators by their own time")
    _print_rest(console, len(kernels) - len(rows))


def _print_categories(console: Console, summary: TraceSummary) -> None:
    if summary.categories:
        console.line()
        rows = [[c.category, f.count(c.calls), _ms(c.total_ns), f.percent(c.share)] for c in summary.categories]
        columns = [Column("category", "left"), Column("calls"), Column("total ms"), Column("share")]
        console.table(columns, rows, "Kinds of work")


def _print_steps(console: Console, linked: Linked) -> None:
    steps = step_times(linked)
    if not steps:
        return
    used = [part for part in PARTS if any(step.parts_ns[part] for step in steps)]
    rows = [
        [step.name, _ms(step.wall_ns), *(_ms(step.parts_ns[part]) for part in used)] for step in steps[:_MOST_STEPS]
    ]
    console.line()
    columns = [Column("step", "left"), Column("wall ms"), *(Column(part) for part in used)]
    console.table(columns, rows, "Steps (parts add up; device work hides what the host did meanwhile)")
    _print_rest(console, len(steps) - len(rows))


def _print_gaps(console: Console, summary: TraceSummary) -> None:
    if summary.gaps:
        console.line()
        rows = [
            [str(g.device), g.cause, f.count(g.gaps), _ms(g.total_ns), f.number(g.median_ns / 1e3), g.meaning]
            for g in summary.gaps
        ]
        columns = [Column("device"), Column("idle because", "left"), Column("gaps"), Column("total ms")]
        console.table([*columns, Column("median us"), Column("that is", "left", name=True)], rows, "Idle devices")


def _print_health(console: Console, notes: Sequence[HealthNote], *, title: bool = True) -> None:
    if notes and title:
        console.line()
        console.line("Health", "title")
    for note in notes:
        where = "" if note.byte_offset is None else f", first at byte {note.byte_offset}"
        times = f"{f.count(note.count)} x " if note.count > 1 else ""
        console.line(f"  {note.kind}: {times}{printable(note.message)}{where}", _HEALTH_STYLES.get(note.kind, "warn"))


def _print_rest(console: Console, rest: int) -> None:
    if rest > 0:
        console.line(f"  {f.count(rest)} more", "dim")


def _builtins(value: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(value)


def _ms(ns: float) -> str:
    return f.number(ns / 1e6)


def _time(ns: float) -> str:
    return f.duration(ns / 1e9)


_MOST_STEPS = 12
ACTIONS: dict[str, Callable[[Console, Path, Linked, argparse.Namespace], Document]] = {
    "summary": print_summary,
    "kernels": print_kernels,
    "operators": print_operators,
    "modules": print_modules,
    "timeline": print_timeline,
    "health": print_health,
}
