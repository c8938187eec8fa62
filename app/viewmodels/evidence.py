"""What the profile says against a lever that is on."""

from gptscope.app.viewmodels.run_view import RunView
from gptscope.app.viewmodels.variant_names import precision_title

Ineffective = tuple[tuple[str, str], ...]
"""Lever and the sentence that says what is missing."""


def ineffective(run: RunView | None) -> Ineffective:
    """Levers of a profiled run that are on and did nothing."""
    report = run.accumulator.evidence if run is not None else None
    if run is None or report is None:
        return ()
    precision = run.started.variant.precision if run.started is not None else ""
    return tuple(
        (precision_title(item.lever) if item.lever == precision else item.lever, item.sentence)
        for item in report.items
        if item.in_effect is False
    )
