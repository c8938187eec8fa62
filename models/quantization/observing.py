"""Runs calibration text through a model and notes how large the inputs of its layers get."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from gptscope.models.calibration import CalibrationText
from gptscope.models.gpt import GPT
from gptscope.models.quantization.names import input_name, linears
from gptscope.models.quantization.ranges import ACTIVATION_METHODS, PERCENTILES, Histogram
from gptscope.models.quantization.ranges_file import InputRange, Ranges


class _Seen:
    """What came into one layer so far."""

    def __init__(self) -> None:
        self.histogram = Histogram()
        self.channels: Tensor | None = None

    def add(self, x_BLD: Tensor) -> None:
        self.histogram.add(x_BLD)
        largest_D = x_BLD.detach().float().abs().flatten(0, -2).amax(0)
        self.channels = largest_D if self.channels is None else torch.maximum(self.channels, largest_D)

    def result(self) -> InputRange:
        assert self.channels is not None
        limits = {method: self.histogram.limit(method) for method in ACTIVATION_METHODS if method != "percentile"}
        limits |= {f"percentile {value}": self.histogram.limit("percentile", float(value)) for value in PERCENTILES}
        return InputRange(limits=limits, channels=self.channels)


def observe(model: GPT, calibration: CalibrationText) -> Ranges:
    """Run the whole calibration text; return the ranges of what every matrix of the model reads.

    Layers that read the same (queries, keys and values; gate and up) share one range.
    """
    seen: dict[str, _Seen] = {}
    first: dict[str, str] = {}
    for path in linears(model):
        first.setdefault(input_name(path), path)
    for name in first:
        seen[name] = _Seen()
    by_path = {path: name for name, path in first.items()}

    def look(path: str, x_BLD: Tensor) -> None:
        seen[by_path[path]].add(x_BLD)

    with watching(model, by_path, look), torch.inference_mode():
        pieces = calibration.token_ids
        device = next(model.parameters()).device
        for number, piece_L in enumerate(pieces):
            calibration.progress(number, len(pieces), "measuring activations")
            model(piece_L[None].to(device))
        calibration.progress(len(pieces), len(pieces), "measuring activations")
    return Ranges(
        source=calibration.source,
        tokens=int(calibration.token_ids.numel()),
        inputs={name: one.result() for name, one in seen.items()},
    )


@contextmanager
def watching(model: GPT, paths: Collection[str], look: Callable[[str, Tensor], None]) -> Iterator[None]:
    """Call `look(path, input)` whenever one of the layers runs."""
    handles = []
    for path in paths:

        def hook(module: nn.Module, inputs: tuple[Tensor, ...], path: str = path) -> None:
            del module
            look(path, inputs[0])

        handles.append(model.get_submodule(path).register_forward_pre_hook(hook))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
