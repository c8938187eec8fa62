"""Trains a model for a recipe, scores it before and after, saves it, and sees that it can be loaded again."""

import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gptscope.assets.bundled import calibration_text as bundled_training_text
from gptscope.assets.bundled import evaluation_text
from gptscope.models.calibration import CalibrationProgress, CalibrationText
from gptscope.models.compression.recovery import most_hurt
from gptscope.models.compression.tuning import Tuner, Tuning, choose_trained, most_sensitive, narrow_layers
from gptscope.models.gpt import GPT
from gptscope.models.levers import LeverContext
from gptscope.models.loaders import LoadedModel, Tokenizer, describe_model, load_model
from gptscope.models.loaders.saving import check_room, check_shape, check_source, check_target, save_folder
from gptscope.models.precision import RECIPES
from gptscope.models.prepare import prepare
from gptscope.profiling.experiment import Variant
from gptscope.profiling.machine import facts
from gptscope.profiling.quality.perplexity import Estimate, perplexity, perplexity_change
from gptscope.profiling.records import FineTune, FineTuned, TextScore
from gptscope.profiling.worker.calibration import calibration_text
from gptscope.profiling.worker.failures import NotEnoughMemoryError, RequestError
from gptscope.profiling.worker.model_info import progress_to
from gptscope.profiling.worker.output import Output
from gptscope.profiling.worker.request import check_levers, choose_threads, to_lever_machine
from gptscope.profiling.worker.saving import check_saved
from gptscope.profiling.worker.texts import read_text
from gptscope.profiling.worker.windows import split_windows

WINDOW_TOKENS = 512
MOST_WINDOWS = 12
_BYTES_PER_PARAMETER = 26
"""FP32 weights, gradients, two moments, the teacher, one scored copy, and what is in flight."""
_NATIVE_BF16 = frozenset({"avx512_bf16", "amx_bf16"})


@dataclass(slots=True)
class _Job:
    """One request with what it works on."""

    command: FineTune
    loaded: LoadedModel
    tokenizer: Tokenizer
    context: LeverContext
    calibration: CalibrationText | None
    output: Output
    windows: list[Tensor]
    """Of the evaluation text."""


def finetune(command: FineTune, output: Output) -> FineTuned:
    """Do all of it, telling progress.

    Raises:
        ModelError: The model cannot be loaded, or the folder cannot be written.
        LeverError: The recipe does not exist here or cannot be trained for.
        RequestError: The text is too short, or the model has no tokenizer.
        NotEnoughMemoryError: It does not fit into memory.
    """
    torch.set_num_threads(choose_threads(Variant(threads=command.threads)))
    torch.manual_seed(command.seed)
    folder = Path(command.folder).expanduser()
    check_target(folder)
    check_source(command.model)
    job = _load(command, output)
    text, text_name = _training_text(job)
    model = job.loaded.model
    original = _nll(job, model, "fp32", "the original model")
    unpruned = None
    if command.pruning != "none":
        unpruned, model = model, _pruned(job)
        check_shape(command.model, model.config)
    aim = " with ".join(one for one in (command.pruning, command.recipe) if one != "none")
    quantized_before = _nll(job, model, command.recipe, f"{aim} before training")
    tuning = Tuning(mode=command.mode, goal=command.goal, steps=command.steps, lr=command.lr, layers=command.layers)
    exact = command.recipe == "fp32" and unpruned is not None
    narrow = None if exact else narrow_layers(model, job.context, job.calibration)
    sensitive: list[str] = []
    if command.mode == "targeted" and narrow is not None:
        sensitive = most_sensitive(model, narrow, _ranking_text(job, text), command.layers, _ranking(output))
    elif command.mode == "targeted" and unpruned is not None:
        sensitive = most_hurt(unpruned, model, _ranking_text(job, text), command.layers, _ranking(output))
    trained = choose_trained(model, tuning, sensitive)
    native = bool(_NATIVE_BF16 & job.context.machine.cpu_features)
    tuner = Tuner(model, narrow, tuning, autocast=native, original=unpruned)
    begun_s = time.monotonic()
    losses = _train(tuner, _batches(text, command), command.steps, output)
    seconds = time.monotonic() - begun_s
    after = _nll(job, model, "fp32", "the trained model")
    quantized_after = after if exact else _nll(job, model, command.recipe, f"{aim} after training")
    output.progress("load", 0, 0, note=f"saving {folder}")
    save_folder(model, job.tokenizer, command.model, folder)
    check_saved(model, folder)
    return FineTuned(
        request=command,
        folder=str(folder.resolve()),
        trained=trained,
        losses=tuple(losses),
        seconds=seconds,
        tokens=sum(map(len, original)),
        original=_score(perplexity(original)),
        quantized_before=_score(perplexity(quantized_before)),
        quantized_after=_score(perplexity(quantized_after)),
        after=_score(perplexity(after)),
        change=_score(perplexity_change(quantized_before, quantized_after)),
        text=text_name,
    )


