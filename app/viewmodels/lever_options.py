"""The settings of a lever as a form shows them, and changing one of them."""

from dataclasses import dataclass
from typing import Literal

import msgspec

from gptscope.profiling.experiment import OptionValue, Variant
from gptscope.profiling.records import Capabilities, LeverInfo, LeverOptionInfo

SHOWN_AT_ONCE = 4
"""Settings that a form shows before one asks for all of them."""
_NUMBER_LIMITS = (-1e9, 1e9)


@dataclass(frozen=True, kw_only=True)
class OptionField:
    """One setting with its value. `changed`: it is not the lever's default."""

    lever: str
    name: str
    title: str
    kind: Literal["choice", "whole", "number", "switch", "text", "file"]
    value: OptionValue
    default: OptionValue
    tip: str
    choices: tuple[str, ...]
    least: float
    most: float
    changed: bool


def lever_called(capabilities: Capabilities | None, group: str, name: str) -> LeverInfo | None:
    """One lever."""
    levers = () if capabilities is None else capabilities.levers
    return next((lever for lever in levers if lever.group == group and lever.name == name), None)


def fields(lever: LeverInfo | None, variant: Variant) -> tuple[OptionField, ...]:
    """Every setting of a lever, in the order of the capabilities."""
    if lever is None:
        return ()
    given = variant.options.get(lever.name, {})
    return tuple(_field(lever.name, option, given.get(option.name, option.default)) for option in lever.options)


def _field(lever: str, option: LeverOptionInfo, value: OptionValue) -> OptionField:
    low, high = _NUMBER_LIMITS
    return OptionField(
        lever=lever,
        name=option.name,
        title=option.title[:1].upper() + option.title[1:],
        kind=option.kind,
        value=value,
        default=option.default,
        tip=_tip(option),
        choices=option.choices,
        least=option.least if option.least is not None else low,
        most=option.most if option.most is not None else high,
        changed=value != option.default,
    )


def _tip(option: LeverOptionInfo) -> str:
    limits = [f"from {option.least:g}"] if option.least is not None else []
    limits += [f"to {option.most:g}"] if option.most is not None else []
    shown = {True: "on", False: "off"}.get(option.default) if isinstance(option.default, bool) else option.default
    default = f"Default: {shown}." if shown not in ("", None) else "Empty at first."
    return " ".join([option.summary, *([f"{' '.join(limits).capitalize()}."] if limits else []), default])


def shown_first(found: tuple[OptionField, ...], *, every: bool) -> tuple[OptionField, ...]:
    """The first settings and all changed ones, or every one; a single hidden one is not worth a click."""
    if every or len(found) <= SHOWN_AT_ONCE + 1:
        return found
    return tuple(field for index, field in enumerate(found) if index < SHOWN_AT_ONCE or field.changed)


def with_option(variant: Variant, field: OptionField, value: OptionValue) -> Variant:
    """The variant with one setting changed; a default is not kept, so that it does not count as a difference."""
    options = {lever: dict(given) for lever, given in variant.options.items()}
    own = options.setdefault(field.lever, {})
    if value == field.default:
        own.pop(field.name, None)
    else:
        own[field.name] = value
    return msgspec.structs.replace(
        variant, options={lever: given for lever, given in options.items() if given}, name=""
    )


def without_options(variant: Variant, lever: str) -> Variant:
    """The variant with a lever's settings back at their defaults."""
    options = {name: given for name, given in variant.options.items() if name != lever}
    return msgspec.structs.replace(variant, options=options, name="")
