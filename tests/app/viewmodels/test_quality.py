import csv
import io

import pytest
from tests_app_quality_streams import (
    INT8,
    RICH_CAPABILITIES,
    compared,
    layer_errors,
    losses,
    prompts,
    quality,
    scales,
)
from tests_app_streams import experiment_records

from gptscope.app.viewmodels import quality_mix as mix
from gptscope.app.viewmodels import quality_text as text
from gptscope.app.viewmodels.charts import layer_error, layer_map, loss_curves, margins, scale_history
from gptscope.app.viewmodels.experiment_view import ExperimentView
from gptscope.app.viewmodels.output_records import ScaleCourse
from gptscope.app.viewmodels.quality import page
from gptscope.app.viewmodels.quality_cards import loss_cards, quality_cards
from gptscope.profiling.experiment import Variant, Workload
from gptscope.profiling.records import Notice, Record, SeedLosses

SPEEDS = mix.Speeds(37.0, 12.1, 140_000_000)


def view(*extra: Record, **more: object) -> ExperimentView:
    return ExperimentView.replay("q1", compared(*extra, **more))  # type: ignore[arg-type]


def test_there_is_no_page_until_something_is_known_about_outputs() -> None:
    assert page(None) is None
    assert page(ExperimentView.replay("e1", experiment_records())) is None
    assert page(view()) is None
    assert page(view(quality())) is not None


def test_the_page_says_what_is_held_against_what() -> None:
    shown = page(view(quality(), layer_errors()))
    assert shown is not None
    assert (shown.name, shown.baseline_name) == ("INT8 dynamic, granularity tensor", "FP32 plain")
    assert shown.about == "smollm2-135m on the evaluation text that comes with gptscope, 8\u202f192 tokens"
    assert (shown.icon, shown.verdict) == ("warning", "Faster, output changed")
    assert shown.speeds.baseline_ms == pytest.approx(37.0, rel=0.03)
    assert shown.speeds.candidate_ms == pytest.approx(12.1, rel=0.03)


def test_cards_carry_change_error_and_gate() -> None:
    perplexity, kl, agreement, exact, sqnr = quality_cards(quality(), "")
    assert (perplexity.value, perplexity.aside, perplexity.tone) == ("+3.06", "± 0.21", "warn")
    assert perplexity.note.startswith("14.9 → 17.9")
    assert (kl.value, kl.source, kl.tone) == ("0.190", "gate 0.01 missed", "warn")
    assert (agreement.value, agreement.unit) == ("84.1", "%")
    assert (exact.value, exact.unit, exact.note) == ("2 of 8", "prompts", "1 near-tie, 5 real changes")
    assert (sqnr.value, sqnr.note) == ("12.8", "cosine 0.97431")


def test_a_change_within_its_error_is_no_warning() -> None:
    same = quality_cards(quality(perplexity_change=0.02, perplexity_change_error=0.11, kl_mean=0.001), "")
    assert same[0].tone == same[1].tone == ""
    assert same[0].note.endswith("within the error")
    assert same[1].source == "gate 0.01 met"


def test_what_was_not_evaluated_says_why() -> None:
    cards = quality_cards(None, "random weights say nothing")
    assert {card.value for card in cards} == {"n/a"}
    assert {card.note for card in cards} == {"random weights say nothing"}
    gone = quality(perplexity=None, perplexity_change=None, kl_mean=None, unknown={"perplexity": "no windows"})
    assert quality_cards(gone, "")[0].note == "no windows"
    said = view(Notice(message="Output quality was not evaluated: it has no tokenizer."), layer_errors())
    shown = page(said)
    assert shown is not None
    assert shown.cards[0].note == "it has no tokenizer"


def test_the_map_ranks_kept_modules_and_sums_rows_and_layers() -> None:
    errors = layer_errors()
    kept = mix.worst(errors, 3)
    assert kept == ("blocks.1.mlp.down", "blocks.29.mlp.down", "blocks.28.mlp.down")
    shown = layer_map.build(errors, kept, "token")
    assert shown is not None
    assert shown.rows == ("q", "k", "v", "out", "gate", "up", "down")
    assert shown.layers == 30
    assert shown.cells[6, 29].rank == 2
    assert shown.cells[0, 0].rank == 0
    assert shown.row_saved_us[6] == pytest.approx(30 * 0.9 * 170)
    assert shown.sums[1] == pytest.approx(sum(one.kl_mean or 0 for one in errors.modules if one.layer == 1))
    assert [cell.module for cell in shown.outside] == ["lm_head"]
    assert layer_map.read_out(shown.cells[6, 28]) == "layer 28, down   KL +0.0500 alone   saves 153 µs"
    assert all(0 <= cell.level <= 1 for cell in shown.cells.values())
    assert shown.cells[6, 1].level == max(cell.level for cell in shown.cells.values())


