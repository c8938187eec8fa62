"""SmoothQuant (Xiao et al. 2023): moves outliers of activations into the weights.

Activations differ in size by feature, and one scale for all of them wastes the small ones' bits. Feature j is divided
by s_j = max|X_j|^alpha / max|W_j|^(1 - alpha), and column j of the weights that read it is multiplied by s_j, so that
the product stays the same. The division costs nothing where what makes the activations can do it: a norm's scale before
q, k and v, before gate and up, and before the output projection; the rows of `up` before `down` in a gated MLP, whose
hidden features are a product with `up` as one factor (as AWQ does, Lin et al. 2023). The rest has a bend in between.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from gptscope.models.fusion.mlp import FusedSwigluMLP
from gptscope.models.gpt import GPT, SwigluMLP
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
    for number, block in enumerate(model.blocks):
        if isinstance(block.mlp, SwigluMLP | FusedSwigluMLP):
            name = f"blocks.{number}.mlp.down"
            smoothed[name] = _smooth_gated(block.mlp, ranges, name, alpha)
    return smoothed


def _smooth_gated(mlp: SwigluMLP | FusedSwigluMLP, ranges: Ranges, name: str, alpha: float) -> Tensor:
    """Move outliers of a gated MLP's hidden features; return what each feature is divided by."""
    up, down = mlp.gate_up if isinstance(mlp, FusedSwigluMLP) else mlp.up, mlp.down
    assert isinstance(up, nn.Linear)
    assert isinstance(down, nn.Linear)
    factor_F = factors(ranges.channels(name, down.in_features), [down.weight], alpha)
    divisor_N = torch.ones(up.out_features, dtype=factor_F.dtype, device=factor_F.device)
    divisor_N[-len(factor_F) :] = factor_F  # a fused layer has the gate's rows first
    up.weight = nn.Parameter(up.weight.detach() / divisor_N[:, None], requires_grad=False)
    if up.bias is not None:
        up.bias = nn.Parameter(up.bias.detach() / divisor_N, requires_grad=False)
    down.weight = nn.Parameter(down.weight.detach() * factor_F, requires_grad=False)
    mlp.smoothing = factor_F
    return factor_F


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
