"""Training losses of variants side by side, for people and for programs."""

import json

import pytest

from gptscope.app.cli.compare_report import print_comparison
from gptscope.app.cli.document import experiment_document
from gptscope.app.cli.json_output import encode_document
from gptscope.app.viewmodels.loss_texts import loss_text
from gptscope.profiling.quality.loss_curves import LossComparison
from gptscope.profiling.records import SeedLosses, StepSamples


def training(run_id: str, losses: list[float]) -> StepSamples:
    count = len(losses)
    return StepSamples(
        run_id=run_id,
        slice=-1,
        phase="warmup",
        kind="train",
        start_ns=tuple(range(count)),
        duration_ns=(1,) * count,
        tokens=(8,) * count,
        loss=tuple(losses),
    )


@pytest.fixture
def trained(experiment):
    curve = [4.0 - 0.01 * step for step in range(64)]
    return [*experiment(), training("e1-a", curve), training("e1-b", [loss + 0.25 for loss in curve])]


def test_compare_prints_where_the_losses_ended(trained, screen) -> None:
    file, console = screen()
    print_comparison(console, trained, ("e1-a", "e1-b"))
    text = file.getvalue()
    assert "Training loss, the last 16 of 64 steps on the same tokens" in text
    assert "  baseline  3.44 nats per token" in text
    assert ", +0.250 (95 % interval +0.250 to +0.250): a real difference, 7.3 % of the loss" in text


def test_further_seeds_stand_below_the_measured_one(trained, screen) -> None:
    records = list(trained)
    for seed, shift in ((1235, 0.2), (1236, 0.3)):
        curve = tuple(4.0 - 0.01 * step for step in range(32))
        records.append(SeedLosses(run_id="e1-a", seed=seed, loss=curve))
        records.append(SeedLosses(run_id="e1-b", seed=seed, loss=tuple(loss + shift for loss in curve)))
    file, console = screen()
    print_comparison(console, records, ("e1-a", "e1-b"))
    assert (
        "     over 3 seeds: +0.250 (95 % interval +0.126 to +0.374): a real difference, 7.3 % of the loss"
        in file.getvalue()
    )
    document = experiment_document(records, ("e1-a", "e1-b"), kept_in=None, not_kept=None)
    seeds = json.loads(encode_document("experiment", document))["losses"][0]["over_seeds"]
    assert seeds["seeds"][1:] == [1235, 1236]
    assert seeds["differences"] == pytest.approx([0.25, 0.2, 0.3])


def test_runs_that_did_not_train_print_nothing_about_losses(experiment, screen) -> None:
    file, console = screen()
    print_comparison(console, experiment(), ("e1-a", "e1-b"))
    assert "Training loss" not in file.getvalue()


@pytest.mark.parametrize("run_ids", [("e1-a", "e1-b"), ["e1-a", "e1-b"]])
def test_programs_read_the_comparison(run_ids, trained) -> None:
    document = experiment_document(trained, run_ids, kept_in=None, not_kept=None)
    (one,) = json.loads(encode_document("experiment", document))["losses"]
    assert (one["run_id"], one["baseline_run_id"], one["steps"], one["compared"]) == ("e1-b", "e1-a", 64, 16)
    assert one["difference"] == pytest.approx(0.25)


def test_a_candidate_shown_alone_has_no_comparison(trained) -> None:
    assert experiment_document(trained, ("e1-b",), kept_in=None, not_kept=None).losses == ()


def test_broken_and_few_losses_are_told() -> None:
    one = LossComparison(
        run_id="b", baseline_run_id="a", steps=2, compared=1, baseline=2.0, candidate=2.0, difference=0.0, low=None,
        high=None, broken=1,
    )  # fmt: skip
    assert loss_text(one) == "2.00, 0 (too few steps for an interval); 1 steps had no finite loss"
