"""The JSON form of `gptscope quality`; its fields are listed in docs/json.md."""

from collections.abc import Sequence

import msgspec

from gptscope.app.cli.session import Outcome
from gptscope.profiling.experiment import Experiment, Variant, variant_name
from gptscope.profiling.records import Failure, LayerErrors, Notice, Quality


class MixedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A mixed recipe and how it came out."""

    kept: tuple[str, ...]
    """Modules left unquantized, worst first."""
    variant: Variant
    predicted_kl: float | None
    saved_us: float
    saved_share: float | None
    quality: Quality | None
    """Measured; None when it failed."""


class CandidateDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate."""

    name: str
    variant: Variant
    quality: Quality | None
    layer_errors: LayerErrors | None
    mixed: MixedDocument | None = None


class QualityDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was compared."""

    model: str
    baseline_name: str
    baseline: Variant
    text: str | None
    """The file given; None: the evaluation text that comes with gptscope."""
    candidates: tuple[CandidateDocument, ...]
    failures: tuple[Failure, ...]
    notices: tuple[Notice, ...]


def quality_document(
    experiment: Experiment, candidates: Sequence[CandidateDocument], outcomes: Sequence[Outcome]
) -> QualityDocument:
    """The document of what was compared, in one experiment or two."""
    records = [record for outcome in outcomes for record in outcome.records]
    return QualityDocument(
        model=experiment.model,
        baseline_name=variant_name(experiment.variants[0]),
        baseline=experiment.variants[0],
        text=experiment.text,
        candidates=tuple(candidates),
        failures=tuple(record for record in records if isinstance(record, Failure)),
        notices=tuple(record for record in records if isinstance(record, Notice)),
    )
