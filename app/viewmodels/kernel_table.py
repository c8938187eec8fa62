"""Kernel and module tables of a profile, beside the baseline's."""

from collections.abc import Sequence

import numpy as np

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.charts.kernel_times import category_title, per_unit
from gptscope.app.viewmodels.kernel_match import baseline_ms, row_key, shown_name
from gptscope.app.viewmodels.tables import Column, Table, calls_text
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
    self_ms = _floats([row.self_time_us / 1e3 / steps for row in rows])
    mean_us = _floats([row.self_time_us / max(row.calls, 1) for row in rows])
    calls = _floats([row.calls / steps for row in rows])
    per_call_mb = _floats([row.bytes / max(row.calls, 1) / 1e6 if row.bytes is not None else np.nan for row in rows])
    gbps = _floats([np.nan if (rate := kernel_gbps(row)) is None else rate for row in rows])
    peak, _ = memory_peak_gbps(peaks)
    of_peak = gbps / peak if peak else np.full(len(rows), np.nan)
    share = _floats([row.share for row in rows])
    base_ms = _floats([np.nan if ms is None else ms for ms in baseline_ms(rows, baseline)])
    with np.errstate(divide="ignore", invalid="ignore"):
        speedup = np.where(self_ms > 0, base_ms / self_ms, np.nan)
    names = [shown_name(row) for row in rows]
    columns = [
        Column(title="Kernel", values=names, text=lambda i: names[i], width=240, stretch=True),
        Column(
            title="Category",
            values=[category_title(r.category) for r in rows],
            text=lambda i: category_title(rows[i].category),
            width=92,
        ),
        Column(title="Module", values=[r.module for r in rows], text=lambda i: rows[i].module or "n/a", width=190),
        Column(
            title="Calls",
            values=calls,
            text=lambda i: calls_text(float(calls[i])),
            look="number",
            width=56,
            tip=f"Calls per {unit}",
        ),
        Column(
            title="Self ms",
            values=self_ms,
            text=lambda i: fmt.number(float(self_ms[i])),
            look="number",
            width=80,
            strong=True,
            tip=f"Self time per {unit}",
        ),
        Column(
            title=f"Share of {unit}", values=share, text=lambda i: fmt.percent(float(share[i])), look="bar", width=140
        ),
        Column(title="Mean µs", values=mean_us, text=lambda i: fmt.number(float(mean_us[i])), look="number", width=70),
        Column(
            title="MB per call",
            values=per_call_mb,
            text=lambda i: _or_na(per_call_mb[i]),
            look="number",
            width=84,
            tip="Modelled: each input read once, each output written once",
        ),
        Column(
            title="GB/s",
            values=gbps,
            text=lambda i: _or_na(gbps[i]),
            look="number",
            width=62,
            tip="Modelled bytes over total time: an operator's bytes include what runs inside it",
        ),
        Column(
            title="of peak",
            values=of_peak,
            text=lambda i: fmt.percent(float(of_peak[i])),
            look="number",
            width=66,
            tip="Of the measured memory bandwidth; above 100 %: cache-resident or model wrong",
        ),
        Column(title="Shapes", values=[r.input_shapes for r in rows], text=lambda i: rows[i].input_shapes, width=150),
    ]
    if baseline is not None:
        columns[10:10] = [
            Column(title="Base ms", values=base_ms, text=lambda i: _or_na(base_ms[i]), look="number", width=70),
            Column(
                title="Speedup",
                values=speedup,
                text=lambda i: fmt.ratio(float(speedup[i])),
                look="number",
                width=72,
                tone=lambda i: _tone(float(speedup[i])),
            ),
        ]
    total = float(self_ms.sum())
    footer = [""] * len(columns)
    footer[0] = f"{fmt.count(len(rows))} kernels, {profile.steps} profiled {unit}s"
    footer[3], footer[4], footer[5] = calls_text(float(calls.sum())), fmt.number(total), "100 %"
    return Table(
        columns=tuple(columns),
        rows=len(rows),
        categories=[row.category for row in rows],
        keys=[row_key(row) for row in rows],
        searched=[f"{row.label} {row.name} {row.category} {row.module} {row.input_shapes}".casefold() for row in rows],
        footer=tuple(footer),
        default_sort=4,
        empty=NO_PROFILE,
    )


def module_table(profile: Profile | None, baseline: Profile | None, kind: str) -> Table:
    """Self time added up by module; layers that only differ by number are together as `*`."""
    unit = per_unit(kind)
    if profile is None:
        return Table(columns=_headings(unit), rows=0, empty=NO_PROFILE)
    totals, base = _by_module(profile), _by_module(baseline) if baseline is not None else {}
    names = list(totals)
    ms = _floats([totals[name][0] for name in names])
    calls = _floats([totals[name][1] for name in names])
    share = ms / ms.sum() if ms.sum() > 0 else ms
    base_ms = _floats([base[name][0] if name in base else np.nan for name in names])
    columns = [
        Column(title="Module", values=names, text=lambda i: names[i], width=320, stretch=True),
        Column(
            title="Kernels",
            values=calls,
            text=lambda i: calls_text(float(calls[i])),
            look="number",
            width=80,
            tip=f"Kernel calls per {unit}",
        ),
        Column(
            title="Self ms",
            values=ms,
            text=lambda i: fmt.number(float(ms[i])),
            look="number",
            width=80,
            strong=True,
            tip=f"Self time of its kernels per {unit}",
        ),
        Column(
            title=f"Share of {unit}", values=share, text=lambda i: fmt.percent(float(share[i])), look="bar", width=200
        ),
    ]
    if baseline is not None:
        columns.append(
            Column(title="Base ms", values=base_ms, text=lambda i: _or_na(base_ms[i]), look="number", width=80)
        )
    return Table(
        columns=tuple(columns),
        rows=len(names),
        keys=names,
        searched=[name.casefold() for name in names],
        footer=(
            f"{len(names)} modules",
            fmt.number(float(calls.sum())),
            fmt.number(float(ms.sum())),
            "100 %",
            *([""] if baseline else []),
        ),
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


def _floats(values: Sequence[float]) -> np.ndarray:
    return np.asarray(values, dtype=np.float64)


def _or_na(value: float) -> str:
    return fmt.number(float(value))


def _tone(speedup: float) -> str:
    if not np.isfinite(speedup) or abs(speedup - 1) < 0.02:
        return ""
    return "good" if speedup > 1 else "bad"
