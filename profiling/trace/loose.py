"""Events whose values are of unusual types, made usual: nothing is lost but what cannot mean anything."""

from collections.abc import Callable
from typing import Any

import msgspec

from gptscope.profiling.trace.events import (
    BROKEN,
    INTEGER_ARGS,
    TEXT_ARGS,
    Args,
    Event,
    LooseEvent,
    decode_loose_args,
)
from gptscope.profiling.trace.health import HealthReport

Where = int | Callable[[], int]
"""A place in the text, or what finds it when it is needed."""


def usual_event(loose: LooseEvent, offset: Where, health: HealthReport) -> Event:
    """The event with text where text belongs and numbers where numbers belong.

    Args:
        loose: As decoded.
        offset: Where the event begins, for the report.
        health: Takes the findings.
    """
    return Event(
        ph=loose.ph if isinstance(loose.ph, str) else "",
        name=_text(loose.name),
        cat=_text(loose.cat),
        ts=_time(loose.ts),
        dur=_time(loose.dur),
        pid=loose.pid,
        tid=loose.tid,
        id=loose.id,
        args=_usual_args(loose.args, offset, health),
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else str(value)


def _time(value: Any) -> int | float | str | None:
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else None


def _usual_args(raw: msgspec.Raw, offset: Where, health: HealthReport) -> Args | None:
    if not bytes(raw) or bytes(raw) == b"null":
        return None
    try:
        loose = decode_loose_args(raw)
    except BROKEN:
        message = "an event has arguments of unusual types; they are left out"
        health.add("repaired", message, byte_offset=offset)
        return None
    integers: dict[str, Any] = {
        name: _integer(getattr(loose, name), none, offset, health) for name, none in INTEGER_ARGS.items()
    }
    texts: dict[str, Any] = {name: getattr(loose, name) for name in TEXT_ARGS}
    collective = loose.collective if isinstance(loose.collective, str) else None
    plain: dict[str, Any] = {name: getattr(loose, name) for name in ("name", "sort_index", "labels")}
    return Args(collective=collective, **plain, **integers, **texts)


def _integer(value: Any, missing: int, offset: Where, health: HealthReport) -> int:
    if value is None:
        return missing
    try:
        hexadecimal = isinstance(value, str) and value.lower().startswith("0x")  # streams on ROCm
        number = int(value, 16) if hexadecimal else int(value)
    except (TypeError, ValueError, OverflowError):
        message = "an id or a count is not a number; it is treated as missing"
        health.add("repaired", message, byte_offset=offset)
        return missing
    return number
