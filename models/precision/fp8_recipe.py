"""What the narrow floating-point recipes share: which layers they take, that they are emulated, and their proof."""

from abc import abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from gptscope.models.calibration import CalibrationText
from gptscope.models.formats import E4M3, E5M2
from gptscope.models.gemm import is_linear
from gptscope.models.gpt import GPT
from gptscope.models.levers import Evidence, LeverContext, LeverError, LeverOption, OptionValue, ProfileFacts
from gptscope.models.precision.fp8_linear import RAN, EmulatedLinear
from gptscope.models.precision.fp8_scaling import Formats, LayerScaling
from gptscope.models.precision.recipe import PrecisionRecipe
from gptscope.models.precision.scale_log import ScaleLog
from gptscope.models.quantization.names import linears, matching, set_module, split_patterns

KEEP = LeverOption(
    name="keep",
    title="kept in BF16",
    kind="text",
    default="",
    summary="Layers that stay in BF16: names or patterns, such as `blocks.0; *.mlp.down`.",
)
HEAD = LeverOption(
    name="head",
    title="quantize the output projection",
    kind="switch",
    default=False,
    summary="Usually left in BF16: it is nearest to the prediction.",
)
CHOICE = (KEEP, HEAD)
"""Which layers are taken: what every narrow recipe has."""
EMULATED = "Emulated on a CPU: exact values, no speedup expected."


def format_option(default: str) -> LeverOption:
    """The option that says which format gradients have."""
    return LeverOption(
        name="format",
        title="format",
        kind="choice",
        default=default,
        choices=("hybrid", "e4m3"),
        summary="hybrid: E4M3 forward and E5M2, which has the wider range, for gradients; e4m3: E4M3 for everything.",
    )


def formats_of(settings: Mapping[str, OptionValue]) -> Formats:
    """Formats of input, weight and gradient."""
    return {"input": E4M3, "weight": E4M3, "grad": E5M2 if settings["format"] == "hybrid" else E4M3}


class EmulatedRecipe(PrecisionRecipe):
    """Products of linear layers in a narrow format, everything else in BF16."""

    dtype = torch.bfloat16
    bytes_per_value = 2.0  # what the emulation keeps; the format itself would be smaller
    native_features = frozenset({"avx512_bf16", "amx_bf16"})

    def machine_reason(self, context: LeverContext) -> str | None:
        if context.machine.device != "cpu":
            return (
                f"{self.format_name} on a GPU needs Transformer Engine or torch's scaled products, and gptscope does "
                "not drive them yet. On the CPU it is emulated: the same numbers, without the speed."
            )
        if "compile" in context.fusions:
            return f"torch.compile cannot trace the emulation of {self.format_name}; leave the fusion compile out."
        return None

    def warning(self, context: LeverContext) -> str | None:
        emulated = f"{self.format_name} is emulated on a CPU: its numbers are exact, but no speedup is to be expected."
        if context.machine.device != "cpu" or self.native_features & context.machine.cpu_features:
            return emulated
        return f"{emulated} This CPU has no native BF16 instructions either, so the other layers are slow too."

    @property
    def format_name(self) -> str:
        """The title without the word that says how it is computed here."""
        return self.title.removesuffix(" (emulated)")

    @abstractmethod
    def layer_scaling(self, settings: Mapping[str, OptionValue], number: int) -> LayerScaling:
        """The scales of one layer; `number` counts the layers."""

    def quantize(self, model: GPT, context: LeverContext, calibration: CalibrationText | None) -> None:
        settings = self.settings(context)
        chosen = chosen_linears(model, str(settings["keep"]), head=bool(settings["head"]))
        scalings = {name: self.layer_scaling(settings, number) for number, name in enumerate(chosen)}
        if calibration is not None:
            self.calibrate(model, chosen, scalings, calibration)
        log = ScaleLog()
        for name, linear in chosen.items():
            emulated = EmulatedLinear(linear, name, scalings[name], log, training=context.training)
            set_module(model, name, emulated)

    def calibrate(
        self, model: GPT, chosen: Mapping[str, nn.Linear], scalings: Mapping[str, LayerScaling], text: CalibrationText
    ) -> None:
        """Let the layers' scales see the text; without effect in recipes that compute them when they are needed."""

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        del context
        layers = facts.counters.get(RAN, 0.0)
        if not layers:
            plain = facts.calls_per_step(is_linear)
            return self.not_shown(
                f"No product took {self.format_name} values; the {plain:.0f} weight products per step ran as they were."
            )
        typed = any(kernel.dtypes for kernel in facts.kernels)
        casts = facts.calls_per_step(lambda kernel: any("Float8" in dtype for dtype in kernel.dtypes))
        if typed and casts < layers:
            return self.not_shown(
                f"The products of {layers:.0f} layers were emulated, but only {casts:.0f} values per step were cast to "
                "8 bits."
            )
        seen = f", {casts:.0f} casts to or from 8 bits per step" if typed else ""
        return self.shown(f"The products of {layers:.0f} layers took narrow values{seen}. {EMULATED}")


def chosen_linears(model: GPT, keep: str, *, head: bool) -> dict[str, nn.Linear]:
    """The linear layers to quantize by their paths, in the order of the model.

    Raises:
        LeverError: A pattern names no layer, or none is left.
    """
    known = linears(model)
    kept = matching(known, split_patterns(keep)) | (set() if head else {"lm_head"})
    chosen = {path: linear for path, linear in known.items() if path not in kept}
    if not chosen:
        raise LeverError(f"keep is {keep!r}, which leaves no layer to quantize. Name fewer layers.")
    return chosen


def largest_inputs(model: GPT, linears: Mapping[str, nn.Linear], text: CalibrationText) -> dict[str, list[Tensor]]:
    """For each layer the largest magnitude that each piece of the text sends into it."""
    found: dict[str, list[Tensor]] = {name: [] for name in linears}
    handles = []
    for name, linear in linears.items():

        def look(_module: nn.Module, inputs: tuple[Tensor, ...], name: str = name) -> None:
            found[name].append(inputs[0].abs().amax().float())

        handles.append(linear.register_forward_pre_hook(look))
    try:
        with torch.inference_mode():
            for piece_L in text.token_ids:
                model(piece_L[None].to(next(model.parameters()).device))
    finally:
        for handle in handles:
            handle.remove()
    return found