def test_a_broken_module_is_the_worst_and_says_so() -> None:
    import msgspec

    errors = layer_errors()
    broken = msgspec.structs.replace(errors.modules[8], kl_mean=None)
    errors = msgspec.structs.replace(errors, modules=(*errors.modules[:8], broken, *errors.modules[9:]))
    assert mix.worst(errors, 1) == (broken.module,)
    shown = layer_map.build(errors)
    assert shown is not None
    cell = shown.find(broken.module)
    assert cell is not None
    assert cell.level == 1.0
    assert "broken" in layer_map.read_out(cell)


def test_the_map_as_csv_has_every_module() -> None:
    rows = list(csv.DictReader(io.StringIO(layer_map.map_csv(layer_errors()))))
    assert len(rows) == 211
    assert float(rows[13]["kl_mean"]) == 0.08
    assert rows[-1]["layer"] == ""


def test_a_mix_predicts_error_speed_and_weights() -> None:
    errors = layer_errors()
    kept = mix.worst(errors, 6)
    shown = mix.describe(errors, kept, SPEEDS, int8=True)
    assert shown.count == "6 of 211"
    assert shown.names == "down 1, 27, 28, 29, gate 1, q 0"
    figures = {name: (before, after) for name, before, after, _ in shown.figures}
    assert figures["KL mean"][0] == "0.190"
    assert float(figures["KL mean"][1]) < 0.19
    assert figures["Speed"] == ("3.06x", "2.86x")
    assert figures["Weights"][0] == "140 MB"
    unmeasured = mix.describe(errors, kept, mix.Speeds(None, None, None), int8=False)
    assert [name for name, *_ in unmeasured.figures] == ["KL mean", "Time saved"]
    assert mix.describe(errors, (), SPEEDS, int8=True).names == "none"


def test_the_curve_falls_with_the_number_of_kept_modules() -> None:
    chart = mix.curve(layer_errors(), mix.worst(layer_errors(), 4), SPEEDS)
    ys = chart.lines[0].y
    assert len(ys) == mix.MOST + 1
    assert (ys[1:] <= ys[:-1]).all()
    assert chart.lines[1].end_label == "k = 4"
    assert mix.curve(None, (), SPEEDS).empty


def test_the_mixed_setting_names_the_modules_and_keeps_what_was_kept() -> None:
    made = mix.mixed_variant(INT8, ("blocks.1.mlp.down", "lm_head"), RICH_CAPABILITIES)
    assert made.options["int8-dynamic"] == {"granularity": "tensor", "keep": "blocks.1.mlp.down+lm_head"}
    assert made.name == ""
    fp8 = mix.mixed_variant(Variant(precision="fp8-delayed"), ("blocks.1.mlp.down",), RICH_CAPABILITIES)
    assert fp8.options["fp8-delayed"]["keep"] == "lm_head+blocks.1.mlp.down"
    assert mix.reason_against(INT8, RICH_CAPABILITIES) is None
    assert mix.reason_against(Variant(precision="bf16"), RICH_CAPABILITIES) == (
        "BF16 has no setting that leaves single modules alone."
    )


def test_texts_part_at_the_first_different_token() -> None:
    lines = text.prompt_lines(quality())
    assert [line.place for line in lines[:4]] == ["6", "10", "exact", "18"]
    assert lines[5].place == "26, tie"
    assert text.counts(quality()) == (("equal", "2 exact"), ("near_tie", "1 near-tie"), ("changed", "5 changed"))
    assert text.first_changed(quality()) == 0
    shown = text.divergence(quality(), 0)
    assert shown is not None
    assert shown.baseline.same == shown.candidate.same == "".join(prompts()[0].baseline[:5])
    assert shown.candidate.token == " <b>&"
    assert shown.sentence.startswith("token 6: margin ")
    assert "a real change (0.800 worse)" in shown.sentence
    tie = text.divergence(quality(), 5)
    assert tie is not None
    assert tie.sentence == "token 26: margin 0.0200, a near-tie"
    equal = text.divergence(quality(), 2)
    assert equal is not None
    assert equal.sentence == "All 48 tokens are the same."
    assert text.divergence(quality(), 99) is None


