"""Which layers suffer: quantize one at a time and see how the model's output changes.

A layer's own output error says how well its numbers fit into INT8; what it does to the prediction can be very
different, so both are measured.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gptscope.models.calibration import CalibrationProgress
from gptscope.models.gpt import GPT, make_mask, make_rope
from gptscope.models.quantization.names import linears, set_module, textbook_names
from gptscope.models.quantization.observing import watching

MakeLayer = Callable[[str, nn.Linear], nn.Module]
"""From a layer's path and the layer to its quantized form, which takes and gives the same type."""
_POSITIONS = 64
"""Of each piece of text, evenly spread, at which predictions are compared: the output projection costs most."""


@dataclass(frozen=True, slots=True)
class LayerError:
    """What happens when only this layer is quantized."""

    path: str
    names: tuple[str, ...]
    """The textbook matrices in it."""
    kl: float
    """Mean KL divergence of the prediction from the unquantized model's, in nats."""
    sqnr_db: float
    """Power of the layer's own output over the power of its error; infinite when there is no error."""


@contextmanager
def replaced(model: GPT, layers: Mapping[str, nn.Module]) -> Iterator[None]:
    """Inside, these modules stand at these paths; afterwards the model is as before."""
    before = {path: model.get_submodule(path) for path in layers}
    try:
        for path, layer in layers.items():
            set_module(model, path, layer)
        yield
    finally:
        for path, linear in before.items():
            set_module(model, path, linear)


def layer_errors(
    model: GPT, make: MakeLayer, tokens_NL: Tensor, paths: Collection[str], progress: CalibrationProgress
) -> list[LayerError]:
    """Quantize each of the layers alone and compare.

    Args:
        model: Not quantized; unchanged afterwards.
        make: Quantizes one layer.
        tokens_NL: Text of N pieces; a few hundred tokens are enough to rank layers.
        paths: Which layers.
        progress: Told how many layers are done.

    Returns:
        One entry per path, in the model's order.
    """
    device = next(model.parameters()).device
    with torch.inference_mode():
        walk = Walk(model, tokens_NL.to(device))
        reference = walk.log_probabilities(0)
        found = []
        chosen = {path: linear for path, linear in linears(model).items() if path in paths}
        for number, (path, linear) in enumerate(chosen.items()):
            progress(number, len(chosen), f"quantizing {path} alone")
            quantized = make(path, linear)
            block = int(path.split(".")[1]) if path.startswith("blocks.") else model.config.n_layer
            seen: dict[str, Tensor] = {}
            with replaced(model, {path: quantized}), watching(model, [path], seen.__setitem__):
                changed = walk.log_probabilities(block)
            kl = float((reference.exp() * (reference - changed)).sum(-1).mean())
            found.append(LayerError(path, textbook_names(path), kl, _sqnr_db(linear, quantized, seen[path])))
        progress(len(chosen), len(chosen), "quantizing single layers")
    return found


def worst(errors: Collection[LayerError], count: int) -> list[str]:
    """The paths of the layers that change the prediction most, worst first."""
    return [one.path for one in sorted(errors, key=lambda one: one.kl, reverse=True)[:count]]


class Walk:
    """Runs a text through a model from any layer on, because the layers before a changed one give what they gave."""

    def __init__(self, model: GPT, tokens_NL: Tensor) -> None:
        self._model = model
        config = model.config
        length = tokens_NL.shape[1]
        position_1L = torch.arange(length, device=tokens_NL.device)[None]
        x_NLD = model.embed(tokens_NL)
        self._rope = None
        if model.position is not None:
            x_NLD = x_NLD + model.position(position_1L)
        else:
            self._rope = make_rope(config, position_1L, x_NLD.dtype)
        self._mask = make_mask(0, length, None, config.sliding_window, tokens_NL.device)
        self.into = [x_NLD]
        """What goes into each layer, and behind the last one."""
        for block in model.blocks:
            x_NLD = block(x_NLD, self._rope, self._mask, None)
            self.into.append(x_NLD)
        self._at = torch.linspace(0, length - 1, min(_POSITIONS, length), device=tokens_NL.device).long()

    def log_probabilities(self, first: int) -> Tensor:
        """Of every token at some positions, layers from `first` on computed anew."""
        x_NLD = self.into[first]
        for block in list(self._model.blocks)[first:]:
            x_NLD = block(x_NLD, self._rope, self._mask, None)
        logits = self._model.lm_head(self._model.norm(x_NLD[:, self._at]))
        return logits.float().log_softmax(-1)


def _sqnr_db(linear: nn.Module, quantized: nn.Module, x_BLD: Tensor) -> float:
    exact, rounded = linear(x_BLD).float(), quantized(x_BLD).float()
    noise = float((exact - rounded).square().sum())
    if noise == 0.0:
        return math.inf
    return 10 * math.log10(max(float(exact.square().sum()), 1e-30) / noise)
