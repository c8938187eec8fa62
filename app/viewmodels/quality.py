"""The Quality view's page about one candidate: what it is held against, the verdict, and what there is to show."""

from dataclasses import dataclass

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.compare_cards import STRIPS, Tone
from gptscope.app.viewmodels.experiment_view import ExperimentView
from gptscope.app.viewmodels.output_records import ScaleCourse
from gptscope.app.viewmodels.quality_cards import QualityCard, loss_cards, quality_cards
from gptscope.app.viewmodels.quality_mix import Speeds
from gptscope.app.viewmodels.run_view import RunView
from gptscope.app.viewmodels.variant_names import short_names
from gptscope.profiling.experiment import Variant
from gptscope.profiling.metrics.compare import judge
from gptscope.profiling.records import LayerErrors, Quality

NOTHING = (
    "What happens to the output appears here when a run has a baseline beside it: choose another precision in Setup, "
    "switch Compare output on, and run."
)
NOT_COMPARED = "outputs were not compared in this run"


@dataclass(frozen=True)
class QualityPage:
    """Everything about one candidate but the charts, which are built from its records."""

    run_id: str
    candidates: tuple[tuple[str, str], ...]
    """Run and name of everything that can be chosen."""
    letter: str
    name: str
    baseline_name: str
    variant: Variant | None
    about: str
    icon: str
    tone: Tone
    verdict: str
    sentence: str
    cards: tuple[QualityCard, ...]
    quality: Quality | None
    layer_map: LayerErrors | None
    other_maps: tuple[tuple[str, LayerErrors], ...]
    losses: tuple[list[float], list[float]]
    """Of the candidate and of the baseline."""
    scales: dict[tuple[str, str], ScaleCourse]
    speeds: Speeds
    per: str
    baseline_variant: Variant | None = None
    not_mapped: str = ""
    """Why there is no layer map, or empty."""
    can_map: bool = True
    """Whether a layer map could be measured."""


def candidates(view: ExperimentView) -> tuple[RunView, ...]:
    """Runs whose output can be looked at: all but the baseline, or the only one when it recorded scales."""
    own = view.own_baseline
    runs = [view.runs[run_id] for run_id in view.run_ids if run_id in view.runs]
    return tuple(run for run in runs if run is not own and run.started is not None)


def page(view: ExperimentView | None, chosen: str = "") -> QualityPage | None:
    """The page about the chosen candidate, else the last one; None when there is nothing to show."""
    if view is None or not view.output.any:
        return None
    found = candidates(view)
    if not found:
        return None
    run = next((one for one in found if one.run_id == chosen), found[-1])
    base = view.own_baseline
    letters = short_names(len(found) + 1)[1:]
    quality, errors = view.output.qualities.get(run.run_id), view.output.maps.get(run.run_id)
    losses = (view.output.losses.get(run.run_id, []), view.output.losses.get(base.run_id, []) if base else [])
    training = run.main_kind == "train"
    seeds = view.output.over_seeds(run.run_id, base.run_id) if base is not None else None
    cards = loss_cards(*losses, seeds) if training and all(losses) else quality_cards(quality, _why_not(view, run))
    icon, tone, verdict, sentence = _verdict(run, base, quality)
    others = [
        (letter, view.output.maps[one.run_id])
        for letter, one in zip(letters, found, strict=True)
        if one is not run and one.run_id in view.output.maps
    ]
    return QualityPage(
        run_id=run.run_id,
        candidates=tuple((one.run_id, f"{letter} {one.name}") for letter, one in zip(letters, found, strict=True)),
        letter=letters[found.index(run)],
        name=run.name,
        baseline_name=base.name if base is not None else "",
        variant=run.started.variant if run.started is not None else None,
        baseline_variant=base.started.variant if base is not None and base.started is not None else None,
        about=_about(view, quality, errors),
        icon=icon,
        tone=tone,
        verdict=verdict,
        sentence=sentence,
        cards=cards,
        quality=quality,
        layer_map=errors,
        other_maps=tuple(others),
        losses=losses,
        scales=view.output.scales.get(run.run_id, {}),
        speeds=_speeds(run, base),
        per={"decode": "token", "prefill": "prompt"}.get(run.main_kind, "step"),
        not_mapped="" if errors is not None else _not_mapped(view, run),
        can_map=_rounds(run) and run.main_kind != "train",
    )


def _why_not(view: ExperimentView, run: RunView) -> str:
    said = next((event.text for event in view.events if "quality was not evaluated" in event.text), "")
    if said:
        return said.split(": ", 1)[-1].rstrip(".")
    if view.running and view.experiment is not None and view.experiment.quality:
        return "compared after the measurement"
    return NOT_COMPARED if run.failure is None else "the run failed"


def _not_mapped(view: ExperimentView, run: RunView) -> str:
    if run.main_kind == "train":
        return "Training changes the model at every step, so there is no layer map of it."
    if not _rounds(run):
        return "In FP32 no module is rounded, so there is nothing to map."
    if view.running and view.experiment is not None and view.experiment.layer_map:
        return "The layer map is made at the end of the run."
    return "The layer map shows what each module alone costs in output and saves in time. It was not asked for here."


def _rounds(run: RunView) -> bool:
    return run.started is not None and run.started.variant.precision != "fp32"


def _about(view: ExperimentView, quality: Quality | None, errors: LayerErrors | None) -> str:
    model = view.experiment.model.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1] if view.experiment else ""
    text = quality.text if quality is not None else errors.text if errors is not None else ""
    parts = [model, f"on {text}" if text else ""]
    if quality is not None and quality.tokens:
        parts.append(f"{fmt.count(quality.tokens)} tokens")
    return ", ".join(part for part in (" ".join(filter(None, parts[:2])), *parts[2:]) if part)


def _verdict(run: RunView, base: RunView | None, quality: Quality | None) -> tuple[str, Tone, str, str]:
    """Icon, tone, words and sentence. Without measured speeds only the output is judged."""
    if base is None:
        return "", "", "", ""
    verdict = judge(base.accumulator, run.accumulator, quality)
    if verdict.kind != "not_comparable":
        icon, tone = STRIPS[verdict.kind]
        return icon, tone, verdict.title, verdict.sentence
    if verdict.output_changed is None:
        return "", "", "", verdict.output_sentence
    if verdict.output_changed:
        return "warning", "warn", "Output changed", f"Output changed: {verdict.output_sentence}."
    return "check", "good", "Same output", f"Same output: {verdict.output_sentence}."


def _speeds(run: RunView, base: RunView | None) -> Speeds:
    loaded = run.loaded
    return Speeds(
        baseline_ms=_step_ms(base) if base is not None else None,
        candidate_ms=_step_ms(run),
        weight_bytes=loaded.model.weight_bytes if loaded is not None else None,
    )


def _step_ms(run: RunView) -> float | None:
    """Milliseconds of a main step, from the speed: whole steps count, whatever they consist of."""
    summary = run.summary()
    work = run.started.workload if run.started is not None else None
    speed = summary.tokens_per_s.value if summary.tokens_per_s is not None else None
    if not speed or work is None:
        return None
    tokens = work.batch * (1 if run.main_kind == "decode" else work.context)
    return 1e3 * tokens / speed
