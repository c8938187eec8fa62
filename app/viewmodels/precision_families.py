"""Precision recipes as a form shows them: the plain formats side by side, the others in families."""

from collections.abc import Sequence
from dataclasses import dataclass

from gptscope.app.viewmodels.setup import Choice

_FAMILIES: dict[str, tuple[str, ...]] = {"INT8": ("int8",), "FP8": ("fp8", "mxfp8", "nvfp4")}
_TIPS = {
    "INT8": "8-bit integers: for weights alone, or for weights and activations. Choose the recipe below.",
    "FP8": "8-bit and 4-bit floating point with scales. Choose the recipe below.",
}


@dataclass(frozen=True)
class PrecisionMenu:
    """What the form shows. `segments`: plain formats by their own names, families by theirs."""

    segments: tuple[Choice, ...]
    chosen: str
    """The chosen segment."""
    recipes: tuple[Choice, ...]
    """Of the chosen family; empty for a plain format."""
    note: str
    """What a person should know about the chosen recipe, e.g. that it is emulated; empty: nothing."""


def family_of(name: str) -> str:
    """`INT8` for `int8-dynamic`; empty for a plain format."""
    return next((family for family, beginnings in _FAMILIES.items() if name.startswith(beginnings)), "")


def precision_menu(choices: Sequence[Choice]) -> PrecisionMenu:
    """Arrange the recipes."""
    current = next((choice for choice in choices if choice.chosen), None)
    chosen = "" if current is None else family_of(current.name) or current.name
    segments = [choice for choice in choices if not family_of(choice.name)]
    for family in _FAMILIES:
        members = [choice for choice in choices if family_of(choice.name) == family]
        if members:
            usable = any(choice.reason is None for choice in members)
            segments.append(
                Choice(
                    name=family,
                    title=family,
                    tip=_TIPS[family],
                    reason=None if usable else members[0].reason,
                    chosen=family == chosen,
                    differs=any(choice.differs and choice.chosen for choice in members),
                )
            )
    return PrecisionMenu(
        segments=tuple(segments),
        chosen=chosen,
        recipes=tuple(choice for choice in choices if chosen and family_of(choice.name) == chosen),
        note=(current.reason or current.warning or "") if current is not None else "",
    )


def recipe_for(segment: str, choices: Sequence[Choice], last: str) -> str:
    """The recipe that a click on a segment means: itself, or of a family the last one used, else the first usable."""
    members = [choice for choice in choices if family_of(choice.name) == segment and choice.reason is None]
    if not members:
        return segment
    return last if any(choice.name == last for choice in members) else members[0].name
