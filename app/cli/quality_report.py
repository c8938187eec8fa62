"""What `gptscope quality` prints: figures, the first real change as text, the layer map, and the mixed recipe."""

from collections.abc import Sequence

from gptscope.app.cli.console import Column, Console
from gptscope.app.cli.quality_document import CandidateDocument, MixedDocument
from gptscope.app.cli.quality_figures import logits, quality_pairs
from gptscope.app.cli.run_report import model_line
from gptscope.app.cli.session import Outcome
from gptscope.app.viewmodels import formatting as f
from gptscope.profiling.experiment import variant_name
from gptscope.profiling.quality.mixed import worst_first
from gptscope.profiling.records import LayerErrors, ModelLoaded, ModuleError, PromptComparison, Quality

WORST_SHOWN = 10
_TOLD_TOKENS = 24
"""Tokens of each continuation that are shown."""


def print_setting(console: Console, outcome: Outcome) -> None:
    """Model and baseline."""
    experiment = outcome.experiment
    loaded = next((record for record in outcome.records if isinstance(record, ModelLoaded)), None)
    console.line(f"Model     {model_line(experiment.model, loaded, with_weights=False)}")
    console.line(f"Baseline  {variant_name(experiment.variants[0])}")


def print_candidate(console: Console, letter: str, candidate: CandidateDocument) -> None:
    """Candidate `letter`: its output beside the baseline's, and its layer map."""
    console.line()
    if candidate.quality is None:
        console.line(f"{letter} ({candidate.name}): not compared", "bad")
        return
    console.pairs(quality_pairs(candidate.quality), f"{letter} ({candidate.name})")
    _print_prompts(console, candidate.quality)
    if candidate.layer_errors is not None:
        _print_map(console, candidate.layer_errors)


def _print_prompts(console: Console, quality: Quality) -> None:
    """The first real change as text; near-ties if there is none."""
    different = [one for one in quality.prompts if one.outcome != "equal"]
    if not different:
        return
    shown = next((one for one in different if one.outcome == "changed"), different[0])
    what = "first real change" if shown.outcome == "changed" else "a near-tie"
    number = quality.prompts.index(shown) + 1
    margin = _margin(shown)
    console.line(f"  {what}, prompt {number}, token {shown.equal + 1}{margin}:")
    console.line(f"    prompt     {_flat(shown.prompt)}", "dim")
    console.line(f"    baseline   {_told(shown.baseline, shown.equal)}")
    console.line(f"    candidate  {_told(shown.candidate, shown.equal)}")


def _margin(prompt: PromptComparison) -> str:
    gaps = prompt.forced_gaps or prompt.margins
    gap = gaps[prompt.equal] if prompt.equal < len(gaps) else -1.0
    return f", {f.number(gap)} logits below the baseline's choice" if gap >= 0 and prompt.forced_gaps else ""


def _told(tokens: Sequence[str], equal: int) -> str:
    """The text around the first difference, which stands in brackets."""
    start = max(0, equal - _TOLD_TOKENS // 2)
    before, here = "".join(tokens[start:equal]), tokens[equal] if equal < len(tokens) else ""
    after = "".join(tokens[equal + 1 : equal + _TOLD_TOKENS // 2])
    return _flat(f"{'…' if start else ''}{before}[{here}]{after}")


def _flat(text: str) -> str:
    return text.replace("\n", "\\n")


def _print_map(console: Console, errors: LayerErrors) -> None:
    """The modules that hurt most, then each kind of module summed over the layers."""
    console.line()
    together = f"all together {f.number(errors.kl_all)}" if errors.kl_all is not None else "all together broken"
    console.line(
        f"  Layer map: KL added when only this module is the candidate's, nats ({together}; "
        f"{f.count(errors.tokens)} tokens, against {errors.reference}, {f.duration(errors.seconds)})",
        "title",
    )
    ranked = worst_first(errors)
    _print_modules(console, ranked[:WORST_SHOWN], errors.timed_tokens)
    console.line()
    parts: dict[str, list[ModuleError]] = {}
    for one in errors.modules:
        parts.setdefault(one.part, []).append(one)
    rows = [
        (
            part,
            f.count(len(ones)),
            f.number(sum(one.kl_mean or 0.0 for one in ones)),
            f.number(sum(one.reference_us for one in ones) / 1e3),
            f.number(sum(one.reference_us - one.candidate_us for one in ones) / 1e3),
        )
        for part, ones in parts.items()
    ]
    columns = (Column("part", "left"), Column("modules"), Column("sum of KL"), Column("FP32 ms"), Column("saved ms"))
    console.table(columns, rows)


def _print_modules(console: Console, modules: Sequence[ModuleError], timed_tokens: int) -> None:
    step = "token" if timed_tokens == 1 else f"{timed_tokens} tokens"
    columns = (
        Column("worst modules", "left", name=True),
        Column("KL"),
        Column("logits dB"),
        Column("own output dB"),
        Column("FP32 µs"),
        Column(f"saved µs per {step}"),
    )
    rows = [
        (
            one.module,
            f.number(one.kl_mean, "broken"),
            _decibels(one.logit_sqnr_db),
            _decibels(one.output_sqnr_db),
            f.number(one.reference_us),
            f.number(one.reference_us - one.candidate_us),
        )
        for one in modules
    ]
    console.table(columns, rows)


def _decibels(value: float | None) -> str:
    return "no error" if value is None else f"{value:.1f}"


def print_mixed(console: Console, letter: str, candidate: CandidateDocument, mixed: MixedDocument) -> None:
    """The proposal, what was expected of it, and what came out."""
    console.line()
    share = f", {f.percent(mixed.saved_share)} of the time saved stays" if mixed.saved_share is not None else ""
    console.line(f"{letter}, worst {len(mixed.kept)} kept unquantized: {', '.join(mixed.kept)}{share}", "title")
    console.line(f'  --candidate "{spec_of(mixed)}"', "dim")
    if mixed.quality is None or candidate.quality is None:
        console.line("  not compared", "bad")
        return
    before, after = candidate.quality, mixed.quality
    predicted = f" (predicted {f.number(mixed.predicted_kl)})" if mixed.predicted_kl is not None else ""
    console.pairs(
        (
            ("KL divergence", f"{f.change(before.kl_mean, after.kl_mean)} nats per token{predicted}"),
            ("perplexity change", f"{f.signed(before.perplexity_change)} → {f.signed(after.perplexity_change)}"),
            ("same top token", f"{f.percent(before.top1_agreement)} → {f.percent(after.top1_agreement)}"),
            ("logits", f"{logits(before)} → {logits(after)}"),
            ("real changes", f"{f.count(before.real_changes)} → {f.count(after.real_changes)} prompts"),
        )
    )


def spec_of(mixed: MixedDocument) -> str:
    """The variant as `--candidate` takes it."""
    variant = mixed.variant
    parts = [f"precision={variant.precision}"]
    if variant.fusions:
        parts.append(f"fuse={'+'.join(variant.fusions)}")
    parts.append(f"kv-cache={variant.kv_cache}")
    parts += [f"{name}={value}" for name, value in (("pruning", variant.pruning),) if value != "none"]
    parts += [
        f"{lever}.{name}={value}" for lever, options in variant.options.items() for name, value in options.items()
    ]
    return ",".join(parts)
