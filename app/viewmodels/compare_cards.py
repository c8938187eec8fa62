"""The verdict card of one candidate, as texts."""

from dataclasses import dataclass
from typing import Literal

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.cards import main_distribution
from gptscope.app.viewmodels.inspect_kernel import evidence_lines
from gptscope.app.viewmodels.loss_texts import loss_text, seeds_text
from gptscope.app.viewmodels.setup import differences
from gptscope.profiling.metrics.run_summary import RunSummary
from gptscope.profiling.metrics.summary import RunAccumulator
from gptscope.profiling.metrics.verdict import Verdict, VerdictKind
from gptscope.profiling.quality.loss_curves import LossComparison
from gptscope.profiling.quality.loss_seeds import SeedComparison
from gptscope.profiling.records import Quality

Tone = Literal["", "good", "warn", "bad"]
STRIPS: dict[VerdictKind, tuple[str, Tone]] = {
    "faster_same_output": ("check", "good"),
    "faster_output_changed": ("warning", "warn"),
    "faster_output_unknown": ("check", "good"),
    "no_real_difference": ("equals", ""),
    "slower": ("arrow-down", "bad"),
    "not_comparable": ("cross", ""),
}
"""Icon and tone of each verdict."""
_SPEED_TITLES = {"decode": "Decode", "prefill": "Prefill", "train": "Training"}
_LATENCY_TITLES = {"decode": "Latency p50 / p95", "prefill": "Prompt p50 / p95", "train": "Step p50 / p95"}


@dataclass(frozen=True)
class Figure:
    """One small figure of a card."""

    title: str
    value: str
    unit: str
    note: str
    tone: Tone = ""
    tip: str = ""


@dataclass(frozen=True)
class CandidateCard:
    """Everything one card shows."""

    letter: str
    run_id: str
    name: str
    levers: str
    icon: str
    tone: Tone
    verdict: str
    reason: str
    """Right of the verdict: what the output did, or why there is none."""
    sentence: str
    """The whole verdict in one sentence."""
    ratio: str
    interval: str
    """`[3.22, 3.38]`, empty without one."""
    how: str
    """`95 % interval, 24 pairs`, or why there is no interval."""
    speedup: tuple[float, float, float] | None
    """Value, low and high for the small axis; low and high are the value itself where there is no interval."""
    extent: tuple[float, float]
    """What the small axes of all cards span."""
    figures: tuple[Figure, ...]
    quality: tuple[Figure, ...]
    """Of training, how the loss ended; empty when the outputs were not compared."""
    evidence: tuple[tuple[str, bool | None, str], ...]
    no_evidence: str
    costs: str


def candidate_card(
    letter: str,
    name: str,
    verdict: Verdict,
    run: RunAccumulator,
    summary: RunSummary,
    baseline_run: RunAccumulator,
    baseline: RunSummary,
    quality: Quality | None,
    losses: LossComparison | None,
    extent: tuple[float, float],
) -> CandidateCard:
    """The card of one candidate."""
    icon, tone = STRIPS[verdict.kind]
    ratio, interval, how, speedup = _speedup(verdict)
    return CandidateCard(
        letter=letter,
        run_id=verdict.candidate_run_id or "",
        name=name,
        levers=_levers(run, baseline_run),
        icon=icon,
        tone=tone,
        verdict=verdict.title,
        reason=_reason(verdict),
        sentence=verdict.sentence,
        ratio=ratio,
        interval=interval,
        how=how,
        speedup=speedup,
        extent=extent,
        figures=_figures(summary, baseline),
        quality=_quality(quality) or _losses(losses),
        evidence=evidence_lines(run.evidence),
        no_evidence=_no_evidence(run),
        costs=_costs(summary),
    )


def _levers(run: RunAccumulator, baseline: RunAccumulator) -> str:
    if run.started is None or baseline.started is None:
        return ""
    ours = run.loaded.fusions if run.loaded is not None else ()
    theirs = baseline.loaded.fusions if baseline.loaded is not None else ()
    count = len(differences(run.started.variant, baseline.started.variant, tuple(dict.fromkeys((*ours, *theirs)))))
    return f"{count} lever{'s differ' if count != 1 else ' differs'}"


def _reason(verdict: Verdict) -> str:
    if verdict.kind == "not_comparable":
        return verdict.sentence.removeprefix(f"{verdict.title}: ").rstrip(".")
    return verdict.output_sentence


def _speedup(verdict: Verdict) -> tuple[str, str, str, tuple[float, float, float] | None]:
    found = verdict.speedup
    if found is not None and found.low is not None and found.high is not None:
        ratio, _, interval = fmt.ratio(found.value, found.low, found.high).partition(" ")
        pairs = f"95 % interval, {len(verdict.pairs)} pairs"
        return ratio, interval, pairs, (found.value, found.low, found.high)
    if verdict.plain_ratio is not None:
        plain = verdict.plain_ratio
        return fmt.ratio(plain), "", "plain ratio, no interval", (plain, plain, plain)
    return fmt.unknown(), "", "no ratio", None


def _figures(now: RunSummary, base: RunSummary) -> tuple[Figure, ...]:
    return (_speed(now, base), _latency(now, base), _memory(now, base), _bandwidth(now))


def _speed(now: RunSummary, base: RunSummary) -> Figure:
    value = now.tokens_per_s.value if now.tokens_per_s is not None else None
    before = base.tokens_per_s.value if base.tokens_per_s is not None else None
    return Figure(
        _SPEED_TITLES[now.headline],
        fmt.number(value),
        "tok/s" if value is not None else "",
        f"was {fmt.number(before)}",
        tip=now.unknown.get("tokens_per_s", ""),
    )


