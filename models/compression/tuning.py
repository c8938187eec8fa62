"""Training for a recipe: every step sees the recipe's rounding, so that the weights learn to live with it."""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from gptscope.models.calibration import CalibrationText
from gptscope.models.compression.fake_quant import fake_quantized
from gptscope.models.compression.recovery import Masks, keep_zeros, zero_masks
from gptscope.models.gpt import GPT
from gptscope.models.levers import LeverContext, LeverError
from gptscope.models.precision import RECIPES
from gptscope.models.precision.fp8_recipe import EmulatedRecipe
from gptscope.models.precision.int8_recipe import Int8Recipe
from gptscope.models.quantization.layers import Int8Embedding, Int8Weight
from gptscope.models.quantization.names import linears, set_module
from gptscope.models.quantization.sensitivity import layer_errors, worst

_WARM_UP = 0.05
"""Share of the steps in which the learning rate rises; afterwards it falls to a tenth along a cosine."""
_CLIP_NORM = 1.0
_RANKING_PIECES, _RANKING_TOKENS = 2, 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What to train and how."""

    mode: Literal["qat", "targeted"]
    goal: Literal["original", "text"]
    steps: int
    lr: float
    layers: int
    """How many layers `targeted` trains."""


@dataclass(frozen=True, slots=True)
class Narrow:
    """A model's layers in the recipe's format."""

    recipe: Int8Recipe | EmulatedRecipe
    context: LeverContext
    layers: Mapping[str, nn.Module]
    """Path -> quantized layer."""


def narrow_layers(model: GPT, context: LeverContext, calibration: CalibrationText | None) -> Narrow:
    """Quantize a copy of the model and take its layers.

    Raises:
        LeverError: The recipe cannot be trained for.
    """
    recipe = RECIPES.get(context.precision)
    if not isinstance(recipe, Int8Recipe | EmulatedRecipe):
        kinds = [name for name, one in RECIPES.items() if isinstance(one, Int8Recipe | EmulatedRecipe)]
        raise LeverError(f"{context.precision} rounds nothing that training could learn. Recipes: {', '.join(kinds)}.")
    if isinstance(recipe, Int8Recipe):
        if type(recipe).smooth is not Int8Recipe.smooth:
            raise LeverError(
                f"{recipe.name} changes the weights itself; train for int8-dynamic or int8-static instead."
            )
        # the layers take the place of FP32 ones
        options = dict(context.options)
        options[recipe.name] = {**options.get(recipe.name, {}), "base": "fp32"}
        context = replace(context, options=options)
    narrow = copy.deepcopy(model).requires_grad_(requires_grad=False)
    recipe.quantize(narrow, context, calibration)
    plain = dict(model.named_modules())
    changed = {
        path: module
        for path, module in narrow.named_modules()
        if path in plain and type(module) is not type(plain[path])
    }
    return Narrow(recipe, context, changed)


def most_sensitive(
    model: GPT, narrow: Narrow, text_NL: Tensor, count: int, progress: Callable[[int, int, str], None]
) -> list[str]:
    """The linear layers whose quantization alone changes the prediction most, worst first."""
    paths = [path for path in linears(model) if path in narrow.layers]
    piece_NL = text_NL[:_RANKING_PIECES, :_RANKING_TOKENS]
    errors = layer_errors(model, lambda path, _linear: narrow.layers[path], piece_NL, paths, progress)
    return worst(errors, count)


def choose_trained(model: GPT, tuning: Tuning, sensitive: list[str]) -> tuple[str, ...]:
    """Let only what is to be trained have gradients; return the paths of its linear layers."""
    model.requires_grad_(requires_grad=tuning.mode == "qat")
    trained = list(linears(model)) if tuning.mode == "qat" else sensitive
    for path in trained:
        model.get_submodule(path).requires_grad_(requires_grad=True)
    return tuple(trained)


class Tuner:
    """Trains a model, step by step.

    Args:
        model: Unquantized, in FP32; trained in place.
        narrow: Its layers in the recipe's format, from before the training; None: it trains as it is.
        tuning: What and how.
        autocast: Products in BF16, where the machine has instructions for it.
        original: The model before it was pruned; None: it is the one that is trained.
    """

    def __init__(
        self, model: GPT, narrow: Narrow | None, tuning: Tuning, *, autocast: bool, original: GPT | None = None
    ) -> None:
        self._model, self._narrow, self._tuning = model, narrow, tuning
        self._autocast = autocast
        self._masks: Masks = () if original is None else zero_masks(original, model)
        self._teacher: GPT | None = None
        if tuning.goal == "original":
            self._teacher = (original or copy.deepcopy(model)).requires_grad_(requires_grad=False)

    def run(self, batches: Iterator[Tensor]) -> Iterator[float]:
        """Train one step per batch `[B, L]`; give each step's loss before its update. Close it to stop early."""
        trained = [parameter for parameter in self._model.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=self._tuning.lr, weight_decay=0.0)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self._rate)
        self._model.train()
        try:
            with self._narrowed():
                for tokens_BL in batches:
                    loss = self._loss(tokens_BL)
                    optimizer.zero_grad(set_to_none=True)
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(trained, _CLIP_NORM)
                    optimizer.step()
                    keep_zeros(self._masks)
                    schedule.step()
                    yield float(loss.detach())
        finally:
            self._model.eval().requires_grad_(requires_grad=False)

    def _loss(self, tokens_BL: Tensor) -> Tensor:
        with self._precision():
            logits_BLV = self._model(tokens_BL).float()
            if self._teacher is None:
                return nn.functional.cross_entropy(logits_BLV[:, :-1].flatten(0, 1), tokens_BL[:, 1:].flatten())
            with torch.no_grad():
                wanted_BLV = self._teacher(tokens_BL).float().log_softmax(-1)
        found_BLV = logits_BLV.log_softmax(-1)
        return nn.functional.kl_div(
            found_BLV.flatten(0, 1), wanted_BLV.flatten(0, 1), reduction="batchmean", log_target=True
        )

    def _precision(self) -> AbstractContextManager[object]:
        return torch.autocast("cpu", dtype=torch.bfloat16) if self._autocast else nullcontext()

    def _rate(self, step: int) -> float:
        steps = self._tuning.steps
        rising = max(1, round(_WARM_UP * steps))
        if step < rising:
            return (step + 1) / rising
        done = (step - rising) / max(1, steps - rising)
        return 0.1 + 0.45 * (1.0 + float(torch.cos(torch.tensor(done * torch.pi))))

    def _narrowed(self) -> AbstractContextManager[None]:
        narrow = self._narrow
        if narrow is None:
            return nullcontext()
        if isinstance(narrow.recipe, EmulatedRecipe):
            return _emulated(self._model, narrow.recipe, narrow.context)
        dtype = torch.bfloat16 if self._autocast else torch.float32
        layers = {path: one for path, one in narrow.layers.items() if isinstance(one, Int8Weight | Int8Embedding)}
        return fake_quantized(self._model, layers, dtype)


@contextmanager
def _emulated(model: GPT, recipe: EmulatedRecipe, context: LeverContext) -> Iterator[None]:
    """Inside, the model trains in the recipe's format, forward and backward; afterwards the plain layers are back."""
    before: dict[str, nn.Module] = dict(linears(model))
    try:
        recipe.quantize(model, replace(context, workload="train"), None)
        yield
    finally:
        for path, layer in before.items():
            set_module(model, path, layer)
