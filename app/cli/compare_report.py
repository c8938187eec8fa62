"""What `compare` and `demo` print: the verdicts first, then the numbers, the proof, and where the time went."""

from collections.abc import Sequence

from gptscope.app.cli.compare_table import print_table
from gptscope.app.cli.console import Console, Style
from gptscope.app.cli.quality_figures import quality_pairs
from gptscope.app.cli.run_report import accumulate, model_line, print_evidence, workload_line
from gptscope.app.cli.verdicts import judge_all, quality_of
from gptscope.app.cli.waterfall_table import print_waterfalls
from gptscope.app.viewmodels import formatting as f
from gptscope.app.viewmodels.loss_texts import loss_text, seeds_text
from gptscope.app.viewmodels.variant_names import short_names
from gptscope.profiling.experiment import flat_options
from gptscope.profiling.metrics.payoff import payoff
from gptscope.profiling.metrics.run_summary import RunSummary
from gptscope.profiling.metrics.summary import RunAccumulator
from gptscope.profiling.metrics.verdict import Verdict, VerdictKind
from gptscope.profiling.quality.loss_curves import compare_all
from gptscope.profiling.records import EvidenceReport, Record, StepKind

_MARKS: dict[VerdictKind, tuple[str, Style]] = {
    "faster_same_output": ("✓", "good"),
    "faster_output_changed": ("△", "warn"),
    "faster_output_unknown": ("✓", "good"),
    "no_real_difference": ("=", ""),
    "slower": ("↓", "bad"),
    "not_comparable": ("✗", "dim"),
}
_DOES: dict[StepKind, str] = {"decode": "generates", "prefill": "reads", "train": "trains on"}


def print_comparison(console: Console, records: Sequence[Record], run_ids: Sequence[str]) -> None:
    """Everything about an experiment with a baseline and candidates."""
    runs = [accumulate(records, run_id) for run_id in run_ids]
    summaries = [run.summary(final=True) for run in runs]
    verdicts = judge_all(records, run_ids[1:])
    names = short_names(len(runs))
    for name, verdict, summary in zip(names[1:], verdicts, summaries[1:], strict=True):
        _print_verdict(console, name, verdict, summary, summaries[0])
        if (won_back := payoff(summaries[0], summary, verdict.speedup)) is not None:
            console.line(f"  {won_back.sentence}")
        print_ineffective(console, records, summary)
    _print_setting(console, runs)
    console.line()
    print_table(console, summaries)
    for name, run in zip(names, runs, strict=True):
        if run.evidence is not None and run.evidence.items:
            console.line()
            console.line(f"Levers in the profile of {name}", "title")
            print_evidence(console, run.evidence.items)
    _print_quality(console, records, run_ids)
    _print_losses(console, records, run_ids)
    print_waterfalls(console, [verdict.by_category for verdict in verdicts])
    _print_warnings(console, summaries, verdicts)


def _print_verdict(
    console: Console, letter: str, verdict: Verdict, candidate: RunSummary, baseline: RunSummary
) -> None:
    mark, style = _MARKS[verdict.kind]
    console.line(f"{mark} {letter} ({candidate.name or 'not started'}): {verdict.title}", style)
    console.line(f"  {verdict.sentence.removeprefix(f'{verdict.title}: ')}")
    if candidate.tokens_per_s is not None and baseline.tokens_per_s is not None:
        console.line(
            f"  It {_DOES[candidate.headline]} {f.number(candidate.tokens_per_s.value)} tokens per second, "
            f"the baseline {f.number(baseline.tokens_per_s.value)}."
        )


def print_ineffective(console: Console, records: Sequence[Record], summary: RunSummary) -> None:
    """Switches that are on and changed nothing: a speed beside them says nothing about them."""
    reports = [r for r in records if isinstance(r, EvidenceReport) and r.run_id == summary.run_id]
    for item in (item for report in reports for item in report.items if item.in_effect is False):
        console.line(f"  ✗ {item.lever} is on but without effect: {item.sentence}", "bad")


def _print_setting(console: Console, runs: Sequence[RunAccumulator]) -> None:
    first = next((run.started for run in runs if run.started is not None), None)
    if first is None:
        return
    loaded = next((run.loaded for run in runs if run.loaded is not None), None)
    console.line()
    console.line(f"Model     {model_line(first.model, loaded, with_weights=False)}")
    console.line(f"Workload  {workload_line(first.workload)}")
    console.line(f"Machine   {first.machine.device_name}")
    for name, run in zip(short_names(len(runs)), runs, strict=True):
        if run.started is not None:
            console.line(f"{name.capitalize():<10}{_levers(run)}")


def _levers(run: RunAccumulator) -> str:
    """Name and the levers really applied."""
    assert run.started is not None
    variant, threads = run.started.variant, run.started.threads
    fusions = run.loaded.fusions if run.loaded is not None else variant.fusions
    parts = [
        variant.precision,
        f"fusions {', '.join(fusions) or 'none'}",
        f"KV cache {variant.kv_cache}",
        *(lever for lever in (variant.pruning, variant.speculation) if lever != "none"),
        *(f"{lever} {name}={value}" for lever, name, value in flat_options(variant)),
        f"{threads} thread{'s' if threads != 1 else ''}",
    ]
    return f"{run.started.name}: {'; '.join(parts)}"


def _print_quality(console: Console, records: Sequence[Record], run_ids: Sequence[str]) -> None:
    qualities = [quality_of(records, run_id) for run_id in run_ids[1:]]
    if not any(qualities):
        return
    console.line()
    console.line("Output beside the baseline's", "title")
    for name, quality in zip(short_names(len(run_ids))[1:], qualities, strict=True):
        if quality is None:
            continue
        console.pairs(quality_pairs(quality), f"  {name}")
        if quality.first_divergence:
            console.line(f"  first real change: {quality.first_divergence}")


def _print_losses(console: Console, records: Sequence[Record], run_ids: Sequence[str]) -> None:
    """How training ended, beside the baseline's end."""
    names = short_names(len(run_ids))
    for number, one in enumerate(compare_all(records, run_ids)):
        if number == 0:
            console.line()
            console.line(f"Training loss, the last {one.compared} of {one.steps} steps on the same tokens", "title")
            console.line(f"  {names[0]}  {f.number(one.baseline)} nats per token")
        name = names[run_ids.index(one.run_id)].ljust(len(names[0]))
        console.line(f"  {name}  {loss_text(one)}", "warn" if one.broken else "")
        if one.over_seeds is not None:
            console.line(f"     {seeds_text(one.over_seeds, one.baseline)}")


def _print_warnings(console: Console, summaries: Sequence[RunSummary], verdicts: Sequence[Verdict]) -> None:
    several: dict[str, list[str]] = {}
    names = short_names(len(summaries))
    for name, summary in zip(names, summaries, strict=True):
        for warning in summary.warnings:
            several.setdefault(warning, []).append(name)
    for name, verdict in zip(names[1:], verdicts, strict=True):
        for warning in verdict.warnings:
            several.setdefault(warning, []).append(name)
    if several:
        console.line()
    for warning, whose in several.items():
        console.line(f"Warning ({', '.join(whose)}): {warning}", "warn")
