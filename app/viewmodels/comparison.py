"""Two or more runs held against a baseline: a card per candidate, the figures side by side, where the time went.

Judging is `profiling.metrics.compare`'s business; here its results become texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.charts import speed_output, waterfall
from gptscope.app.viewmodels.charts.speed_output import SpeedOutput
from gptscope.app.viewmodels.compare_cards import CandidateCard, candidate_card
from gptscope.app.viewmodels.compare_rows import ROWS, verdict_tone
from gptscope.app.viewmodels.output_records import OutputRecords
from gptscope.app.viewmodels.setup import title_of
from gptscope.app.viewmodels.tables import Column, Table
from gptscope.app.viewmodels.variant_names import BASELINE, short_names
from gptscope.profiling.experiment import Experiment
from gptscope.profiling.metrics.compare import judge
from gptscope.profiling.metrics.run_summary import RunSummary
from gptscope.profiling.metrics.summary import RunAccumulator
from gptscope.profiling.metrics.verdict import Verdict
from gptscope.profiling.quality.loss_curves import LossComparison
from gptscope.profiling.records import Quality

MOST_RUNS = 16
_TITLE_WIDTH = 168
"""Pixels for the longest name of a figure with its unit."""
_MOST_WITH_RATIOS = 3
"""Runs up to which there is room for a column of ratios beside each candidate; beyond, colours alone tell."""
NOTHING = (
    "A comparison appears here when a run has a baseline beside it: run the demo, pin a run and start another, "
    "or choose two runs in History and press Compare."
)


@dataclass(frozen=True)
class ComparedRun:
    """One run as it was collected, with what was found out about its output."""

    run: RunAccumulator
    quality: Quality | None = None
    output: OutputRecords | None = None
    """What its experiment told about outputs, the losses among it."""

    @property
    def run_id(self) -> str:
        """Its id."""
        return self.run.run_id or ""

    @property
    def name(self) -> str:
        """The variant in words."""
        return title_of(self.run.started.variant) if self.run.started is not None else self.run_id


@dataclass(frozen=True)
class Comparison:
    """Everything the Compare view shows."""

    baseline: ComparedRun
    candidates: tuple[ComparedRun, ...]
    verdicts: tuple[Verdict, ...]
    cards: tuple[CandidateCard, ...]
    figures: Table
    speed_output: SpeedOutput
    title: str
    about: str
    disturbed: str
    """Slices that were repeated, empty when none were."""
    warnings: tuple[str, ...] = ()
    together: Experiment | None = field(default=None)
    """The experiment that would measure these runs alternately; None when they were, or cannot be."""

    def waterfall(self, index: int, grouping: waterfall.Grouping) -> waterfall.WaterfallChart | None:
        """Where the time of one candidate went."""
        candidate = self.candidates[index]
        return waterfall.build(
            self.verdicts[index],
            grouping,
            (BASELINE, self.baseline.run.profile),
            (self.cards[index].letter, candidate.run.profile),
        )


def compare(runs: Sequence[ComparedRun], baseline_id: str) -> Comparison:
    """Judge all other runs by the baseline.

    Args:
        runs: At least two, the baseline among them.
        baseline_id: Which one.
    """
    baseline = next(run for run in runs if run.run_id == baseline_id)
    candidates = tuple(run for run in runs if run is not baseline)[:MOST_RUNS]
    verdicts = tuple(judge(baseline.run, one.run, quality_beside(one, baseline)) for one in candidates)
    summaries = [one.run.summary(final=True) for one in (baseline, *candidates)]
    extent, names = _extent(verdicts), short_names(len(summaries))
    cards = tuple(
        candidate_card(letter, one.name, verdict, one.run, summary, baseline.run, summaries[0],
                       quality_beside(one, baseline), loss_beside(one, baseline), extent)
        for letter, one, verdict, summary in zip(names[1:], candidates, verdicts, summaries[1:], strict=True)
    )  # fmt: skip
    trade = speed_output.build(
        names[1:], [one.name for one in candidates], verdicts, [quality_beside(one, baseline) for one in candidates],
        training=summaries[0].headline == "train",
    )  # fmt: skip
    return Comparison(
        baseline=baseline,
        candidates=candidates,
        verdicts=verdicts,
        cards=cards,
        figures=figures_table(summaries, names),
        speed_output=trade,
        title=_title(baseline),
        about=_about(baseline, candidates, verdicts),
        disturbed=_disturbed(summaries),
        warnings=_warnings(names, verdicts, summaries),
        together=_together(baseline, candidates, verdicts),
    )


def quality_beside(one: ComparedRun, baseline: ComparedRun) -> Quality | None:
    """How the output compares, when it was held against this very baseline."""
    quality = one.quality
    return quality if quality is not None and quality.baseline_run_id == baseline.run_id else None


def loss_beside(one: ComparedRun, baseline: ComparedRun) -> LossComparison | None:
    """How its training ended, when it trained beside this very baseline, on the same tokens."""
    if one.output is None or one.output is not baseline.output:
        return None
    return one.output.loss_beside(one.run_id, baseline.run_id)


def figures_table(summaries: Sequence[RunSummary], names: Sequence[str]) -> Table:
    """One row per figure: baseline, then each candidate with its ratio."""
    headline = summaries[0].headline
    rows = [row for row in ROWS if headline in row.workloads]
    values = [[row.value(summary) for summary in summaries] for row in rows]
    kept = [(row, line) for row, line in zip(rows, values, strict=True) if any(line)]
    shown = [fmt.column(line, row.family) for row, line in kept]
    titles = [f"{row.title}, {column.unit}".rstrip(", ") for (row, _), column in zip(kept, shown, strict=True)]
    columns = [Column(title="Figure", values=titles, text=lambda i: titles[i], width=_TITLE_WIDTH, stretch=True)]
    with_ratios = len(names) <= _MOST_WITH_RATIOS
    for place, name in enumerate(names):
        ratios = [_ratio(line[place], line[0]) if place else None for _, line in kept]
        tones = [verdict_tone(row, ratio) for (row, _), ratio in zip(kept, ratios, strict=True)]
        texts = [column.texts[place] for column in shown]
        columns.append(_text_column(name, texts, 66 if place else 76, [] if with_ratios else tones))
        if place and with_ratios:
            columns.append(_text_column("ratio", [fmt.ratio(ratio) for ratio in ratios], 54, tones))
    return Table(columns=tuple(columns), rows=len(kept), sortable=False, empty="No figure was measured in these runs.")


def _text_column(title: str, texts: Sequence[str], width: int, tones: Sequence[str]) -> Column:
    return Column(
        title=title,
        values=texts,
        text=lambda i: texts[i],
        look="number",
        width=width,
        tone=(lambda i: tones[i]) if tones else None,
    )


def _ratio(value: float | None, baseline: float | None) -> float | None:
    return value / baseline if value is not None and baseline else None


def _extent(verdicts: Sequence[Verdict]) -> tuple[float, float]:
    """Lowest and highest speedup of all cards, so that their small axes can be compared."""
    ends = [1.0]
    for verdict in verdicts:
        if verdict.speedup is not None:
            ends += [v for v in (verdict.speedup.value, verdict.speedup.low, verdict.speedup.high) if v]
        elif verdict.plain_ratio:
            ends.append(verdict.plain_ratio)
    return min(ends), max(ends)


def _title(baseline: ComparedRun) -> str:
    started = baseline.run.started
    if started is None:
        return "Comparison"
    model = started.model.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return f"{started.workload.kind.capitalize()}, {model}"


def _about(baseline: ComparedRun, candidates: Sequence[ComparedRun], verdicts: Sequence[Verdict]) -> str:
    started = baseline.run.started
    parts = []
    if started is not None:
        work = started.workload
        parts.append(f"batch {work.batch}, context {work.context}")
        if work.kind in ("decode", "generate"):
            parts[-1] += f", {work.new_tokens} new tokens"
    together = all(_experiment_of(one) == _experiment_of(baseline) for one in candidates)
    how = "alternating" if together else "measured at different times"
    parts.append(f"{len(candidates) + 1} variants, {how}")
    pairs = max((len(verdict.pairs) for verdict in verdicts), default=0)
    if pairs:
        parts.append(f"{pairs} pairs of slices")
    return "   ".join(parts)


def _experiment_of(one: ComparedRun) -> str:
    return one.run.started.experiment_id if one.run.started is not None else ""


def _disturbed(summaries: Sequence[RunSummary]) -> str:
    repeated = sum(summary.slices_repeated for summary in summaries)
    if not repeated:
        return ""
    return f"{repeated} slice{'s' if repeated > 1 else ''} repeated: machine busy"


def _warnings(names: Sequence[str], verdicts: Sequence[Verdict], summaries: Sequence[RunSummary]) -> tuple[str, ...]:
    whose: dict[str, list[str]] = {}
    for name, verdict in zip(names[1:], verdicts, strict=True):
        for sentence in verdict.warnings:
            whose.setdefault(sentence, []).append(name)
    for name, summary in zip(names, summaries, strict=True):
        for sentence in summary.warnings:
            whose.setdefault(sentence, []).append(name)
    return tuple(f"{', '.join(of)}: {sentence}" for sentence, of in whose.items())


def _together(
    baseline: ComparedRun, candidates: Sequence[ComparedRun], verdicts: Sequence[Verdict]
) -> Experiment | None:
    """Runs of one model and workload that have no interval, because they were not measured alternately."""
    first = baseline.run.started
    others = [one.run.started for one in candidates]
    if first is None or all(verdict.speedup is not None for verdict in verdicts):
        return None
    same = [s for s in others if s is not None and (s.model, s.workload) == (first.model, first.workload)]
    if len(same) != len(others) or all(s.experiment_id == first.experiment_id for s in same):
        return None
    variants = [first.variant]
    for started in same:
        if started.variant not in variants:
            variants.append(started.variant)
    if len(variants) < 2:
        return None
    return Experiment(model=first.model, workload=first.workload, variants=tuple(variants), quality=True)
