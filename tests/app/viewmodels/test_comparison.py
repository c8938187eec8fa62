"""What the Compare view says, from record streams of whole experiments."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from tests_app_quality_streams import compared, losses
from tests_app_streams import FUSED, PLAIN, Clock, experiment_records, run_records

from gptscope.app.cli.trace_output import named
from gptscope.app.viewmodels.charts.waterfall import chart_rows, scale_for
from gptscope.app.viewmodels.comparison import ComparedRun, Comparison, compare
from gptscope.app.viewmodels.experiment_view import ExperimentView
from gptscope.app.viewmodels.variant_names import short_names
from gptscope.profiling.experiment import Variant, Workload
from gptscope.profiling.metrics.summary import RunAccumulator
from gptscope.profiling.records import Quality, Record, SeedLosses

NORM = Variant(precision="fp32", fusions=("norm",), name="FP32, fused norm")


def collected(records: Sequence[Record], run_id: str) -> RunAccumulator:
    run = RunAccumulator(run_id)
    for record in records:
        run.add(record)
    return run


def together(times_ms: tuple[float, ...] = (37.0, 11.2, 36.9), *, profiles: bool = True) -> list[ComparedRun]:
    """Runs of one experiment, measured pair by pair."""
    clock, runs = Clock(), []
    for number, (variant, ms) in enumerate(zip((PLAIN, FUSED, NORM), times_ms, strict=False)):
        records = list(run_records(f"r{number}", variant, clock, ms=ms, experiment_id="x"))
        if not profiles:
            records = [record for record in records if type(record).__name__ != "Profile"]
        runs.append(ComparedRun(collected(records, f"r{number}")))
    return runs


def quality(**changes: object) -> Quality:
    plain = Quality(
        run_id="r1", baseline_run_id="r0", tokens=8192, perplexity=14.88, perplexity_error=0.3,
        baseline_perplexity=14.86, baseline_perplexity_error=0.3, kl_mean=0.0021, kl_median=0.001, kl_p99=0.018,
        top1_agreement=0.989, greedy_tokens=96, greedy_equal=96, near_ties=0, real_changes=0, perplexity_change=0.02,
        perplexity_change_error=0.11,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def column(comparison: Comparison, title: str) -> list[str]:
    found = next(c for c in comparison.figures.columns if c.title == title)
    return [found.text(i) for i in range(comparison.figures.rows)]


def test_a_faster_candidate_has_its_interval_and_the_baselines_figures_beside_its_own() -> None:
    card = compare(together(), "r0").cards[0]
    assert (card.letter, card.name, card.icon, card.tone) == ("A", FUSED.name, "check", "good")
    assert card.verdict == "Faster, output not compared"
    assert card.ratio.startswith("3.3")
    assert card.interval.startswith("[3.")
    assert card.how == "95 % interval, 6 pairs"
    assert card.speedup is not None
    assert card.speedup[1] < card.speedup[0] < card.speedup[2]
    assert [(f.title, f.unit) for f in card.figures] == [
        ("Decode", "tok/s"), ("Latency p50 / p95", "ms"), ("Peak memory", "MB"), ("Bandwidth", "GB/s"),
    ]  # fmt: skip
    assert card.figures[0].note == "was 27.0"
    assert card.figures[2].note.startswith("0.66x, was 792")
    assert card.quality == ()
    assert card.levers == "6 levers differ"


def test_an_interval_that_holds_one_is_no_difference() -> None:
    card = compare(together((37.0, 11.2, 37.0)), "r0").cards[1]
    assert card.verdict == "No real difference"
    assert (card.icon, card.tone) == ("equals", "")


def test_another_baseline_turns_the_verdict_round() -> None:
    comparison = compare(together(), "r1")
    assert comparison.baseline.run_id == "r1"
    assert [card.run_id for card in comparison.cards] == ["r0", "r2"]
    assert comparison.cards[0].verdict == "Slower"
    assert comparison.cards[0].tone == "bad"


def test_output_figures_appear_only_against_the_baseline_they_were_held_against() -> None:
    runs = together()
    runs[1] = ComparedRun(runs[1].run, quality())
    card = compare(runs, "r0").cards[0]
    assert card.verdict == "Faster, same output"
    assert [f.value for f in card.quality] == ["+0.02 ± 0.11", "0.0021 / 0.0180", "99 %", "96 of 96"]
    assert card.quality[0].note == "14.86 → 14.88"
    assert compare(runs, "r2").cards[1].quality == (), "it was not compared with this one"


def test_changed_output_is_a_warning_with_its_count() -> None:
    runs = together()
    runs[1] = ComparedRun(runs[1].run, quality(kl_mean=0.19, real_changes=9, near_ties=1, greedy_equal=22))
    card = compare(runs, "r0").cards[0]
    assert (card.verdict, card.icon, card.tone) == ("Faster, output changed", "warning", "warn")
    assert card.reason == "9 prompts continue differently"
    assert (card.quality[3].value, card.quality[3].note, card.quality[3].tone) == ("22 of 96", "9 real changes", "warn")


def test_runs_of_different_times_have_a_plain_ratio_and_can_be_measured_together() -> None:
    runs = [
        ComparedRun(collected(experiment_records(PLAIN, ms=37.0, run_id="a", experiment_id="e1"), "a")),
        ComparedRun(collected(experiment_records(FUSED, ms=17.5, run_id="b", experiment_id="e2"), "b")),
    ]
    comparison = compare(runs, "a")
    card = comparison.cards[0]
    assert card.verdict == "Not comparable"
    assert card.reason == "they were measured at different times; run both in one comparison for an interval"
    assert (card.ratio, card.interval, card.how) == ("2.11x", "", "plain ratio, no interval")
    assert comparison.together is not None
    assert comparison.together.variants == (PLAIN, FUSED)
    assert comparison.together.quality
    assert "measured at different times" in comparison.about


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"workload": Workload(kind="decode", context=64, new_tokens=96, steps=6)}, "the workloads differ"),
        ({"model": "gpt2"}, "the models differ (smollm2-135m and gpt2)"),
    ],
)
def test_other_models_or_workloads_are_not_comparable_and_say_why(change: dict[str, object], why: str) -> None:
    runs = together()
    other = runs[1].run
    assert other.started is not None
    other.started = msgspec.structs.replace(other.started, **change)
    comparison = compare(runs[:2], "r0")
    assert comparison.cards[0].reason == why
    assert comparison.together is None, "measuring them together would not help"


def test_a_run_that_was_not_measured_says_so_and_shows_n_a() -> None:
    runs = together()
    begun = list(run_records("r9", FUSED, Clock(), ms=1.0, experiment_id="x"))[:3]
    runs.append(ComparedRun(collected(begun, "r9")))
    card = compare(runs, "r0").cards[-1]
    assert card.reason == "the candidate was not measured"
    assert card.figures[0].value == "n/a"
    assert card.figures[0].tip
    assert card.speedup is None


def test_the_figures_keep_their_order_and_drop_ratios_when_there_is_no_room() -> None:
    pair = compare(together()[:2], "r0")
    assert column(pair, "Figure")[:2] == ["tokens per second, tok/s", "time to first token, ms"]
    assert column(pair, "ratio")[0].startswith("3.3")
    assert not pair.figures.sortable
    several = compare(together() + together((37.0, 11.2))[1:], "r0")
    assert [c.title for c in several.figures.columns] == ["Figure", "baseline", "A", "B", "C"]
    tones = several.figures.columns[2].tone
    assert tones is not None
    assert tones(0) == "good"


def test_the_waterfall_begins_and_ends_at_the_measured_steps() -> None:
    comparison = compare(together(), "r0")
    for grouping in ("module", "category"):
        chart = comparison.waterfall(0, grouping)  # type: ignore[arg-type]
        assert chart is not None
        assert chart.rows[0].start == pytest.approx(chart.baseline.end)
        for upper, lower in zip(chart.rows[:-1], chart.rows[1:], strict=True):
            assert lower.start == upper.end
        assert chart.rows[-1].end == pytest.approx(chart.candidate.end)
        assert chart.note.endswith("faster")
        assert len(chart_rows(chart)) == len(chart.rows) + 2
    by_category = comparison.waterfall(0, "category")
    assert by_category is not None
    assert {row.name: row.category for row in by_category.rows}["GEMM"] == "GEMM"
    assert [row.category for row in by_category.rows][-2:] == ["gaps", "rest"]


def test_a_rest_of_nanoseconds_reads_as_zero_and_has_no_tone() -> None:
    chart = compare(together(), "r0").waterfall(0, "module")
    assert chart is not None
    rest = chart.rows[-1]
    assert (rest.name, rest.change, rest.tone) == ("unattributed", "0", "")
    assert scale_for(37_040_000).text(3_840_000) == "3.84"
    assert scale_for(37_040_000).change(1) == "0"
    assert scale_for(37_040_000).change(-1) == "0"
    assert scale_for(900_000).unit == "µs"


def test_without_profiles_there_is_no_waterfall() -> None:
    assert compare(together(profiles=False), "r0").waterfall(0, "module") is None


def test_an_experiment_keeps_what_was_found_out_about_outputs() -> None:
    records = [*experiment_records(FUSED, run_id="r1"), quality()]
    assert ExperimentView.replay("e1", records).qualities == {"r1": quality()}


def test_window_terminal_and_files_call_the_variants_by_the_same_names() -> None:
    assert short_names(1) == ("baseline",)
    assert short_names(4) == ("baseline", "A", "B", "C")
    many = short_names(60)
    assert many[26:28] == ("Z", "A1")
    assert len(set(many)) == 60
    assert [card.letter for card in compare(together(), "r0").cards] == ["A", "B"]
    assert named(Path("out/t.json.gz"), 0) == Path("out/t-baseline.json.gz")
    assert named(Path("out/t.json.gz"), 2) == Path("out/t-B.json.gz")


def trained(*further: Record) -> Comparison:
    """A training of two variants whose losses are 0.03 apart."""
    work = Workload(kind="train", batch=8, context=128, steps=60)
    records = compared(losses("r0"), losses("r1", 0.03), *further, candidate=Variant(precision="bf16"), workload=work)
    view = ExperimentView.replay("q1", records)
    return compare([ComparedRun(run.accumulator, None, view.output) for run in view.runs.values()], "r0")


def test_a_training_shows_how_the_losses_ended_over_one_seed_or_several() -> None:
    ends = {figure.title: figure for figure in trained().cards[0].quality}
    assert list(ends) == ["Final loss", "Loss, change"]
    assert ends["Loss, change"].value == "+0.0300"
    assert ends["Loss, change"].tone == "warn", "it is worse for certain"
    more = [
        SeedLosses(run_id=run_id, seed=seed, loss=tuple(losses(run_id, shift).loss))
        for seed, apart in ((1235, -0.01), (1236, 0.0))
        for run_id, shift in (("r0", 0.0), ("r1", apart))
    ]
    figure = trained(*more).cards[0].quality[2]
    assert (figure.title, figure.value, figure.tone) == ("Over 3 seeds", "+0.00667", "")
    assert figure.note.startswith("[−0.0")
    assert figure.tip.endswith("no real difference.")


def test_losses_of_different_experiments_are_not_held_against_each_other() -> None:
    work = Workload(kind="train", batch=8, context=128, steps=60)
    runs = []
    for run_id in ("r0", "r1"):
        records = compared(losses("r0"), losses("r1", 0.03), candidate=Variant(precision="bf16"), workload=work)
        view = ExperimentView.replay("q1", records)
        runs.append(ComparedRun(view.runs[run_id].accumulator, None, view.output))
    assert compare(runs, "r0").cards[0].quality == ()
