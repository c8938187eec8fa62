"""FP8 with delayed scaling: scales follow the largest magnitudes of earlier steps (Transformer Engine's default)."""

from collections.abc import Mapping

from torch import nn

from gptscope.models.calibration import CalibrationText
from gptscope.models.gpt import GPT
from gptscope.models.levers import LeverContext, LeverOption, OptionValue
from gptscope.models.precision.fp8_recipe import CHOICE, EmulatedRecipe, format_option, formats_of, largest_inputs
from gptscope.models.precision.fp8_scaling import DelayedScaling, LayerScaling


class Fp8Delayed(EmulatedRecipe):
    """E4M3 forward, E5M2 backward, one delayed scale per tensor."""

    name = "fp8-delayed"
    title = "FP8 delayed (emulated)"
    summary = (
        "8-bit products, one scale per tensor taken from the largest magnitudes of earlier steps. Made for training; "
        "inference sets the scales on a calibration text. Emulated on a CPU: exact values, no speedup expected."
    )
    options = (
        format_option("hybrid"),
        LeverOption(
            name="history",
            title="history",
            kind="whole",
            default=1024,
            least=1,
            most=65536,
            summary="Steps whose largest magnitudes are remembered.",
        ),
        LeverOption(
            name="algorithm",
            title="taken from history",
            kind="choice",
            default="max",
            choices=("max", "most_recent"),
            summary="max: the largest of the history; most_recent: that of the step before.",
        ),
        LeverOption(
            name="margin",
            title="margin",
            kind="whole",
            default=0,
            least=0,
            most=16,
            summary="Room for growth: scales are 2^margin smaller than they could be.",
        ),
        *CHOICE,
    )

    def needs_calibration(self, context: LeverContext) -> bool:
        return not context.training

    def layer_scaling(self, settings: Mapping[str, OptionValue], number: int) -> LayerScaling:
        del number
        return DelayedScaling(
            formats_of(settings),
            history=int(settings["history"]),
            margin=int(settings["margin"]),
            algorithm=str(settings["algorithm"]),
        )

    def calibrate(
        self, model: GPT, chosen: Mapping[str, nn.Linear], scalings: Mapping[str, LayerScaling], text: CalibrationText
    ) -> None:
        """Each piece of text counts as one step; afterwards the scales stay, as they do without gradients."""
        for name, magnitudes in largest_inputs(model, chosen, text).items():
            scaling = scalings[name]
            assert isinstance(scaling, DelayedScaling)
            weight = chosen[name].weight.detach().abs().amax().float()
            for amax in magnitudes:
                scaling.observe("input", amax)
                scaling.observe("weight", weight)
