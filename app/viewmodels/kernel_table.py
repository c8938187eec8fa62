"""Kernel and module tables of a profile, beside the baseline's."""

from collections.abc import Sequence

import numpy as np

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.charts.kernel_times import per_unit
from gptscope.app.viewmodels.columns import bar, categories, floats, numbers, percents, speedups, text
from gptscope.app.viewmodels.kernel_match import baseline_ms, row_key, shown_name
from gptscope.app.viewmodels.tables import Column, Floats, Table, calls_text
from gptscope.profiling.metrics.mfu_mbu import memory_peak_gbps
from gptscope.profiling.metrics.roofline import kernel_gbps
from gptscope.profiling.records import KernelRow, Peaks, Profile

OUTSIDE = "outside any module"
NO_PROFILE = "Kernels appear here after a profiled run: press Run, or reopen one from History."


def kernel_table(profile: Profile | None, baseline: Profile | None, peaks: Peaks | None, kind: str) -> Table:
    """Every kernel with time per step, bytes and speed; `of peak` needs the measured peak."""
    unit = per_unit(kind)
    if profile is None:
        return Table(columns=_headings(unit), rows=0, empty=NO_PROFILE)
    rows = profile.kernels
    steps = max(profile.steps, 1)
    self_ms = floats([row.self_time_us / 1e3 / steps for row in rows])
    calls = floats([row.calls / steps for row in rows])
    mean_us = [row.self_time_us / max(row.calls, 1) for row in rows]
    columns = (
        text("Kernel", [shown_name(row) for row in rows], width=240, stretch=True),
        categories([row.category for row in rows], width=92),
        text("Module", [row.module for row in rows], width=190),
        numbers("Calls", calls, shown=calls_text, width=56, tip=f"Calls per {unit}", adds=True),
        numbers("Self ms", self_ms, width=80, strong=True, tip=f"Self time per {unit}", adds=True),
        bar(f"Share of {unit}", [row.share for row in rows], adds=True),
        numbers("Mean µs", mean_us, width=70),
        *_traffic_columns(rows, peaks),
        *(_baseline_columns(rows, self_ms, baseline) if baseline is not None else ()),
        text("Shapes", [row.input_shapes for row in rows], width=150, missing=""),
    )
    footer = [""] * len(columns)
    footer[0] = f"{fmt.count(len(rows))} kernels, {profile.steps} profiled {unit}s"
    footer[3], footer[4], footer[5] = calls_text(float(calls.sum())), fmt.number(float(self_ms.sum())), "100 %"
    return Table(
        columns=columns,
        rows=len(rows),
        categories=[row.category for row in rows],
        keys=[row_key(row) for row in rows],
        searched=[f"{row.label} {row.name} {row.category} {row.module} {row.input_shapes}".casefold() for row in rows],
        footer=tuple(footer),
        default_sort=4,
        empty=NO_PROFILE,
    )


def _traffic_columns(rows: Sequence[KernelRow], peaks: Peaks | None) -> tuple[Column, ...]:
    """Modelled bytes, their rate, and the rate beside the measured memory bandwidth."""
    per_call_mb = [row.bytes / max(row.calls, 1) / 1e6 if row.bytes is not None else None for row in rows]
    gbps = floats([kernel_gbps(row) for row in rows])
    peak, _ = memory_peak_gbps(peaks)
    of_peak = gbps / peak if peak else np.full(len(rows), np.nan)
    return (
        numbers("MB per call", per_call_mb, width=84, tip="Modelled: each input read once, each output written once"),
        numbers(
            "GB/s",
            gbps,
            width=62,
            tip="Modelled bytes over total time: an operator's bytes include what runs inside it",
        ),
        percents(
            "of peak",
            of_peak,
            width=66,
            tip="Of the measured memory bandwidth; above 100 %: cache-resident or model wrong",
        ),
    )


def _baseline_columns(rows: Sequence[KernelRow], self_ms: Floats, baseline: Profile) -> tuple[Column, ...]:
    base_ms = floats(baseline_ms(rows, baseline))
    with np.errstate(divide="ignore", invalid="ignore"):
        speedup = np.where(self_ms > 0, base_ms / self_ms, np.nan)
    return (
        numbers("Base ms", base_ms, width=70),
        speedups("Speedup", speedup),
    )


def module_table(profile: Profile | None, baseline: Profile | None, kind: str) -> Table:
    """Self time added up by module; layers that only differ by number are together as `*`."""
    unit = per_unit(kind)
    if profile is None:
        return Table(columns=_headings(unit), rows=0, empty=NO_PROFILE)
    totals, base = _by_module(profile), _by_module(baseline) if baseline is not None else {}
    names = list(totals)
    ms = floats([totals[name][0] for name in names])
    calls = floats([totals[name][1] for name in names])
    share = ms / ms.sum() if ms.sum() > 0 else ms
    columns = [
        text("Module", names, width=320, stretch=True),
        numbers("Kernels", calls, shown=calls_text, width=80, tip=f"Kernel calls per {unit}", adds=True),
        numbers("Self ms", ms, width=80, strong=True, tip=f"Self time of its kernels per {unit}", adds=True),
        bar(f"Share of {unit}", share, width=200, adds=True),
    ]
    footer = [f"{len(names)} modules", fmt.number(float(calls.sum())), fmt.number(float(ms.sum())), "100 %"]
    if baseline is not None:
        columns.append(numbers("Base ms", [base[name][0] if name in base else None for name in names], width=80))
        footer.append("")
    return Table(
        columns=tuple(columns),
        rows=len(names),
        keys=names,
        searched=[name.casefold() for name in names],
        footer=tuple(footer),
        default_sort=2,
        empty=NO_PROFILE,
    )


def _by_module(profile: Profile) -> dict[str, tuple[float, float]]:
    totals: dict[str, tuple[float, float]] = {}
    steps = max(profile.steps, 1)
    for row in profile.kernels:
        name = module_of(row)
        ms, calls = totals.get(name, (0.0, 0.0))
        totals[name] = (ms + row.self_time_us / 1e3 / steps, calls + row.calls / steps)
    return totals


def module_of(row: KernelRow) -> str:
    """The module table's row that a kernel is counted in."""
    return starred(row.module) or OUTSIDE


def starred(module: str) -> str:
    """`blocks.3.attn` -> `blocks.*.attn`."""
    return ".".join("*" if part.isdigit() else part for part in module.split("."))


def _headings(unit: str) -> tuple[Column, ...]:
    titles = ("Kernel", "Category", "Module", "Calls", "Self ms", f"Share of {unit}")
    return tuple(Column(title=title, values=(), text=lambda _i: "", width=120) for title in titles)
