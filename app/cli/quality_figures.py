"""The figures of a comparison of outputs in words: `compare`, `demo` and `quality` print the same."""

from gptscope.app.cli.console import Cell
from gptscope.app.viewmodels import formatting as f
from gptscope.profiling.records import Quality


def quality_pairs(quality: Quality) -> list[tuple[str, str | Cell]]:
    """Every figure of a comparison in words."""
    why = quality.unknown
    reason = why.get("perplexity", "")
    perplexity = f.change(quality.baseline_perplexity, quality.perplexity, reason=reason)
    change = f.signed(quality.perplexity_change, quality.perplexity_change_error, reason)
    left_out = quality.text_tokens - 1 - quality.tokens - quality.broken_positions  # the first token is not predicted
    of_all = f" (of {f.count(quality.text_tokens)})" if left_out > 0 else ""
    pairs: list[tuple[str, str | Cell]] = [
        ("perplexity", f"{perplexity} ({change}), {f.count(quality.tokens)} tokens{of_all} of {quality.text}"),
        ("KL divergence", divergence(quality)),
        ("same top token", f.percent(quality.top1_agreement, why.get("top1_agreement", ""))),
        ("logits", logits(quality)),
        ("greedy tokens", greedy(quality)),
    ]
    if quality.forced_tokens:
        pairs.append(("read by the baseline", forced(quality)))
    if quality.broken_positions:
        pairs.append(("broken", Cell(why.get("broken_positions", ""), "bad")))
    return pairs


def divergence(quality: Quality) -> str:
    """Mean, median and the worst hundredth."""
    if quality.kl_mean is None:
        return f.unknown(quality.unknown.get("kl_mean", ""))
    parts = (("mean", quality.kl_mean), ("median", quality.kl_median), ("p99", quality.kl_p99))
    return ", ".join(f"{f.number(value)} {name}" for name, value in parts) + " nats per token"


def logits(quality: Quality) -> str:
    """Signal to noise and cosine."""
    if quality.logit_sqnr_db is None:
        return f.unknown(quality.unknown.get("logit_sqnr_db", ""))
    cosine = "" if quality.logit_cosine is None else f", cosine {quality.logit_cosine:.6f}"
    return f"{quality.logit_sqnr_db:.1f} dB signal to error{cosine}"


def greedy(quality: Quality) -> str:
    """How far the greedy texts agree."""
    same = f"{f.count(quality.greedy_equal)} of {f.count(quality.greedy_tokens)} equal before a first difference"
    exact = len([one for one in quality.prompts if one.outcome == "equal"])
    prompts = f"{f.count(exact)} of {f.count(len(quality.prompts))} prompts exact, "
    return (
        f"{same}; {prompts if quality.prompts else ''}{f.count(quality.real_changes)} real changes, "
        f"{f.count(quality.near_ties)} near-ties"
    )


def forced(quality: Quality) -> str:
    """The candidate's own text as the baseline judges it, token by token."""
    chosen = quality.forced_tokens - quality.forced_near_ties - quality.forced_changes
    return (
        f"{f.count(chosen)} of {f.count(quality.forced_tokens)} tokens are its own choice, "
        f"{f.count(quality.forced_near_ties)} near-ties (within {f.number(quality.near_tie_margin)} logits), "
        f"{f.count(quality.forced_changes)} really worse"
    )
