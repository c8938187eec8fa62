"""The cards of the Quality view: how much the output changed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gptscope.app.viewmodels import formatting as fmt
from gptscope.profiling.metrics.compare import SAME_OUTPUT_KL
from gptscope.profiling.quality.loss_curves import LossComparison, compare_losses
from gptscope.profiling.quality.loss_seeds import SeedComparison
from gptscope.profiling.records import Quality

Tone = Literal["", "good", "warn", "bad"]
_TWO_SIDED_95 = 1.96
MOST_SEEDS_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class QualityCard:
    """One figure with what it is made of. `help`: key of its help text."""

    key: str
    title: str
    source: str
    value: str
    unit: str
    aside: str
    note: str
    help: str
    tone: Tone = ""
    source_tone: Tone = ""


def quality_cards(quality: Quality | None, nothing: str) -> tuple[QualityCard, ...]:
    """Five cards; without a record they say `n/a` with the reason `nothing`."""
    if quality is None:
        titles = (
            ("perplexity", "Perplexity"),
            ("kl", "KL to baseline"),
            ("agreement", "Top-1 agreement"),
            ("exact", "Exact greedy tokens"),
            ("sqnr", "Logit signal to error"),
        )
        return tuple(
            QualityCard(key=key, title=title, source="", value="n/a", unit="", aside="", note=nothing, help=key)
            for key, title in titles
        )
    return (_perplexity(quality), _kl(quality), _agreement(quality), _exact(quality), _sqnr(quality))


def _tokens(quality: Quality) -> str:
    return f"{fmt.count(quality.tokens)} tokens" if quality.tokens else ""


def _why(quality: Quality, field: str) -> str:
    return quality.unknown.get(field, next(iter(quality.unknown.values()), "not evaluated"))


def _perplexity(quality: Quality) -> QualityCard:
    change, error = quality.perplexity_change, quality.perplexity_change_error
    value, _, aside = fmt.signed(change, error).partition(" ")
    real = change is not None and error is not None and abs(change) > _TWO_SIDED_95 * error
    worse = real and change is not None and change > 0
    note = fmt.change(quality.baseline_perplexity, quality.perplexity)
    if change is None:
        note = _why(quality, "perplexity")
    elif error is not None:
        note += ", ± one standard error" if real else ", within the error"
    return QualityCard(
        key="perplexity",
        title="Perplexity",
        source=_tokens(quality),
        value=value,
        unit="",
        aside=aside,
        note=note,
        help="perplexity",
        tone="warn" if worse else "",
    )


def _kl(quality: Quality) -> QualityCard:
    mean = quality.kl_mean
    missed = mean is not None and mean > SAME_OUTPUT_KL
    gate = f"gate {fmt.number(SAME_OUTPUT_KL)} {'missed' if missed else 'met'}" if mean is not None else ""
    note = f"median {fmt.number(quality.kl_median)}, p99 {fmt.number(quality.kl_p99)}"
    return QualityCard(
        key="kl",
        title="KL to baseline",
        source=gate.replace("0.0100", "0.01"),
        source_tone="warn" if missed else "",
        value=fmt.number(mean),
        unit="nats",
        aside="mean",
        note=note if mean is not None else _why(quality, "kl_mean"),
        help="kl",
        tone="warn" if missed else "",
    )


def _agreement(quality: Quality) -> QualityCard:
    share = quality.top1_agreement
    note = _why(quality, "top1_agreement")
    if share is not None and quality.tokens:
        error = math.sqrt(max(share * (1 - share), 0.0) / quality.tokens)
        note = f"± {100 * error:.2g} %, one standard error" if error else "the same choice at every token"
    value = fmt.number(100 * share) if share is not None else fmt.unknown()
    if share is not None and 0.99 < share < 1:
        value = fmt.fixed(min(100 * share, 99.99), 2)  # not 100 while one token differs
    return QualityCard(
        key="agreement",
        title="Top-1 agreement",
        source=_tokens(quality),
        value=value,
        unit="%" if share is not None else "",
        aside="",
        note=note,
        help="agreement",
        tone="warn" if quality.kl_mean is not None and quality.kl_mean > SAME_OUTPUT_KL else "",
    )


def _exact(quality: Quality) -> QualityCard:
    changes, ties = quality.real_changes, quality.near_ties
    said = [f"{ties} near-tie{'' if ties == 1 else 's'}"] if ties else []
    said += [f"{changes} real change{'' if changes == 1 else 's'}"] if changes else []
    note = ", ".join(said) or "no difference"
    if quality.prompts:
        equal = sum(prompt.outcome == "equal" for prompt in quality.prompts)
        each = max(len(prompt.baseline) for prompt in quality.prompts)
        value, unit = f"{equal} of {len(quality.prompts)}", "prompts"
        source = f"{each} tokens each"
    else:
        value, unit = f"{fmt.count(quality.greedy_equal)} of {fmt.count(quality.greedy_tokens)}", "tokens"
        source = ""
        if not quality.greedy_tokens:
            value, unit, note = fmt.unknown(), "", _why(quality, "greedy_tokens")
    return QualityCard(
        key="exact",
        title="Exact greedy tokens",
        source=source,
        value=value,
        unit=unit,
        aside="",
        note=note,
        help="exact",
        tone="warn" if changes else "",
    )


def _sqnr(quality: Quality) -> QualityCard:
    value = quality.logit_sqnr_db
    note = f"cosine {fmt.fixed(quality.logit_cosine, 5)}" if quality.logit_cosine is not None else ""
    shown = fmt.number(value)
    if value is None:
        same = quality.logit_cosine is not None and quality.kl_mean == 0
        shown, note = ("no error", "the logits are the same") if same else (shown, _why(quality, "logit_sqnr_db"))
    if quality.broken_positions:
        note = f"{fmt.count(quality.broken_positions)} positions are NaN or infinity"
    return QualityCard(
        key="sqnr",
        title="Logit signal to error",
        source="SQNR",
        value=shown,
        unit="dB" if value is not None else "",
        aside="",
        note=note,
        help="sqnr",
        tone="bad" if quality.broken_positions else "",
    )


def loss_cards(
    ours: Sequence[float], theirs: Sequence[float], seeds: SeedComparison | None = None
) -> tuple[QualityCard, ...]:
    """Cards about training: where the loss ends, how far both curves are apart at most, and the end over seeds."""
    ends = compare_losses(ours, theirs, run_id="", baseline_run_id="")
    gaps = [abs(a - b) for a, b in zip(ours, theirs, strict=False) if math.isfinite(a - b)]
    broken = sum(not math.isfinite(loss) for loss in ours)
    tone: Tone = "bad" if broken else "warn" if ends is not None and ends.differs and ends.difference > 0 else ""
    return (
        QualityCard(
            key="final_loss",
            title="Final loss, change",
            source=f"last {ends.compared} of {ends.steps} steps" if ends is not None else "",
            value=fmt.signed(ends.difference if ends is not None else None),
            unit="nats",
            aside=_interval(ends),
            note=_loss_note(ends),
            help="final_loss",
            tone=tone,
        ),
        QualityCard(
            key="loss_gap",
            title="Largest gap of one step",
            source="same tokens in the same order",
            value=fmt.number(max(gaps, default=None)),
            unit="nats",
            aside="",
            note=f"{fmt.count(broken)} steps without a finite loss" if broken else "every loss is finite",
            help="final_loss",
            tone="bad" if broken else "",
        ),
        *(() if seeds is None else (_seeds_card(seeds),)),
    )


def _seeds_card(seeds: SeedComparison) -> QualityCard:
    each = ", ".join(fmt.signed(one) for one in seeds.differences[:MOST_SEEDS_NAMED])
    more = len(seeds.differences) - MOST_SEEDS_NAMED
    return QualityCard(
        key="final_loss_seeds",
        title="Final loss, change over seeds",
        source=f"{fmt.count(len(seeds.seeds))} seeds",
        value=fmt.signed(seeds.difference),
        unit="nats",
        aside=_interval(seeds),
        note=f"{'a real difference' if seeds.differs else 'no real difference'} (95 % interval); single seeds {each}"
        + (f" and {more} more" if more > 0 else ""),
        help="final_loss",
        tone="warn" if seeds.differs and seeds.difference > 0 else "",
    )


def _interval(ends: LossComparison | SeedComparison | None) -> str:
    if ends is None or ends.low is None or ends.high is None:
        return ""
    return f"[{fmt.signed(ends.low)}, {fmt.signed(ends.high)}]"


def _loss_note(ends: LossComparison | None) -> str:
    if ends is None:
        return "no step with a finite loss in both"
    change = fmt.change(ends.baseline, ends.candidate)
    if ends.differs is None:
        return f"{change}, too few steps for an interval"
    return f"{change}, {'a real difference' if ends.differs else 'no real difference'} (95 % interval)"
