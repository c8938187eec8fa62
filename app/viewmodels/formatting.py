"""How numbers are written, everywhere: three significant digits, SI units, intervals, n/a with a reason.

Functions from numbers to text; the window, the terminal and the reports share them. A person may ask the window for
more digits (`show_digits`); besides its arguments a text depends on nothing else. Text may hold a thin space, a true
minus sign, µ, ×, ± and →; `to_ascii` replaces them where a terminal cannot show them. Where lines end by themselves,
`unbroken` keeps each number on the line of its unit.
"""

import datetime as dt
import math
import re
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

THIN_SPACE = "\u202f"
"""Between thousands: narrow, and no line ends there."""
_NO_BREAK = "\u00a0"
MINUS = "\u2212"
ABOVE_PEAK = "cache-resident or model wrong"
DIGITS = (3, 4, 5)
"""Significant digits that one can ask for; the first is the usual number."""
_shown_digits: ContextVar[int] = ContextVar("digits", default=DIGITS[0])

Family = Literal["time", "bytes", "rate", "bandwidth", "flops", "plain"]
"""Base units: s, byte, token/s, byte/s, FLOP/s, none."""

_UNITS: dict[Family, tuple[tuple[float, str], ...]] = {
    "time": ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s")),
    "bytes": ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")),
    "rate": ((1.0, "tok/s"),),
    "bandwidth": ((1e9, "GB/s"),),
    "flops": ((1e12, "TFLOP/s"),),
    "plain": ((1.0, ""),),
}
_ASCII = {
    THIN_SPACE: " ",
    MINUS: "-",
    "µ": "u",
    "×": "x",
    "±": "+/-",
    "→": "->",
    "—": "-",
    "–": "-",
    "…": "...",
    "△": "!",
    "↓": "v",
    "✓": "yes",
    "✗": "NO",
    "•": "*",
    "≈": "~",
    "’": "'",
    "“": '"',
    "”": '"',
}


_SYMBOLS = sorted({"ns", "min", "h", "%", *(symbol for units in _UNITS.values() for _, symbol in units if symbol)})
_BEFORE_UNIT = re.compile(rf"(?<=[\d\]]) (?=(?:{'|'.join(map(re.escape, _SYMBOLS))})(?![\w/]))")
_MOST_DECIMALS = 7
"""A change and its error with more decimals are written with powers of ten."""
_LEAST_SHARE = 1e-4


def show_digits(digits: int) -> None:
    """Write all figures with this many significant digits from now on."""
    assert digits in DIGITS
    _shown_digits.set(digits)


def digits() -> int:
    """Significant digits in use."""
    return _shown_digits.get()


def number(value: float | None, reason: str = "") -> str:
    """Three significant digits: 0.190, 8.22, 57.0, 269, 12 300; `n/a: reason` when unknown."""
    if value is None or not math.isfinite(value):
        return unknown(reason)
    if value == 0:
        return "0"
    rounded = _rounded(value)
    if abs(rounded) < 1e-4:
        mantissa, exponent = f"{rounded:.{digits() - 1}e}".split("e")
        return f"{mantissa}e{int(exponent)}".replace("-", MINUS)
    return fixed(rounded, max(0, digits() - 1 - _exponent(rounded)))


def count(value: int | None, reason: str = "") -> str:
    """A whole number with thin spaces: 8 192."""
    return unknown(reason) if value is None else fixed(value, 0)


def fixed(value: float, decimals: int) -> str:
    """A number with this many decimals, thousands with a thin space, a true minus sign."""
    text = f"{value:,.{decimals}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return text.replace(",", THIN_SPACE).replace("-", MINUS)


def unknown(reason: str = "") -> str:
    """What stands in place of a value nobody knows."""
    return f"n/a: {reason}" if reason else "n/a"


def quantity(value: float | None, family: Family, reason: str = "") -> str:
    """A value in base units with the unit that suits it: 0.0082 s is `8.20 ms`."""
    if value is None or not math.isfinite(value):
        return unknown(reason)
    factor, symbol = unit_for(value, family)
    shown = count(round(value)) if symbol == "B" else number(value / factor)
    return f"{shown} {symbol}".rstrip()


