"""INT8 weights and activations after the activations' outliers have been moved into the weights."""

import torch
from torch import nn

from gptscope.models.gpt import GPT
from gptscope.models.levers import LeverOption, OptionValue
from gptscope.models.precision.int8_dynamic import dynamic_layer
from gptscope.models.precision.int8_options import RANGE, RANGES, activations_option, int8_options
from gptscope.models.precision.int8_recipe import Int8Recipe
from gptscope.models.precision.int8_static import static_layer
from gptscope.models.quantization.layers import Int8Weight
from gptscope.models.quantization.ranges_file import Ranges
from gptscope.models.quantization.smoothing import smooth, smoothed_ranges

ALPHA = LeverOption(
    name="alpha",
    title="alpha",
    kind="number",
    default=0.5,
    least=0.0,
    most=1.0,
    summary="How much of the outliers moves into the weights: 0 none, 1 all. A scale per token needs about 0.5, fixed "
    "scales more, such as 0.75.",
)


class Int8SmoothQuant(Int8Recipe):
    """SmoothQuant (Xiao et al. 2023)."""

    name = "int8-smoothquant"
    title = "INT8 SmoothQuant"
    summary = (
        "W8A8 after outliers of activations have been moved into the weights, where each channel has its own scale. "
        "The division goes into norms and other weights, so it costs nothing while the model runs."
    )
    options = (ALPHA, *int8_options(activations_option("token", "tensor", "static"), RANGE), RANGES)
    reads_ranges = True

    def smooth(self, model: GPT, values: dict[str, OptionValue], ranges: Ranges | None) -> Ranges | None:
        assert ranges is not None
        return smoothed_ranges(ranges, smooth(model, ranges, float(values["alpha"])))

    def make_layer(
        self,
        path: str,
        linear: nn.Linear,
        values: dict[str, OptionValue],
        ranges: Ranges | None,
        dtype: torch.dtype,
    ) -> Int8Weight:
        if values["activations"] == "static":
            return static_layer(path, linear, values, ranges, dtype)
        return dynamic_layer(linear, values, dtype)
