"""SmoothQuant (Xiao et al. 2023): moves outliers of activations into the weights.

Activations differ in size by feature, and one scale for all of them wastes the small ones' bits. Feature j is divided
by s_j = max|X_j|^alpha / max|W_j|^(1 - alpha), and column j of the weights that read it is multiplied by s_j, so that
the product stays the same. The division costs nothing where a norm makes the activations: it goes into the norm's
scale. That is so before q, k and v, before gate and up, and before the output projection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from gptscope.models.gpt import GPT
from gptscope.models.quantization.names import input_name, linears
from gptscope.models.quantization.ranges_file import InputRange, Ranges

_LEAST = 1e-5


def smooth(model: GPT, ranges: Ranges, alpha: float) -> dict[str, Tensor]:
    """Move outliers, in place; every layer that reads a norm is changed, whether it will be quantized or not.

    Args:
        model: Weights in full precision.
        ranges: From a calibration of this model.
        alpha: 0 leaves the activations, 1 makes all their features equally large.

    Returns:
        Name of each smoothed input -> what its features are divided by.
    """
    readers: dict[str, list[nn.Linear]] = {}
    for path, linear in linears(model).items():
        readers.setdefault(input_name(path), []).append(linear)
    smoothed: dict[str, Tensor] = {}
    for name, norm in _norms(model).items():
        layers = readers.get(name, [])
        if not layers:
            continue
        factor_D = factors(ranges.channels(name, layers[0].in_features), [one.weight for one in layers], alpha)
        _divide(norm, factor_D)
        for layer in layers:  # a new parameter: the output projection may share its own with the embedding
            layer.weight = nn.Parameter(layer.weight.detach() * factor_D, requires_grad=False)
        smoothed[name] = factor_D
    return smoothed


def factors(largest_D: Tensor, weights: Sequence[Tensor], alpha: float) -> Tensor:
    """s_j of each feature; 1 where nothing was ever seen."""
    columns_D = torch.stack([weight.detach().float().abs().amax(0) for weight in weights]).amax(0).clamp(min=_LEAST)
    largest_D = largest_D.to(columns_D)
    factor_D = largest_D.clamp(min=_LEAST) ** alpha / columns_D ** (1.0 - alpha)
    return torch.where(largest_D > 0, factor_D.clamp(min=_LEAST), torch.ones_like(factor_D))


def _norms(model: GPT) -> dict[str, nn.Module]:
    """What each norm's reader is called."""
    found: dict[str, nn.Module] = {}
    for number, block in enumerate(model.blocks):
        found[f"blocks.{number}.attn.qkv"] = block.get_submodule("attn_norm")
        found[f"blocks.{number}.mlp.up"] = block.get_submodule("mlp_norm")
    found["lm_head"] = model.norm
    return found


def _divide(norm: nn.Module, factor_D: Tensor) -> None:
    """Let a norm give each feature divided by its factor. All forms of norms end in `weight` (and `bias`)."""
    for name in ("weight", "bias"):
        values = getattr(norm, name, None)
        if isinstance(values, Tensor):
            setattr(norm, name, nn.Parameter(values.detach() / factor_D, requires_grad=False))


def smoothed_ranges(ranges: Ranges, factors_by_name: Mapping[str, Tensor]) -> Ranges:
    """The ranges after smoothing. Smoothed features are alike, so their limit is the largest one, by every method."""
    inputs = dict(ranges.inputs)
    for name, factor_D in factors_by_name.items():
        channels = inputs[name].channels / factor_D.to(inputs[name].channels)
        limits = dict.fromkeys(inputs[name].limits, float(channels.max()))
        inputs[name] = InputRange(limits=limits, channels=channels)
    return replace(ranges, inputs=inputs)