def duration(seconds: float | None, reason: str = "") -> str:
    """Time: µs, ms, s up to two minutes, then minutes and seconds."""
    if seconds is None or not math.isfinite(seconds):
        return unknown(reason)
    if abs(seconds) < 119.5:
        return quantity(seconds, "time")
    minutes, rest = divmod(round(abs(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    sign = MINUS if seconds < 0 else ""
    return sign + (f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s")


@dataclass(frozen=True)
class Column:
    """A table column in one unit."""

    unit: str
    texts: tuple[str, ...]


def column(values: Sequence[float | None], family: Family, reason: str = "") -> Column:
    """Values in base units as a column: the unit is the one that suits the largest value, the texts go without it."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    factor, symbol = unit_for(max(known, key=abs, default=0.0), family)
    texts = (number(None if value is None else value / factor, reason) for value in values)
    return Column(unit=symbol, texts=tuple(texts))


def interval(value: float | None, low: float | None, high: float | None, unit: str = "", reason: str = "") -> str:
    """A value with its 95 % interval: `57.0 [56.1, 57.9] tok/s`; without one when its ends are unknown."""
    if value is None or not math.isfinite(value):
        return unknown(reason)
    decimals = digits() - 1 - (_exponent(_rounded(value)) if value else 0)
    text = number(value)
    if low is not None and high is not None:
        written = abs(value) >= 1e-4
        ends = [fixed(round(e, decimals), max(0, decimals)) if written else number(e) for e in (low, high)]
        text += f" [{ends[0]}, {ends[1]}]"
    return f"{text} {unit}".rstrip()


def ratio(value: float | None, low: float | None = None, high: float | None = None, reason: str = "") -> str:
    """Candidate over baseline: `2.31x`, `2.31x [2.25, 2.38]`, `0.47x`, `12.3x`."""
    if value is None or not math.isfinite(value):
        return unknown(reason)
    decimals = _ratio_decimals(value)
    text = f"{fixed(value, decimals)}x"
    if low is not None and high is not None:
        text += f" [{fixed(low, decimals)}, {fixed(high, decimals)}]"
    return text


def percent(fraction: float | None, reason: str = "") -> str:
    """0.34 is `34 %`, 0.042 is `4.2 %`, 0.0004 is `0.04 %`."""
    if fraction is None or not math.isfinite(fraction):
        return unknown(reason)
    value = 100 * fraction
    size = abs(value)
    if value and size < 0.005:
        return f"{number(value)} %"
    decimals = 0 if size >= 9.95 or value == 0 else 1 if size >= 0.95 else 2
    decimals += digits() - DIGITS[0] if value else 0
    return f"{fixed(value, decimals)} %"


def share(fraction: float | None, reason: str = "") -> str:
    """A part of a whole, as `percent`, but digits far behind the point say nothing there."""
    tiny = fraction is not None and 0 < fraction < _LEAST_SHARE
    return "<0.01 %" if tiny else percent(fraction, reason)


def of_peak(fraction: float | None, reason: str = "") -> str:
    """A share of a ceiling; above 100 % it is shown and explained, never clipped."""
    text = percent(fraction, reason)
    return f"{text} ({ABOVE_PEAK})" if fraction is not None and fraction > 1.005 else text


def signed(value: float | None, error: float | None = None, reason: str = "") -> str:
    """A change with its sign and standard error: `+0.02 ± 0.11`. The error has two significant digits."""
    if value is None or not math.isfinite(value):
        return unknown(reason)
    if error is None or not math.isfinite(error) or error <= 0:
        text = number(value)
        return text if value <= 0 else f"+{text}"
    decimals = max(0, 1 - _exponent(float(f"{error:.1e}")))
    if decimals > _MOST_DECIMALS:
        text = short_power(value)
        return f"{text if text.startswith(MINUS) else '+' + text} ± {short_power(error)}"
    text = fixed(value, decimals)
    return f"{text if text.startswith(MINUS) else '+' + text} ± {fixed(error, decimals)}"


def short_power(value: float) -> str:
    """Two digits and a power of ten, where space is short: 9.2e−13."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}".replace("-", MINUS)


def change(before: float | None, after: float | None, unit: str = "", reason: str = "") -> str:
    """`14.86 → 14.88`: three significant digits, more (up to six) where the two would read the same."""
    if before is None or after is None or not (math.isfinite(before) and math.isfinite(after)):
        return unknown(reason)
    first, second = number(before), number(after)
    if first == second and before != after:
        for more in range(digits() + 1, 7):
            decimals = max(0, more - 1 - _exponent(max(abs(before), abs(after))))
            first, second = fixed(before, decimals), fixed(after, decimals)
            if first != second:
                break
    return f"{first} → {second} {unit}".rstrip()


def when(unix_ns: int, zone: dt.tzinfo | None = None) -> str:
    """A moment in local time: `2026-11-30 05:29`."""
    moment = dt.datetime.fromtimestamp(unix_ns / 1e9, tz=dt.UTC).astimezone(zone)
    return moment.strftime("%Y-%m-%d %H:%M")


def unbroken(text: str) -> str:
    """The same text for a place that breaks lines: none ends between a number and its unit."""
    return _BEFORE_UNIT.sub(_NO_BREAK, text)


def to_ascii(text: str) -> str:
    """The same text for a terminal that knows ASCII only; what has no counterpart becomes `?`."""
    for character, replacement in _ASCII.items():
        text = text.replace(character, replacement)
    return text.encode("ascii", "replace").decode()


def unit_for(value: float, family: Family) -> tuple[float, str]:
    """The largest unit in which the value, rounded to three digits, is at least 1; else the smallest one."""
    units = _UNITS[family]
    fitting = [unit for unit in units if abs(_rounded(value / unit[0])) >= 1]
    return fitting[-1] if fitting else units[0]


def _rounded(value: float) -> float:
    return float(f"{value:.{digits() - 1}e}")


def _exponent(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def _ratio_decimals(value: float) -> int:
    size, more = abs(value), digits() - DIGITS[0]
    if size >= 99.95:
        return more
    if size >= 9.995:
        return 1 + more
    return more + (2 if size >= 0.0995 or size == 0 else min(6, 2 - _exponent(size)))
