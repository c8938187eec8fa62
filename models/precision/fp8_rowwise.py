"""FP8 with one scale per row of each operand, as torchao's recipe `rowwise` has it."""

from collections.abc import Mapping

from gptscope.models.levers import LeverOption, OptionValue
from gptscope.models.precision.fp8_recipe import CHOICE, EmulatedRecipe, format_option, formats_of
from gptscope.models.precision.fp8_scaling import LayerScaling, RowScaling


class Fp8Rowwise(EmulatedRecipe):
    """A scale per token and per output channel."""

    name = "fp8-rowwise"
    title = "FP8 row-wise (emulated)"
    summary = (
        "8-bit products, one scale per token and per output channel, so that an outlier coarsens its own row only. "
        "Emulated on a CPU: exact values, no speedup expected."
    )
    options = (
        format_option("e4m3"),
        LeverOption(
            name="power_of_two",
            title="scales are powers of two",
            kind="switch",
            default=True,
            summary="Scaling by a power of two adds no rounding of its own.",
        ),
        *CHOICE,
    )

    def layer_scaling(self, settings: Mapping[str, OptionValue], number: int) -> LayerScaling:
        del number
        return RowScaling(formats_of(settings), power_of_two=bool(settings["power_of_two"]))