def test_margins_mark_the_first_difference() -> None:
    chart = margins.build(quality(), 0)
    assert [(bars.name, bars.heights.size, bars.role) for bars in chart.bars] == [
        ("same text", 5, "other"),
        ("first difference", 1, "bad"),
        ("after it", 42, "faint"),
    ]
    assert margins.read_out(chart, 5.4).startswith("token 6: margin ")
    assert [bars.role for bars in margins.build(quality(), 5).bars] == ["other", "warn", "faint"]
    assert [bars.role for bars in margins.build(quality(), 2).bars] == ["other"]
    assert margins.build(None, 0).empty == margins.EMPTY


def test_error_through_the_layers_ends_with_its_value() -> None:
    chart = layer_error.build(layer_errors(), "INT8", [("BF16", layer_errors("r2"))])
    assert [line.role for line in chart.lines] == ["other", "current"]
    assert chart.lines[1].end_label == "INT8 9.74 dB"
    assert chart.lines[0].end_label == "BF16 9.74 dB"
    assert layer_error.read_out(chart, 3.2).startswith("layer 3: ")
    few = layer_error.build(layer_errors(layers=4), "INT8")
    assert [text for _, text in few.x_axis.ticks] == ["0", "1", "2", "3"]
    assert layer_error.build(None, "x").empty == layer_error.EMPTY


def test_training_shows_losses_instead_of_perplexity() -> None:
    work = Workload(kind="train", batch=8, context=128, steps=60)
    shown = page(view(losses("r0"), losses("r1", 0.03), workload=work))
    assert shown is not None
    assert [card.key for card in shown.cards] == ["final_loss", "loss_gap"]
    assert shown.cards[0].value == "+0.0300"
    chart = loss_curves.build(*shown.losses, shown.name, shown.baseline_name)
    assert [line.role for line in chart.lines] == ["baseline", "current"]
    assert "baseline" in loss_curves.read_out(chart, 10)
    assert shown.cards[0].source == "last 15 of 60 steps"
    assert shown.cards[0].aside == "[+0.0300, +0.0300]"
    assert shown.cards[0].note.endswith("a real difference (95 % interval)")
    broken = loss_cards([2.0, float("nan")], [2.0, 2.0])
    assert (broken[1].tone, broken[1].note) == ("bad", "1 steps without a finite loss")


def test_further_seeds_have_a_card_of_their_own() -> None:
    work = Workload(kind="train", batch=8, context=128, steps=60)
    seeds = [
        SeedLosses(run_id=run_id, seed=seed, loss=losses("x", shift).loss)
        for run_id, shifts in (("r0", (0.0, 0.0)), ("r1", (0.01, 0.02)))
        for seed, shift in zip((1235, 1236), shifts, strict=True)
    ]
    shown = page(view(losses("r0"), losses("r1", 0.03), *seeds, workload=work))
    assert shown is not None
    card = shown.cards[2]
    assert (card.key, card.value, card.source) == ("final_loss_seeds", "+0.0200", "3 seeds")
    assert card.aside == "[−0.00484, +0.0448]"
    assert card.note == "no real difference (95 % interval); single seeds +0.0300, +0.0100, +0.0200"


def test_scales_are_put_together_from_their_pieces_and_clipping_is_counted() -> None:
    shown = page(view(scales(), scales(first=60)))
    assert shown is not None
    assert scale_history.layers(shown.scales) == ("blocks.0.attn.qkv.q", "blocks.0.mlp.down")
    assert scale_history.tensors(shown.scales, "blocks.0.mlp.down") == ("input", "weight", "grad")
    course = shown.scales["blocks.0.mlp.down", "grad"]
    assert course.steps == list(range(120))
    expected = sum(amax > 2e-4 * 1.25 for amax in course.amax)
    assert 0 < scale_history.clipped(course) == expected
    chart = scale_history.build(course)
    assert not chart.y_axis.log
    growing = ScaleCourse("a", "grad", 448.0, [0, 1, 2], [1e-5, 1e-3, 0.1], [1e6, 1e5, 1e3])
    assert scale_history.build(growing).y_axis.log
    assert f"clipped at {expected} of 120 steps" in chart.summary
    assert scale_history.read_out(chart, 3).startswith("step 3: amax ")
    assert scale_history.build(None).empty == scale_history.EMPTY
