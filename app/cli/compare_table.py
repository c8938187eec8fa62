"""Baseline and candidates side by side: one row per number, a ratio beside each candidate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from gptscope.app.cli.console import Cell, Column, Console
from gptscope.app.viewmodels import formatting as f
from gptscope.profiling.metrics.run_summary import RunSummary

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_SAME = 0.02
"""Ratios this close to 1 get no colour."""


@dataclass(frozen=True)
class Row:
    """One number of every variant, in base units."""

    title: str
    value: Callable[[RunSummary], float | None]
    family: f.Family
    reason: str
    """The field of `RunSummary` whose reason explains a missing value."""
    workloads: tuple[str, ...] = ("train", "prefill", "decode")
    better: Literal["", "more", "less"] = ""


def _milliseconds(field: str, part: str) -> Callable[[RunSummary], float | None]:
    """The part of a `Distribution`, in seconds."""

    def value(summary: RunSummary) -> float | None:
        times = getattr(summary, field)
        return None if times is None else float(getattr(times, part)) / 1e3

    return value


def _rate(field: str) -> Callable[[RunSummary], float | None]:
    """The value of an `Estimate`."""

    def value(summary: RunSummary) -> float | None:
        estimate = getattr(summary, field)
        return None if estimate is None else float(estimate.value)

    return value


def _plain(field: str, factor: float = 1.0) -> Callable[[RunSummary], float | None]:
    def value(summary: RunSummary) -> float | None:
        number = getattr(summary, field)
        return None if number is None else float(number) * factor

    return value


def _memory(summary: RunSummary) -> float | None:
    return summary.peak_device_bytes if summary.peak_device_bytes is not None else summary.peak_process_bytes


ROWS = (
    Row("tokens per second", _rate("tokens_per_s"), "rate", "tokens_per_s", better="more"),
    Row("time to first token", _milliseconds("ttft", "p50_ms"), "time", "ttft", ("decode",), "less"),
    Row("inter-token latency p50", _milliseconds("itl", "p50_ms"), "time", "itl", ("decode",), "less"),
    Row("inter-token latency p95", _milliseconds("itl", "p95_ms"), "time", "itl", ("decode",), "less"),
    Row("inter-token latency p99", _milliseconds("itl", "p99_ms"), "time", "itl", ("decode",), "less"),
    Row("step time p50", _milliseconds("step_time", "p50_ms"), "time", "step_time", ("train", "prefill"), "less"),
    Row("step time p95", _milliseconds("step_time", "p95_ms"), "time", "step_time", ("train", "prefill"), "less"),
    Row("bandwidth, modelled", _plain("achieved_gbps", 1e9), "bandwidth", "achieved_gbps"),
    Row("compute, modelled", _plain("achieved_tflops", 1e12), "flops", "achieved_tflops"),
    Row("peak memory", _memory, "bytes", "peak_process_bytes", better="less"),
    Row("weights", _plain("weight_bytes"), "bytes", "weight_bytes"),
    Row("load time", _plain("load_s"), "time", "load_s"),
    Row("compile time", _plain("compile_s"), "time", "compile_s"),
)


def print_table(console: Console, summaries: Sequence[RunSummary]) -> None:
    """One column per variant and, for each candidate, one with its ratio to the baseline."""
    baseline = summaries[0]
    columns = [Column("", "left"), Column("A baseline")]
    for letter in LETTERS[1 : len(summaries)]:
        columns += [Column(letter), Column(f"{letter}/A")]
    rows = []
    for row in ROWS:
        if baseline.headline not in row.workloads:
            continue
        values = [row.value(summary) for summary in summaries]
        if not any(values):  # unknown or zero everywhere, such as a compile time when nothing was compiled
            continue
        shown = f.column(values, row.family)
        cells: list[str | Cell] = [f"{row.title}, {shown.unit}", shown.texts[0]]
        for value, text in zip(values[1:], shown.texts[1:], strict=True):
            cells += [text, _ratio(value, values[0], row.better)]
        rows.append(cells)
    console.table(columns, rows)


def _ratio(value: float | None, baseline: float | None, better: str) -> Cell:
    if value is None or not baseline:
        return Cell(f.unknown())
    ratio = value / baseline
    if not better or abs(ratio - 1) < _SAME:
        return Cell(f.ratio(ratio))
    return Cell(f.ratio(ratio), "good" if (ratio > 1) == (better == "more") else "bad")
