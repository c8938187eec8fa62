"""Mixed recipes: keep the few modules that hurt most unquantized, and most of the gain stays.

What single modules cost does not add up exactly to what all cost together, so a proposal is a prediction: the error of
all together, times the share that the quantized modules have in the sum of single errors. Verify it.
"""

from dataclasses import dataclass

import msgspec

from gptscope.profiling.experiment import OptionValue, Variant
from gptscope.profiling.records import LayerErrors, ModuleError

KEEP = "keep"
"""Option of every recipe that can leave modules alone: their paths, joined by `SEPARATOR`."""
SEPARATOR = "+"


@dataclass(frozen=True, slots=True)
class Mixed:
    """A proposal."""

    kept: tuple[str, ...]
    """Paths of the modules left unquantized, worst first."""
    predicted_kl: float | None
    """Nats; None when the map has no error to divide."""
    saved_us: float
    """Time that the quantized modules still save per step."""
    saved_share: float | None
    """Over what all of them save; None when they save nothing."""


def worst_first(errors: LayerErrors) -> list[ModuleError]:
    """The modules by falling error; those whose output is broken (NaN, infinity) come first."""
    return sorted(errors.modules, key=lambda one: -_cost(one))


def propose(errors: LayerErrors, count: int) -> Mixed:
    """Keep the `count` modules that change the output most."""
    ranked = worst_first(errors)
    return keep(errors, [one.module for one in ranked[:count]])


def keep(errors: LayerErrors, kept: list[str]) -> Mixed:
    """What to expect when these modules are left unquantized."""
    rest = [one for one in errors.modules if one.module not in kept]
    total = sum(one.kl_mean or 0.0 for one in errors.modules)
    left = sum(one.kl_mean or 0.0 for one in rest)
    saved = sum(one.reference_us - one.candidate_us for one in rest)
    of_all = sum(one.reference_us - one.candidate_us for one in errors.modules)
    return Mixed(
        kept=tuple(kept),
        predicted_kl=errors.kl_all * left / total if errors.kl_all is not None and total > 0.0 else None,
        saved_us=saved,
        saved_share=saved / of_all if of_all > 0.0 else None,
    )


def mixed_variant(variant: Variant, kept: tuple[str, ...]) -> Variant:
    """The variant with these modules left unquantized, besides those that it leaves alone already."""
    before = str(variant.options.get(variant.precision, {}).get(KEEP, ""))
    names = SEPARATOR.join([*([before] if before else []), *kept])
    options: dict[str, dict[str, OptionValue]] = dict(variant.options)
    options[variant.precision] = {**options.get(variant.precision, {}), KEEP: names}
    name = f"{variant.name or variant.precision.upper()}, worst {len(kept)} kept"
    return msgspec.structs.replace(variant, options=options, name=name)


def _cost(one: ModuleError) -> float:
    return float("inf") if one.kl_mean is None else one.kl_mean
