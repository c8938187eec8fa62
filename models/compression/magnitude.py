"""Unstructured magnitude pruning: the smallest weights become zero (Han et al. 2015)."""

import torch

from gptscope.models.compression.pruning import SEEN, ZEROS, Pruning, block_linears, keep_largest, zero_counters
from gptscope.models.gpt import GPT
from gptscope.models.levers import Evidence, LeverContext, LeverOption, ProfileFacts

_TOLERANCE = 0.01


class Magnitude(Pruning):
    """Single weights anywhere."""

    name = "magnitude"
    title = "magnitude pruning"
    summary = (
        "Sets the smallest weights to zero. No speedup: dense kernels multiply zeros like any other number. It shows "
        "how much of a model can go before its output suffers."
    )
    options = (
        LeverOption(
            name="amount",
            title="share of the weights",
            kind="number",
            default=0.5,
            least=0.0,
            most=0.99,
            summary="How much becomes zero, 0 to 0.99.",
        ),
        LeverOption(
            name="scope",
            title="compared within",
            kind="choice",
            default="matrix",
            choices=("matrix", "model"),
            summary="matrix: every matrix loses the same share; model: one threshold for all, so some lose more.",
        ),
    )

    def warning(self, context: LeverContext) -> str | None:
        del context
        return "Zeros anywhere bring no speedup: dense kernels multiply them like any other number."

    def apply(self, model: GPT, context: LeverContext) -> None:
        settings = self.settings(context)
        amount = float(settings["amount"])
        weights = [linear.weight for linear in block_linears(model)]
        with torch.no_grad():
            if settings["scope"] == "model":
                everything = torch.cat([weight.detach().abs().flatten().float() for weight in weights])
                chosen = keep_largest(everything, everything.numel() - int(amount * everything.numel()))
                masks = [
                    part.view_as(w) for part, w in zip(chosen.split([w.numel() for w in weights]), weights, strict=True)
                ]
            else:
                masks = [keep_largest(w.detach().abs(), w.numel() - int(amount * w.numel())) for w in weights]
            for weight, mask in zip(weights, masks, strict=True):
                weight.mul_(mask)

    def counters(self, model: GPT) -> dict[str, float]:
        return zero_counters(model)

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        amount = float(self.settings(context)["amount"])
        seen = facts.counters.get(SEEN, 0.0)
        if not seen:
            return self.cannot_tell("The weights exist only in a packed form, in which zeros cannot be counted.")
        share = facts.counters.get(ZEROS, 0.0) / seen
        sentence = f"{share:.1%} of the {seen:,.0f} weights in the layers are zero"
        if share < amount - _TOLERANCE:
            return self.not_shown(f"Only {sentence}, but {amount:.1%} were to be.")
        return self.shown(f"{sentence}; dense kernels multiply them like any other, so no speedup.")
