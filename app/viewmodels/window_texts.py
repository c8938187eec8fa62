"""What the window's title, the strip above the views and the status bar say. Needs no numpy before the first paint."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gptscope.app.viewmodels.experiment_view import ExperimentView

_OUTCOMES = {"done": "Finished", "cancelled": "Stopped", "failed": "Failed"}


def window_title(view: "ExperimentView | None", *, running: bool) -> str:
    """The task bar tells how the run stands, too."""
    if view is None or view.experiment is None:
        return "gptscope"
    what = f"{_short(view.experiment.model)}, {view.experiment.workload.kind}"
    if running:
        return f"Running: {what} - gptscope"
    if view.refused:
        return f"Not run: {what} - gptscope"
    outcome = view.finished.outcome if view.finished is not None else "interrupted"
    return f"{_OUTCOMES.get(outcome, 'Interrupted')}: {what} - gptscope"


def workload_line(view: "ExperimentView | None") -> str:
    """`bundled, decode, batch 1, context 128`; empty when nothing is shown."""
    if view is None or view.experiment is None:
        return ""
    work = view.experiment.workload
    return ", ".join([_short(view.experiment.model), work.kind, f"batch {work.batch}", f"context {work.context}"])


def end_sentence(view: "ExperimentView", unkept_reason: str) -> str:
    """How a run ended and whether it is kept. Why it failed has a place of its own."""
    outcome = view.finished.outcome if view.finished is not None else "failed"
    if view.refused:
        return "Not run, so not kept in History. Change what the message says, then run again."
    if unkept_reason:
        return f"{_OUTCOMES[outcome]}, but not kept. {unkept_reason}"
    return f"{_OUTCOMES[outcome]}. {'The run' if outcome == 'done' else 'What was measured'} is kept in History."


def _short(model: str) -> str:
    return model.rsplit("/", 1)[-1]
