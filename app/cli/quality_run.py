"""Runs `gptscope quality`: one experiment, and a second one that verifies the mixed recipes it proposes."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from gptscope.app.cli import console
from gptscope.app.cli.failing import FAILED, GOOD, CommandError
from gptscope.app.cli.json_output import JsonOutput
from gptscope.app.cli.keeping import Keeping
from gptscope.app.cli.progress import progress_view
from gptscope.app.cli.quality_document import CandidateDocument, MixedDocument, quality_document
from gptscope.app.cli.quality_report import print_candidate, print_mixed, print_setting
from gptscope.app.cli.session import Outcome, failure_error, run_experiment
from gptscope.app.cli.verdicts import quality_of
from gptscope.app.viewmodels.variant_names import short_names
from gptscope.profiling.experiment import Experiment, Variant, variant_name
from gptscope.profiling.quality.mixed import Mixed, mixed_variant, propose
from gptscope.profiling.records import LayerErrors, Notice, Quality, Record

_NOT_KEPT = argparse.Namespace(no_keep=True, library=None)


@dataclass(frozen=True)
class _Proposal:
    """A mixed recipe, and which candidate it is made from."""

    index: int
    mixed: Mixed
    variant: Variant


def run_quality(experiment: Experiment, *, keep_worst: int | None, json_target: str | None) -> int:
    """Compare, print, verify proposals, write the JSON document; returns the exit code.

    Raises:
        CommandError: Nothing was compared; with code 2 when the request was impossible.
    """
    json_output = JsonOutput(json_target)
    out = json_output.console()
    first = _run(experiment)
    print_setting(out, first)
    candidates = [
        CandidateDocument(
            name=variant_name(variant),
            variant=variant,
            quality=quality_of(first.records, run_id),
            layer_errors=layer_errors_of(first.records, run_id),
        )
        for variant, run_id in zip(experiment.variants[1:], first.run_ids[1:], strict=False)
    ]
    letters = short_names(len(candidates) + 1)[1:]
    for letter, candidate in zip(letters, candidates, strict=True):
        print_candidate(out, letter, candidate)
    proposals = _proposals(candidates, keep_worst)
    second = None
    if proposals:
        second = _run(
            msgspec.structs.replace(
                experiment,
                variants=(experiment.variants[0], *(one.variant for one in proposals)),
                layer_map=False,
            )
        )
        for one, run_id in zip(proposals, second.run_ids[1:], strict=False):
            quality = quality_of(second.records, run_id)
            document = MixedDocument(
                kept=one.mixed.kept,
                variant=one.variant,
                predicted_kl=one.mixed.predicted_kl,
                saved_us=one.mixed.saved_us,
                saved_share=one.mixed.saved_share,
                quality=quality,
            )
            candidates[one.index] = msgspec.structs.replace(candidates[one.index], mixed=document)
            print_mixed(out, letters[one.index], candidates[one.index], document)
    outcomes = [first] if second is None else [first, second]
    json_output.write("quality", quality_document(experiment, candidates, outcomes))
    return _code(outcomes)


def layer_errors_of(records: Sequence[Record], run_id: str) -> LayerErrors | None:
    """The layer map of a run, if there is one."""
    return next((record for record in records if isinstance(record, LayerErrors) and record.run_id == run_id), None)


def _run(experiment: Experiment) -> Outcome:
    outcome = run_experiment(experiment, keeping=Keeping(_NOT_KEPT), view=progress_view(console.messages()))
    if not any(isinstance(record, Quality) for record in outcome.records):
        if outcome.failures:
            raise failure_error(outcome.failures[0])
        raise CommandError("Stopped before anything was compared." if outcome.stopped else _why_not(outcome))
    return outcome


def _proposals(candidates: Sequence[CandidateDocument], keep_worst: int | None) -> list[_Proposal]:
    if keep_worst is None:
        return []
    found = []
    for index, candidate in enumerate(candidates):
        if candidate.layer_errors is not None:
            mixed = propose(candidate.layer_errors, keep_worst)
            found.append(_Proposal(index, mixed, mixed_variant(candidate.variant, mixed.kept)))
    return found


def _why_not(outcome: Outcome) -> str:
    """The engine's own sentence, such as that random weights say nothing."""
    said = [record.message for record in outcome.records if isinstance(record, Notice)]
    return said[-1] if said else "Nothing was compared."


def _code(outcomes: Sequence[Outcome]) -> int:
    """Say what failed; 0 only when everything was done."""
    messages = console.messages()
    for outcome in outcomes:
        for failure in outcome.failures:
            messages.line(f"gptscope: {failure.message}", "bad")
        if outcome.stopped:
            messages.line("gptscope: Stopped. What was compared until then is above.", "bad")
    good = all(one.finished == "done" and not one.failures and not one.stopped for one in outcomes)
    return GOOD if good else FAILED