def _latency(now: RunSummary, base: RunSummary) -> Figure:
    ours, theirs = main_distribution(now), main_distribution(base)
    value = f"{fmt.number(ours.p50_ms)} / {fmt.number(ours.p95_ms)}" if ours is not None else fmt.unknown()
    was = f"was {fmt.number(theirs.p50_ms)} / {fmt.number(theirs.p95_ms)}" if theirs is not None else "was n/a"
    return Figure(_LATENCY_TITLES[now.headline], value, "ms" if ours is not None else "", was)


def _memory(now: RunSummary, base: RunSummary) -> Figure:
    ours, theirs = _peak(now), _peak(base)
    shown = fmt.column([ours, theirs], "bytes")
    note = f"was {shown.texts[1]}"
    if ours is not None and theirs:
        note = f"{fmt.ratio(ours / theirs)}, {note}"
    unit = shown.unit if ours is not None else ""
    return Figure("Peak memory", shown.texts[0], unit, note, tip=now.unknown.get("peak_process_bytes", ""))


def _peak(summary: RunSummary) -> int | None:
    return summary.peak_device_bytes if summary.peak_device_bytes is not None else summary.peak_process_bytes


def _bandwidth(now: RunSummary) -> Figure:
    share = now.mbu.fraction if now.mbu is not None else None
    note = f"modelled, {fmt.percent(share)}" if share is not None else "modelled"
    value = now.achieved_gbps
    return Figure(
        "Bandwidth",
        fmt.number(value),
        "GB/s" if value is not None else "",
        note if value is not None else "",
        tip=_bandwidth_tip(now),
    )


def _bandwidth_tip(now: RunSummary) -> str:
    if now.mbu is None or now.mbu.fraction is None:
        return now.unknown.get("achieved_gbps", "")
    return now.mbu.note or f"{fmt.percent(now.mbu.fraction)} of the measured peak of {fmt.number(now.mbu.peak)} GB/s"


def _quality(quality: Quality | None) -> tuple[Figure, ...]:
    if quality is None:
        return ()
    reason = next(iter(quality.unknown.values()), "")
    kl = "n/a"
    if quality.kl_mean is not None:
        kl = f"{_nats(quality.kl_mean)} / {_nats(quality.kl_p99)}"
    changed: Tone = "warn" if quality.real_changes else ""
    ties = f"{quality.near_ties} near-tie{'s' if quality.near_ties != 1 else ''}"
    changes = f"{quality.real_changes} real change{'s' if quality.real_changes != 1 else ''}"
    return (
        Figure(
            "Perplexity",
            fmt.signed(quality.perplexity_change, quality.perplexity_change_error),
            "",
            fmt.change(quality.baseline_perplexity, quality.perplexity),
            tip=reason,
        ),
        Figure("KL mean / p99", kl, "", "nats per token", tip=reason),
        Figure(
            "Top-1 match",
            fmt.percent(quality.top1_agreement),
            "",
            f"{fmt.count(quality.tokens)} tokens",
            tip=reason,
        ),
        Figure(
            "Exact output",
            f"{fmt.count(quality.greedy_equal)} of {fmt.count(quality.greedy_tokens)}",
            "",
            changes if quality.real_changes else ties if quality.near_ties else "greedy tokens",
            changed,
            tip=quality.first_divergence or "",
        ),
    )


def _losses(ends: LossComparison | None) -> tuple[Figure, ...]:
    if ends is None:
        return ()
    said = f"Training loss, the last {ends.compared} of {ends.steps} steps on the same tokens: {loss_text(ends)}."
    figures = (
        Figure("Final loss", fmt.number(ends.candidate), "nats", f"was {fmt.number(ends.baseline)}", tip=said),
        Figure("Loss, change", fmt.signed(ends.difference), "", _range(ends), _loss_tone(ends), tip=said),
    )
    seeds = ends.over_seeds
    if seeds is None:
        return figures
    told = seeds_text(seeds, ends.baseline)
    return (
        *figures,
        Figure(
            f"Over {len(seeds.seeds)} seeds", fmt.signed(seeds.difference), "", _range(seeds), _loss_tone(seeds),
            tip=f"{told[:1].upper()}{told[1:]}.",
        ),
    )  # fmt: skip


def _range(found: LossComparison | SeedComparison) -> str:
    if found.low is None or found.high is None:
        return "no interval"
    return f"[{fmt.signed(found.low)}, {fmt.signed(found.high)}]"


def _loss_tone(found: LossComparison | SeedComparison) -> Tone:
    return "warn" if found.differs and found.difference > 0 else ""


def _nats(value: float | None) -> str:
    """Four decimals below a tenth, two digits far below: two of these fit into a card."""
    if value is not None and 0 < value < 1e-4:
        return fmt.short_power(value)
    return fmt.fixed(value, 4) if value is not None and 0 < value < 0.1 else fmt.number(value)


def _no_evidence(run: RunAccumulator) -> str:
    if run.evidence is not None and run.evidence.items:
        return ""
    if run.profile is None:
        return "No profile, so nothing proves the levers."
    return "No lever is on that a profile could prove."


def _costs(summary: RunSummary) -> str:
    parts = []
    if summary.load_s is not None:
        parts.append(f"{fmt.duration(summary.load_s)} at load")
    if summary.compile_s:
        parts.append(f"{fmt.duration(summary.compile_s)} to compile")
    return f"Costs {', '.join(parts)}" if parts else ""
