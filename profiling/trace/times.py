"""Microseconds in any spelling -> whole nanoseconds, exactly."""

import re
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.events import BROKEN, EventTimes, decode_times, written

Int64 = npt.NDArray[np.int64]
EXACT_DOUBLE_US = 2.0**43
"""Below this many microseconds a double is less than half a nanosecond from what was written."""
MISSING_NS = int(np.iinfo(np.int64).min)
_MOST_NS = 2**61
"""So that a beginning plus a duration fits as well."""
_MOST_DIGITS = 40
_NUMBER = re.compile(r"[0-9.eE+-]+")
_INT64 = range(-(2**63), 2**63)


class Digits:
    """The times of one piece as they are written, read again only where a double does not hold them."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._events: list[EventTimes] | None = None

    def of(self, events: Int64 | None, field: str) -> list[str] | None:
        """The digits of some events (`None`: all); None when the events were decoded one by one."""
        if not self._text:
            return None
        if self._events is None:
            try:
                self._events = decode_times(self._text)
            except BROKEN:  # it was decoded before, so this cannot be; one by one is right in any case
                self._text = b""
                return None
        rows = self._events if events is None else [self._events[i] for i in events.tolist()]
        return [written(getattr(row, field)) or "" for row in rows]


def exact_ns(values: list[Any], digits: Digits, events: Int64 | None, field: str) -> Int64:
    """Nanoseconds of a column of times; missing or unusable ones become `MISSING_NS`."""
    try:
        floats = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # some are missing, or no numbers
        return _unusual_ns(values, digits, events, field)
    if floats.size and not (floats.max() < EXACT_DOUBLE_US and floats.min() > -EXACT_DOUBLE_US):
        return _unusual_ns(values, digits, events, field)
    whole = np.floor(floats)  # apart, because the product of all of it would be rounded once more
    return whole.astype(np.int64) * 1000 + np.rint((floats - whole) * 1000.0).astype(np.int64)


def _unusual_ns(values: list[Any], digits: Digits, events: Int64 | None, field: str) -> Int64:
    kinds = set(map(type, values))
    if type(None) in kinds and kinds <= {int, float, type(None)}:
        missing = np.array([v is None for v in values], dtype=bool)
        result = exact_ns([0 if v is None else v for v in values], digits, events, field)
        return np.where(missing, MISSING_NS, result)
    if kinds == {int}:
        try:
            whole = np.array(values, dtype=np.int64)
        except OverflowError:
            whole = None
        if whole is not None and (not whole.size or (whole.max() < 9e15 and whole.min() > -9e15)):
            return _limited(whole * 1000)
    texts = digits.of(events, field) if float in kinds else None
    if texts is None:
        texts = [_text(v) for v in values]
    return np.array([decimal_ns(text) for text in texts], dtype=np.int64)


def _limited(nanoseconds: Int64) -> Int64:
    return np.where(np.abs(nanoseconds) < _MOST_NS, nanoseconds, MISSING_NS)


def _text(value: Any) -> str:
    """A time in decimal digits; empty for none, and for numbers too long to be one."""
    if value is None or (isinstance(value, int) and value not in _INT64):
        return ""
    return str(value)


def decimal_ns(text: str) -> int:
    """Exact nanoseconds of a decimal number of microseconds; `MISSING_NS` for what is none."""
    whole, _, part = text.partition(".")
    if len(part) <= 3 and len(whole) <= 15 and whole.isdecimal() and (not part or part.isdecimal()) and text.isascii():
        return int(whole) * 1000 + int(part.ljust(3, "0"))
    text = text.strip().strip('"').strip()
    if not _NUMBER.fullmatch(text):
        return MISSING_NS
    try:
        microseconds = Decimal(text)
        if abs(microseconds.adjusted()) > _MOST_DIGITS:  # no time has so many digits, and making them takes forever
            return 0 if microseconds.adjusted() < 0 or not microseconds else MISSING_NS
        nanoseconds = int((microseconds * 1000).to_integral_value())
    except (InvalidOperation, OverflowError, ValueError):
        return MISSING_NS
    return nanoseconds if abs(nanoseconds) < _MOST_NS else MISSING_NS
