"""MXFP8: FP8 elements with a power of two per 32 neighbours (OCP microscaling formats, 2023)."""

from collections.abc import Mapping

from gptscope.models.levers import LeverOption, OptionValue
from gptscope.models.precision.fp8_recipe import CHOICE, EmulatedRecipe, format_option, formats_of
from gptscope.models.precision.fp8_scaling import LayerScaling, MxScaling


class MxFp8(EmulatedRecipe):
    """Blocks of 32 with an E8M0 scale."""

    name = "mxfp8"
    title = "MXFP8 (emulated)"
    summary = (
        "8-bit products with a scale (a power of two) per 32 neighbouring values, so that an outlier coarsens its "
        "block only. Emulated on a CPU: exact values, no speedup expected."
    )
    options = (
        format_option("e4m3"),
        LeverOption(
            name="scale",
            title="block scale",
            kind="choice",
            default="up",
            choices=("up", "down"),
            summary="up: rounded up, so that nothing saturates (NVIDIA); down: rounded down, as the OCP text has it.",
        ),
        *CHOICE,
    )

    def layer_scaling(self, settings: Mapping[str, OptionValue], number: int) -> LayerScaling:
        del number
        return MxScaling(formats_of(settings), up=settings["scale"] == "up")
