"""Training a model for a recipe's rounding or after a pruning: the request, and what it brought in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.variant_names import precision_title, title_of
from gptscope.profiling.experiment import Experiment, OptionValue, Variant
from gptscope.profiling.records import FineTune, FineTuned, ModelSaved, SaveModel, TextScore

_SURE = 2.0
"""Standard errors from which on a change is called one."""
_NARROW = ("int8-weight-only", "int8-dynamic", "int8-static", "fp8", "mxfp8", "nvfp4")
"""How recipes begin whose rounding can be trained for; SmoothQuant changes the weights itself."""
_NO_FOLDER = "Say into which new folder the model is to be saved."
_EXACT = "fp32"
"""The recipe that rounds nothing: what is trained for after a pruning alone."""


@dataclass(frozen=True)
class TuningResult:
    """Rows of (what, before, after) and the sentence below them."""

    rows: tuple[tuple[str, str, str], ...]
    sentence: str
    better: bool


def can_tune(variant: Variant | None) -> bool:
    """Whether there is a rounding to train for, or a pruning to win back."""
    return variant is not None and (variant.precision.startswith(_NARROW) or variant.pruning != "none")


def can_save_pruned(variant: Variant | None) -> bool:
    """Whether the variant's weights differ from its model's in a way that a folder can hold."""
    return variant is not None and variant.pruning != "none"


def can_calibrate(variant: Variant | None) -> bool:
    """Whether the recipe uses ranges of activations that a text has to show."""
    return variant is not None and variant.precision in ("int8-static", "int8-smoothquant")


def aim(recipe: str, pruning: str) -> str:
    """What is trained for: `INT8 static`, `structured pruning`, `structured pruning with INT8 static`."""
    if pruning == "none":
        return precision_title(recipe)
    return f"{pruning} pruning" if recipe == _EXACT else f"{pruning} pruning with {precision_title(recipe)}"


def recipe_of(variant: Variant) -> str:
    """The recipe that a training is for; one that rounds to 16 bits, or changes the weights itself, is left out."""
    return variant.precision if variant.precision.startswith(_NARROW) else _EXACT


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
    """The command for the engine; the settings are the shown run's. An empty `text`: gptscope's own.

    Raises:
        ValueError: A number is impossible, or there is no folder.
    """
    recipe = recipe_of(variant)
    return FineTune(
        model=variant.model or experiment.model,
        folder=_target(folder),
        mode=mode,
        recipe=recipe,
        options=_settings(variant, recipe),
        pruning=variant.pruning,
        pruning_options=_settings(variant, variant.pruning),
        layers=layers,
        steps=steps,
        lr=lr,
        text=str(Path(text.strip()).expanduser()) if text.strip() else None,
        threads=variant.threads,
    )


def saving_request(model: str, variant: Variant, folder: str) -> SaveModel:
    """The command that writes a variant's weights, pruned or not, as a Hugging Face folder in FP32.

    Raises:
        ValueError: There is no folder.
    """
    return SaveModel(
        model=variant.model or model,
        folder=_target(folder),
        pruning=variant.pruning,
        options=_settings(variant, variant.pruning),
    )


def _target(folder: str) -> str:
    if not folder.strip():
        raise ValueError(_NO_FOLDER)
    return str(Path(folder.strip()).expanduser())


def _settings(variant: Variant, lever: str) -> dict[str, OptionValue]:
    given: Mapping[str, OptionValue] = variant.options.get(lever, {})
    return dict(given)


def made_variant(variant: Variant, folder: str) -> Variant:
    """The variant with the saved weights: what was pruned before it was saved is not pruned again."""
    options = {lever: given for lever, given in variant.options.items() if lever != variant.pruning}
    return msgspec.structs.replace(variant, model=folder, pruning="none", options=options, name="")


def new_folder(model: str, what: str, home: Path) -> str:
    """A folder that does not exist yet, such as `bundled-int8-static-tuned`."""
    base = model.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].removesuffix(".gguf").replace(":", "-")
    number = 1
    while (folder := home / f"{base}-{what}{'' if number == 1 else f'-{number}'}").exists():
        number += 1
    return str(folder)


def folder_problem(folder: str) -> str:
    """Why a model cannot be saved there, as far as one can see from here; empty when it can."""
    if not folder.strip():
        return _NO_FOLDER
    path = Path(folder.strip()).expanduser()
    try:
        if path.is_dir():
            return (
                f"{path} is not empty. Give a new folder, so that nothing is overwritten."
                if any(path.iterdir())
                else ""
            )
        if path.exists():
            return f"{path} is a file. Give a new folder."
        return "" if path.parent.is_dir() else f"The folder {path.parent} does not exist. Make it first."
    except OSError as error:
        return f"{path} cannot be used: {error.strerror or error}."


def text_problem(text: str) -> str:
    """Why this cannot be trained on; empty when it can, or when it is gptscope's own text."""
    path = Path(text.strip()).expanduser()
    try:
        return "" if not text.strip() or path.is_file() else f"There is no file {path}."
    except OSError as error:
        return f"{path} cannot be used: {error.strerror or error}."


def tuning_result(found: FineTuned) -> TuningResult:
    """Perplexities before and after, and whether rounding or pruning hurts less now."""
    change, asked = found.change, found.request
    known = change.perplexity is not None and change.error is not None
    better = known and (change.perplexity or 0.0) < -_SURE * (change.error or 0.0)
    for_what = aim(asked.recipe, asked.pruning)
    for_what = for_what[:1].upper() + for_what[1:]
    said = f"{for_what}: perplexity {fmt.signed(change.perplexity, change.error)}"
    said += ", better than before." if better else ", no sure gain." if known else "."
    which = f"{len(found.trained)} layers" if len(found.trained) != 1 else "1 layer"
    whole = ("not quantized", _score(found.original), _score(found.after))
    if asked.pruning != "none":
        whole = ("not pruned", _score(found.original), "n/a: trained pruned")
    return TuningResult(
        rows=(whole, (for_what, _score(found.quantized_before), _score(found.quantized_after))),
        sentence=f"{said} {which} trained in {fmt.duration(found.seconds)}; saved in {found.folder}.",
        better=better,
    )


def saving_result(found: ModelSaved) -> str:
    """How large the folder is, what the pruning left, and where it is."""
    parts = [f"Saved {fmt.quantity(found.bytes, 'bytes')} in FP32 in {found.folder}."]
    if found.parameters != found.parameters_before:
        left = f"{fmt.count(found.parameters)} of {fmt.count(found.parameters_before)}"
        parts.append(f"{left} parameters are left.")
    if found.zeros:
        parts.append(f"{fmt.percent(found.zeros)} of the weights in the layers are zero.")
    return " ".join([*parts, *found.notes])


def saving_title(model: str, variant: Variant) -> str:
    """What is about to be written, in a sentence."""
    source = variant.model or model
    if variant.pruning == "none":
        return f"Writes {source} as a Hugging Face folder in FP32."
    only = Variant(pruning=variant.pruning, options={variant.pruning: _settings(variant, variant.pruning)})
    how = title_of(only).removeprefix("FP32, ")
    return f"Prunes {source} ({how}) and writes what is left as a Hugging Face folder in FP32."


def _score(score: TextScore) -> str:
    text = fmt.number(score.perplexity)
    return f"{text} ± {fmt.number(score.error)}" if score.error is not None and score.perplexity is not None else text
