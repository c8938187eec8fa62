"""The figures in which two runs are compared, in the terminal and in the window: how each is taken from a summary."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gptscope.app.viewmodels.formatting import Family
from gptscope.profiling.metrics.run_summary import RunSummary

SAME = 0.02
"""Ratios this close to 1 count as equal."""


@dataclass(frozen=True)
class Row:
    """One number of every variant, in base units."""

    title: str
    value: Callable[[RunSummary], float | None]
    family: Family
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
    Row("ITL p50", _milliseconds("itl", "p50_ms"), "time", "itl", ("decode",), "less"),
    Row("ITL p95", _milliseconds("itl", "p95_ms"), "time", "itl", ("decode",), "less"),
    Row("ITL p99", _milliseconds("itl", "p99_ms"), "time", "itl", ("decode",), "less"),
    Row("step time p50", _milliseconds("step_time", "p50_ms"), "time", "step_time", ("train", "prefill"), "less"),
    Row("step time p95", _milliseconds("step_time", "p95_ms"), "time", "step_time", ("train", "prefill"), "less"),
    Row("bandwidth, modelled", _plain("achieved_gbps", 1e9), "bandwidth", "achieved_gbps"),
    Row("compute, modelled", _plain("achieved_tflops", 1e12), "flops", "achieved_tflops"),
    Row("peak memory", _memory, "bytes", "peak_process_bytes", better="less"),
    Row("weights", _plain("weight_bytes"), "bytes", "weight_bytes"),
    Row("load time", _plain("load_s"), "time", "load_s"),
    Row("compile time", _plain("compile_s"), "time", "compile_s"),
    Row("tokens per step", _plain("tokens_per_step"), "plain", "tokens_per_step", ("decode",)),
    Row("guesses accepted, %", _plain("acceptance", 100.0), "plain", "acceptance", ("decode",)),
)


def verdict_tone(row: Row, ratio: float | None) -> Literal["", "good", "bad"]:
    """Whether candidate over baseline is good or bad news."""
    if ratio is None or not row.better or abs(ratio - 1) < SAME:
        return ""
    return "good" if (ratio > 1) == (row.better == "more") else "bad"
