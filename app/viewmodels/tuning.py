"""Training a model for a recipe's rounding: the request, and what it brought in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.variant_names import precision_title
from gptscope.profiling.experiment import Experiment, OptionValue, Variant
from gptscope.profiling.records import FineTune, FineTuned, TextScore

_SURE = 2.0
"""Standard errors from which on a change is called one."""


@dataclass(frozen=True)
class TuningResult:
    """Rows of (what, before, after) and the sentence below them."""

    rows: tuple[tuple[str, str, str], ...]
    sentence: str
    better: bool


def can_tune(variant: Variant | None) -> bool:
    """Whether there is a rounding to train for."""
    return variant is not None and variant.precision.startswith("int8")


def can_calibrate(variant: Variant | None) -> bool:
    """Whether the recipe uses ranges of activations that a text has to show."""
    return variant is not None and variant.precision in ("int8-static", "int8-smoothquant")


def tuning_request(
    experiment: Experiment,
    variant: Variant,
    *,
    mode: Literal["qat", "targeted"],
    layers: int,
    steps: int,
    lr: float,
    folder: str,
    text: str = "",
) -> FineTune:
    """The command for the engine; the recipe's settings are the shown run's. An empty `text`: gptscope's own.

    Raises:
        ValueError: A number is impossible, or there is no folder.
    """
    if not folder.strip():
        raise ValueError("Say into which new folder the trained model is to be saved.")
    options: Mapping[str, OptionValue] = variant.options.get(variant.precision, {})
    return FineTune(
        model=variant.model or experiment.model,
        folder=str(Path(folder.strip()).expanduser()),
        mode=mode,
        recipe=variant.precision,
        options=dict(options),
        layers=layers,
        steps=steps,
        lr=lr,
        text=str(Path(text.strip()).expanduser()) if text.strip() else None,
        threads=variant.threads,
    )


def new_folder(model: str, recipe: str, home: Path) -> str:
    """A folder that does not exist yet."""
    base = model.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].removesuffix(".gguf").replace(":", "-")
    number = 1
    while (folder := home / f"{base}-{recipe}-tuned{'' if number == 1 else f'-{number}'}").exists():
        number += 1
    return str(folder)


def tuning_result(found: FineTuned) -> TuningResult:
    """Perplexities before and after, and whether the rounding hurts less now."""
    change = found.change
    known = change.perplexity is not None and change.error is not None
    better = known and (change.perplexity or 0.0) < -_SURE * (change.error or 0.0)
    recipe = precision_title(found.request.recipe)
    said = f"{recipe}: perplexity {fmt.signed(change.perplexity, change.error)}"
    said += ", better than before." if better else ", no sure gain." if known else "."
    which = f"{len(found.trained)} layers" if len(found.trained) != 1 else "1 layer"
    return TuningResult(
        rows=(
            ("not quantized", _score(found.original), _score(found.after)),
            (recipe, _score(found.quantized_before), _score(found.quantized_after)),
        ),
        sentence=f"{said} {which} trained in {fmt.duration(found.seconds)}; saved in {found.folder}.",
        better=better,
    )


def _score(score: TextScore) -> str:
    text = fmt.number(score.perplexity)
    return f"{text} ± {fmt.number(score.error)}" if score.error is not None and score.perplexity is not None else text
