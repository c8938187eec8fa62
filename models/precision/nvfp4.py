"""NVFP4: FP4 elements (E2M1) with an E4M3 scale per 16 neighbours and one FP32 scale per tensor."""

from collections.abc import Mapping

from gptscope.models.levers import LeverOption, OptionValue
from gptscope.models.precision.fp8_recipe import CHOICE, EmulatedRecipe
from gptscope.models.precision.fp8_scaling import LayerScaling, NvFp4Scaling


class NvFp4(EmulatedRecipe):
    """Blocks of 16 in 4 bits."""

    name = "nvfp4"
    title = "NVFP4 (emulated)"
    summary = (
        "4-bit products with an 8-bit scale per 16 neighbouring values. Training rounds gradients at random and "
        "spreads outliers by a Hadamard matrix. Emulated on a CPU: exact values, no speedup expected."
    )
    options = (
        LeverOption(
            name="random_rounding",
            title="random rounding of gradients",
            kind="switch",
            default=True,
            summary="Rounds gradients up or down in proportion to the distance, so that small ones survive on average.",
        ),
        LeverOption(
            name="hadamard",
            title="Hadamard transform",
            kind="switch",
            default=True,
            summary="Turns both operands of the weight gradient, which spreads outliers and cancels in the product.",
        ),
        LeverOption(
            name="square_weights",
            title="16 x 16 weight blocks",
            kind="switch",
            default=True,
            summary="One weight scale per 16 x 16 block, so that forward and backward pass see the same weights.",
        ),
        *CHOICE,
    )

    def layer_scaling(self, settings: Mapping[str, OptionValue], number: int) -> LayerScaling:
        return NvFp4Scaling(
            seed=number,
            random_rounding=bool(settings["random_rounding"]),
            hadamard=bool(settings["hadamard"]),
            square_weights=bool(settings["square_weights"]),
        )
