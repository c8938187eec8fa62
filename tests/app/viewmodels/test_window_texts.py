"""Sentences around the views."""

import pytest

from gptscope.app.viewmodels.experiment_view import ExperimentView
from gptscope.app.viewmodels.window_texts import end_sentence, window_title, workload_line
from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.records import ExperimentFinished


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


@pytest.mark.parametrize(
    ("outcome", "reason", "said"),
    [
        ("done", "", "Finished. The run is kept in History."),
        ("done", "The disk is full.", "Finished, but not kept. The disk is full."),
        ("cancelled", "", "Stopped. What was measured is kept in History."),
        ("cancelled", "The disk is full.", "Stopped, but not kept. The disk is full."),
        ("failed", "", ""),
    ],
)
def test_the_end_says_whether_the_run_is_kept(outcome: str, reason: str, said: str) -> None:
    assert end_sentence(outcome, reason) == said
