"""INT8 weights and INT8 activations whose scales were found before, on a calibration text."""

import torch
from torch import nn

from gptscope.models.levers import OptionValue
from gptscope.models.precision.int8_options import RANGE, RANGES, int8_options, read_settings
from gptscope.models.precision.int8_recipe import Int8Recipe, limits_for
from gptscope.models.quantization.layers import Int8StaticLinear, Int8Weight
from gptscope.models.quantization.names import input_name
from gptscope.models.quantization.ranges_file import Ranges


class Int8Static(Int8Recipe):
    """W8A8 with calibrated ranges."""

    name = "int8-static"
    title = "INT8 static"
    summary = (
        "Weights and activations as INT8, with one fixed scale per layer's input that a calibration text gave: nothing "
        "has to be measured while it runs, but what the text did not show is clipped."
    )
    options = (*int8_options(RANGE), RANGES)
    reads_ranges = True

    def make_layer(
        self,
        path: str,
        linear: nn.Linear,
        values: dict[str, OptionValue],
        ranges: Ranges | None,
        dtype: torch.dtype,
    ) -> Int8Weight:
        return static_layer(path, linear, values, ranges, dtype)


def static_layer(
    path: str, linear: nn.Linear, values: dict[str, OptionValue], ranges: Ranges | None, dtype: torch.dtype
) -> Int8StaticLinear:
    """The layer with the scale that its calibrated range gives."""
    assert ranges is not None
    read = read_settings(values)
    limit = ranges.limit(input_name(path), str(values["range"]), read.percentile)
    return Int8StaticLinear(linear.weight.detach(), limits_for(linear, read), linear.bias, dtype, input_limit=limit)