def _load(command: FineTune, output: Output) -> _Job:
    """Check the levers, load the model in FP32, and read the evaluation text."""
    described = describe_model(command.model)
    check_room(Path(command.folder).expanduser(), described.config)
    context = LeverContext(
        machine=to_lever_machine(facts.machine_info("cpu")),
        config=described.config,
        workload="prefill",
        precision=command.recipe,
        kv_cache="none",
        pruning=command.pruning,
        options={
            name: given
            for name, given in ((command.recipe, command.options), (command.pruning, command.pruning_options))
            if given
        },
    )
    check_levers(context)
    needed, free = described.config.parameter_count * _BYTES_PER_PARAMETER, facts.memory_available_bytes()
    if needed > free:
        raise NotEnoughMemoryError(
            f"Training {described.name} needs about {needed / 1e9:.1f} GB (weights, gradients, optimizer state and a "
            f"copy of the original), but only {free / 1e9:.1f} GB of memory are free. Take a smaller model."
        )
    output.progress("load", 0, 0, note=f"reading {command.model}")
    loaded = load_model(command.model, dtype=torch.float32, seed=command.seed, progress=progress_to(output))
    if loaded.tokenizer is None:
        raise RequestError("This model has no tokenizer, so it cannot read a text to learn from.")
    calibration = None
    if RECIPES[command.recipe].needs_calibration(context):
        calibration = calibration_text(loaded.tokenizer, loaded.model.config)
    ids = torch.tensor(loaded.tokenizer.encode(evaluation_text().read_text(encoding="utf-8")), dtype=torch.long)
    windows = split_windows(ids, min(WINDOW_TOKENS, loaded.model.config.context_length), MOST_WINDOWS)
    return _Job(command, loaded, loaded.tokenizer, context, calibration, output, windows)


def _pruned(job: _Job) -> GPT:
    """A pruned copy of the model."""
    context = replace(job.context, precision="fp32")
    return prepare(copy.deepcopy(job.loaded.model), context, torch.device("cpu")).model


def _training_text(job: _Job) -> tuple[Tensor, str]:
    """Token ids `[N]` to learn from, and what they are called."""
    given = job.command.text
    path = bundled_training_text() if given is None else Path(given).expanduser()
    text = read_text(str(path))
    ids = torch.tensor(job.tokenizer.encode(text), dtype=torch.long)
    limit = job.loaded.model.config.context_length
    if job.command.context > limit:
        raise RequestError(
            f"context is {job.command.context} tokens, but this model reads at most {limit}. Take a context of {limit} "
            "or less."
        )
    if len(ids) <= job.command.context:
        raise RequestError(
            f"The text {path} has {len(ids)} tokens, but one piece of {job.command.context} needs more. Give a longer "
            "text or a smaller context."
        )
    return ids, "gptscope's calibration text" if given is None else str(path)


def _ranking_text(job: _Job, text: Tensor) -> Tensor:
    """Two pieces of the training text, `[2, L]`."""
    length = job.command.context
    return torch.stack((text[:length], text[-length:]))


def _ranking(output: Output) -> CalibrationProgress:
    def tell(done: int, total: int, note: str) -> None:
        output.progress("evaluate", done, total, "layers", note)

    return tell


def _batches(text: Tensor, command: FineTune) -> Iterator[Tensor]:
    """Random pieces of the text, the same for the same seed."""
    generator = torch.Generator().manual_seed(command.seed)
    for _ in range(command.steps):
        starts = torch.randint(0, len(text) - command.context, (command.batch,), generator=generator)
        yield torch.stack([text[start : start + command.context] for start in starts.tolist()])


def _train(tuner: Tuner, batches: Iterator[Tensor], steps: int, output: Output) -> list[float]:
    losses: list[float] = []
    output.progress("train", 0, steps, "steps")
    for loss in tuner.run(batches):
        losses.append(loss)
        if not np.isfinite(loss):
            raise RequestError(
                f"The loss became {loss} in step {len(losses)}, so nothing was saved. Give a smaller learning rate."
            )
        output.progress("train", len(losses), steps, "steps", f"loss {loss:.4f}")
    return losses


def _nll(job: _Job, model: GPT, precision: str, note: str) -> list[npt.NDArray[np.float64]]:
    """Nats of each token of each evaluation window, by a copy of the model in this precision."""
    count = len(job.windows)
    job.output.progress("evaluate", 0, count, "windows", note)
    context = replace(job.context, precision=precision, pruning="none", config=model.config)
    calibration = job.calibration if precision == job.command.recipe else None
    prepared = prepare(copy.deepcopy(model), context, torch.device("cpu"), calibration)
    found = []
    for done, window in enumerate(job.windows):
        logits_LV = prepared.logits(window[None, :-1])[0].float()
        nll_L = torch.nn.functional.cross_entropy(logits_LV, window[1:], reduction="none")
        found.append(nll_L.double().numpy())
        job.output.progress("evaluate", done + 1, count, "windows", note)
    return found


def _score(estimate: Estimate) -> TextScore:
    return TextScore(perplexity=estimate.value, error=estimate.error)
