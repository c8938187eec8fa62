"""The text that a quantized model is shown before it runs, and where the ranges it gave are kept."""

import hashlib
import re
from pathlib import Path

import platformdirs
import torch

from gptscope.assets.bundled import calibration_text as calibration_file
from gptscope.models.calibration import CalibrationText
from gptscope.models.config import GPTConfig
from gptscope.models.levers import LeverContext
from gptscope.models.loaders import LoadedModel, Tokenizer, load_model
from gptscope.models.precision import RECIPES
from gptscope.models.quantization.observing import observe
from gptscope.models.quantization.ranges_file import Ranges, save_ranges
from gptscope.profiling.records import Calibrate, Calibrated
from gptscope.profiling.worker.failures import RequestError
from gptscope.profiling.worker.model_info import progress_to
from gptscope.profiling.worker.output import Output
from gptscope.profiling.worker.texts import read_text

PIECES = 16
PIECE_TOKENS = 256
OWN_TEXT = "the calibration text that comes with gptscope"


def calibration_for(
    context: LeverContext, loaded: LoadedModel, model: str, output: Output | None = None
) -> CalibrationText | None:
    """What a variant's recipe has to read before it quantizes; None when it needs nothing.

    Args:
        context: The levers; the recipe's option `calibration-text` names a file.
        loaded: The model.
        model: What the user calls it, for the name of the kept ranges.
        output: Where progress goes, and where the kept file is named; None: silent, nothing is kept.

    Raises:
        RequestError: The model cannot read text, or the file cannot be read or is too short.
    """
    recipe = RECIPES[context.precision]
    if not recipe.needs_calibration(context):
        return None
    path = str(recipe.settings(context).get("calibration-text", ""))
    text = calibration_text(loaded.tokenizer, loaded.model.config, path)
    if output is None:
        return text
    told = output

    def keep(ranges: Ranges) -> None:
        place = ranges_place(model, text)
        try:
            save_ranges(ranges, place)
        except OSError as error:
            told.warn(f"The ranges of activations could not be kept in {place}: {error.strerror or error}.")
            return
        told.tell(
            f"{recipe.title} was calibrated on {ranges.tokens} tokens of {ranges.source}. The ranges are kept; "
            f"--option {recipe.name}.ranges={place} uses them again."
        )

    return CalibrationText(
        token_ids=text.token_ids,
        source=text.source,
        progress=lambda done, total, note: told.progress("load", done, total, "pieces", note),
        keep=keep,
        tell=told.tell,
    )


def calibration_text(tokenizer: Tokenizer | None, config: GPTConfig, path: str = "") -> CalibrationText:
    """Pieces of a text as tokens.

    Args:
        tokenizer: The model's.
        config: Its context limits the pieces.
        path: A person's text file; empty: the text that comes with gptscope, which is no part of the evaluation text.

    Raises:
        RequestError: The model cannot read text, or the file cannot be read or is too short.
    """
    if tokenizer is None:
        raise RequestError(
            "This recipe has to see text before it quantizes, but the model has no tokenizer. Take a recipe that needs "
            "no calibration, such as int8-dynamic, or a model with a tokenizer."
        )
    file = Path(path).expanduser() if path else None
    text = calibration_file().read_text(encoding="utf-8") if file is None else read_text(str(file))
    ids = torch.tensor(tokenizer.encode(text), dtype=torch.long)
    length = min(PIECE_TOKENS, config.context_length)
    pieces = min(PIECES, len(ids) // length)
    if pieces < 1:
        raise RequestError(
            f"The calibration text {path} has {len(ids)} tokens, and at least {length} are needed. Give a longer text."
        )
    source = OWN_TEXT if file is None else file.name
    return CalibrationText(token_ids=ids[: pieces * length].view(pieces, length), source=source)


def ranges_place(model: str, text: CalibrationText) -> Path:
    """Where ranges of this model on this text are kept: the user's data folder."""
    key = hashlib.sha256(model.encode() + text.token_ids.numpy().tobytes()).hexdigest()[:8]
    short = re.sub(r"[^\w.-]+", "-", Path(model).name if "/" in model else model).strip("-.")[:60]
    return Path(platformdirs.user_data_dir("gptscope")) / "ranges" / f"{short}-{key}.json"


def calibrate(command: Calibrate, output: Output) -> Calibrated:
    """Measure the ranges of a model's activations and write them to a file.

    Raises:
        ModelError: The model is missing, damaged or unsupported.
        RequestError: It cannot read text, the text or the file cannot be used, or the recipe needs no ranges.
    """
    recipe = RECIPES.get(command.recipe)
    with_ranges = [name for name, one in RECIPES.items() if any(option.name == "ranges" for option in one.options)]
    if recipe is None or command.recipe not in with_ranges:
        raise RequestError(f"{command.recipe} uses no calibrated ranges. Recipes that do: {', '.join(with_ranges)}.")
    output.progress("load", 0, 0, note=f"reading {command.model}")
    loaded = load_model(command.model, dtype=torch.float32, progress=progress_to(output))
    read = calibration_text(loaded.tokenizer, loaded.model.config, command.text)
    text = CalibrationText(
        token_ids=read.token_ids,
        source=read.source,
        progress=lambda done, total, note: output.progress("load", done, total, "pieces", note),
    )
    place = Path(command.out).expanduser().absolute() if command.out else ranges_place(command.model, text)
    ranges = observe(loaded.model.eval().requires_grad_(requires_grad=False), text)
    try:
        save_ranges(ranges, place)
    except OSError as error:
        raise RequestError(f"The ranges cannot be written to {place}: {error.strerror or error}.") from error
    return Calibrated(
        model=command.model,
        recipe=command.recipe,
        source=ranges.source,
        tokens=ranges.tokens,
        inputs=len(ranges.inputs),
        path=str(place),
    )
