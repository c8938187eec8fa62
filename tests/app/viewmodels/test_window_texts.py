"""Sentences around the views."""

from typing import Literal

import pytest

from gptscope.app.viewmodels.experiment_view import ExperimentView
from gptscope.app.viewmodels.window_texts import end_sentence, window_title, workload_line
from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.records import ExperimentFinished, Failure, Record


def test_the_title_tells_how_the_shown_run_stands() -> None:
    assert window_title(None, running=False) == "gptscope"
    view = ExperimentView("id")
    assert window_title(view, running=True) == "gptscope"
    work = Workload(kind="prefill", batch=2, context=64)
    view.experiment = Experiment(model="org/small", workload=work, variants=(Variant(),))
    assert workload_line(view) == "small, prefill, batch 2, context 64"
    assert window_title(view, running=True) == "Running: small, prefill - gptscope"
    assert window_title(view, running=False) == "Interrupted: small, prefill - gptscope"
    view.apply(ExperimentFinished(experiment_id="id", outcome="cancelled"))
    assert window_title(view, running=False) == "Stopped: small, prefill - gptscope"


def ended(outcome: Literal["done", "cancelled", "failed"], *before: Record) -> ExperimentView:
    return ExperimentView.replay("id", [*before, ExperimentFinished(experiment_id="id", outcome=outcome)])


@pytest.mark.parametrize(
    ("outcome", "reason", "said"),
    [
        ("done", "", "Finished. The run is kept in History."),
        ("done", "The disk is full.", "Finished, but not kept. The disk is full."),
        ("cancelled", "", "Stopped. What was measured is kept in History."),
        ("cancelled", "The disk is full.", "Stopped, but not kept. The disk is full."),
        ("failed", "", "Failed. What was measured is kept in History."),
    ],
)
def test_the_end_says_whether_the_run_is_kept(
    outcome: Literal["done", "cancelled", "failed"], reason: str, said: str
) -> None:
    died = Failure(kind="worker_died", message="The worker was killed.")
    assert end_sentence(ended(outcome, *([died] if outcome == "failed" else [])), reason) == said


def test_a_refused_request_is_called_not_run() -> None:
    view = ended("failed", Failure(kind="usage", message="The context is too long."))
    view.experiment = Experiment(model="bundled", workload=Workload(), variants=(Variant(),))
    assert end_sentence(view, "").startswith("Not run, so not kept in History.")
    assert window_title(view, running=False) == "Not run: bundled, decode - gptscope"
