"""The big numbers above the charts, each with the baseline's value, the ratio, and how it was got."""

from dataclasses import dataclass
from typing import Literal

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.run_view import RunView
from gptscope.profiling.metrics.latency import Distribution
from gptscope.profiling.metrics.summary import RunSummary

_BETTER_BELOW = frozenset({"latency", "memory"})
_SAME = 0.005
_SPEED_TITLES = {"decode": "Decode speed", "prefill": "Prefill speed", "train": "Training speed"}
_LATENCY_TITLES = {"decode": "Latency per token, p50", "prefill": "Time to first token, p50", "train": "Step time, p50"}


@dataclass(frozen=True, kw_only=True)
class Card:
    """One metric card."""

    key: Literal["speed", "latency", "bandwidth", "memory"]
    title: str
    source: str
    """How it was got: `median of 7 slices`, `modelled`, `process`."""
    value: str
    unit: str
    aside: str = ""
    """Beside the value: `p95 18.9 ms`, `34 % of peak 48.0`."""
    ratio: str = ""
    ratio_tone: Literal["", "good", "bad"] = ""
    ratio_arrow: Literal["", "up", "down"] = ""
    note: str = ""
    baseline: str = ""
    help: str = ""
    """Key of the help text."""


def cards(run: RunView | None, baseline: RunView | None) -> tuple[Card, Card, Card, Card]:
    """The four cards; without a run they say n/a."""
    now = run.summary() if run is not None else None
    base = baseline.summary() if baseline is not None else None
    return (_speed(now, base), _latency(now, base), _bandwidth(now, base), _memory(now, base))


def main_distribution(summary: RunSummary | None) -> Distribution | None:
    """The latency that the workload is about: ITL, TTFT or step time."""
    if summary is None:
        return None
    return {"decode": summary.itl, "prefill": summary.ttft or summary.step_time}.get(
        summary.headline, summary.step_time
    )


def _speed(now: RunSummary | None, base: RunSummary | None) -> Card:
    value = now.tokens_per_s.value if now is not None and now.tokens_per_s is not None else None
    before = base.tokens_per_s.value if base is not None and base.tokens_per_s is not None else None
    slices = now.slices_counted if now is not None else 0
    ratio = _ratio("speed", value, before)
    return Card(
        key="speed",
        title=_SPEED_TITLES[now.headline] if now is not None else "Speed",
        source=f"{slices} slice{'s' if slices != 1 else ''} counted" if slices else "",
        value=fmt.number(value),
        unit="tokens/s",
        note=", ".join(filter(None, (_guesses(now), "plain ratio, no interval" if ratio[0] else ""))),
        baseline=f"baseline {fmt.number(before)}" if before is not None else "",
        help="tokens_per_second",
        ratio=ratio[0],
        ratio_tone=ratio[1],
        ratio_arrow=ratio[2],
    )


def _guesses(now: RunSummary | None) -> str:
    """What speculation gave; empty without it."""
    if now is None or now.tokens_per_step is None:
        return ""
    accepted = f", {fmt.percent(now.acceptance)} of guesses right" if now.acceptance is not None else ""
    return f"{fmt.number(now.tokens_per_step)} tokens per step{accepted}"


def _latency(now: RunSummary | None, base: RunSummary | None) -> Card:
    ours, theirs = main_distribution(now), main_distribution(base)
    headline = now.headline if now is not None else "decode"
    ratio = _ratio("latency", ours.p50_ms if ours else None, theirs.p50_ms if theirs else None)
    return Card(
        key="latency",
        title=_LATENCY_TITLES[headline],
        source=f"{fmt.count(ours.count)} steps" if ours else "",
        value=fmt.number(ours.p50_ms if ours else None),
        unit="ms",
        aside=f"p95 {fmt.number(ours.p95_ms)} ms" if ours else "",
        baseline=f"baseline {fmt.number(theirs.p50_ms)}" if theirs else "",
        help={"decode": "itl", "prefill": "ttft"}.get(headline, "step_time"),
        ratio=ratio[0],
        ratio_tone=ratio[1],
        ratio_arrow=ratio[2],
    )


def _bandwidth(now: RunSummary | None, base: RunSummary | None) -> Card:
    value = now.achieved_gbps if now is not None else None
    before = base.achieved_gbps if base is not None else None
    aside = ""
    if now is not None and now.mbu is not None and now.mbu.fraction is not None:
        aside = f"{fmt.percent(now.mbu.fraction)} of peak {fmt.number(now.mbu.peak)}"
    ratio = _ratio("bandwidth", value, before)
    return Card(
        key="bandwidth",
        title="Bandwidth",
        source="modelled",
        value=fmt.number(value),
        unit="GB/s",
        aside=aside,
        baseline=f"baseline {fmt.number(before)}" if before is not None else "",
        note=now.mbu.note or "" if now is not None and now.mbu is not None and (now.mbu.fraction or 0) > 1 else "",
        help="bandwidth",
        ratio=ratio[0],
        ratio_tone="",
        ratio_arrow=ratio[2],
    )


def _memory(now: RunSummary | None, base: RunSummary | None) -> Card:
    value, source = _memory_of(now)
    before, _ = _memory_of(base)
    text = fmt.quantity(value, "bytes").rsplit(" ", 1)
    ratio = _ratio("memory", value, before)
    return Card(
        key="memory",
        title="Peak memory",
        source=source,
        value=text[0],
        unit=text[1] if len(text) > 1 else "",
        baseline=f"baseline {fmt.quantity(before, 'bytes')}" if before is not None else "",
        help="memory",
        ratio=ratio[0],
        ratio_tone=ratio[1],
        ratio_arrow=ratio[2],
    )


def _memory_of(summary: RunSummary | None) -> tuple[float | None, str]:
    if summary is None:
        return None, "process"
    if summary.peak_device_bytes is not None:
        return summary.peak_device_bytes, "device"
    return summary.peak_process_bytes, "process"


def _ratio(
    key: str, now: float | None, base: float | None
) -> tuple[str, Literal["", "good", "bad"], Literal["", "up", "down"]]:
    if now is None or base is None or base <= 0:
        return "", "", ""
    value = now / base
    if abs(value - 1) < _SAME:
        return fmt.ratio(value), "", ""
    better = (value < 1) == (key in _BETTER_BELOW)
    return fmt.ratio(value), "good" if better else "bad", "up" if value > 1 else "down"
