"""FP8 with current scaling: each tensor is scaled by its own largest magnitude."""

from collections.abc import Mapping

from gptscope.models.levers import OptionValue
from gptscope.models.precision.fp8_recipe import CHOICE, EmulatedRecipe, format_option, formats_of
from gptscope.models.precision.fp8_scaling import CurrentScaling, LayerScaling


class Fp8Current(EmulatedRecipe):
    """One scale per tensor, computed when it is needed."""

    name = "fp8-current"
    title = "FP8 current (emulated)"
    summary = (
        "8-bit products, one scale per tensor taken from its own largest magnitude: nothing saturates, at the price of "
        "one more pass over the data. Emulated on a CPU: exact values, no speedup expected."
    )
    options = (format_option("hybrid"), *CHOICE)

    def layer_scaling(self, settings: Mapping[str, OptionValue], number: int) -> LayerScaling:
        del number
        return CurrentScaling(formats_of(settings))
