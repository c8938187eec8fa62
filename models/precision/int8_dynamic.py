"""INT8 weights and INT8 activations whose scales are found while the model runs."""

import torch
from torch import nn

from gptscope.models.levers import OptionValue
from gptscope.models.precision.int8_options import activations_option, int8_options, read_settings
from gptscope.models.precision.int8_recipe import Int8Recipe, limits_for
from gptscope.models.quantization.layers import Int8DynamicLinear, Int8Weight
from gptscope.models.quantization.ranges_file import Ranges


class Int8Dynamic(Int8Recipe):
    """W8A8 without calibration."""

    name = "int8-dynamic"
    title = "INT8 dynamic"
    summary = (
        "Weights and activations as INT8 (W8A8), each token scaled by its own largest value: prompts run on the CPU's "
        "INT8 instructions. Outliers of activations cost precision."
    )
    options = int8_options(activations_option("token", "tensor"))

    def make_layer(
        self,
        path: str,
        linear: nn.Linear,
        values: dict[str, OptionValue],
        ranges: Ranges | None,
        dtype: torch.dtype,
    ) -> Int8Weight:
        del path, ranges
        return dynamic_layer(linear, values, dtype)


def dynamic_layer(linear: nn.Linear, values: dict[str, OptionValue], dtype: torch.dtype) -> Int8DynamicLinear:
    """The layer with scales that it finds while it runs."""
    limit_N1 = limits_for(linear, read_settings(values))
    per_token = values["activations"] == "token"
    return Int8DynamicLinear(linear.weight.detach(), limit_N1, linear.bias, dtype, per_token=per_token)
