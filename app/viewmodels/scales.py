"""Round ticks for linear, time and logarithmic axes."""

import math
from dataclasses import replace

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Axis

_BYTE_NAMES = {"B": "bytes", "kB": "kilobytes", "MB": "megabytes", "GB": "gigabytes", "TB": "terabytes"}
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_TIME_STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)


def nice_step(span: float, wanted: int = 5) -> float:
    """The round distance that divides `span` into about `wanted` parts."""
    if span <= 0 or not math.isfinite(span):
        return 1.0
    raw = span / max(wanted, 1)
    magnitude = 10.0 ** math.floor(math.log10(raw))
    return min((step * magnitude for step in _STEPS), key=lambda step: abs(math.log(step / raw)))


def plain(value: float, step: float) -> str:
    """A tick text with as many decimals as the step needs."""
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step < 1 else 0
    if abs(step - round(step, decimals)) > 1e-6 * step:  # 2.5 and its like need one more
        decimals += 1
    return f"{value:.{decimals}f}".replace("-", "−")


def linear_axis(
    low: float,
    high: float,
    *,
    wanted: int = 4,
    unit: str = "",
    title: str = "",
    exact: bool = False,
    named: bool = False,
) -> Axis:
    """A linear axis from `low` to a round value at or above `high`; `exact` keeps `high`. Unit on the last tick."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        high = low + 1.0
    step = nice_step(high - low, wanted)
    top = high if exact else max(high, math.ceil(high / step - 1e-9) * step)
    first = math.ceil(low / step - 1e-9)
    values = [i * step for i in range(first, math.floor(top / step + 1e-9) + 1)]
    texts = [plain(value, step) for value in values]
    if unit and texts:
        texts[-1] += f" {unit}"
    return Axis(low=low, high=top, ticks=tuple(zip(values, texts, strict=True)), title=title, named=named)


def memory_axis(high_mb: float) -> Axis:
    """From 0 to `high_mb` megabytes, its ticks written in the unit that suits the size."""
    factor, unit = fmt.unit_for(high_mb * 1e6, "bytes")
    per_unit = factor / 1e6
    axis = linear_axis(0, high_mb / per_unit, unit=unit, title=_BYTE_NAMES[unit])
    ticks = tuple((value * per_unit, text) for value, text in axis.ticks)
    return replace(axis, high=axis.high * per_unit, ticks=ticks)


def time_axis(low_s: float, high_s: float, *, wanted: int = 8) -> Axis:
    """Seconds since the run began; minutes as 1:30 from two minutes on."""
    span = max(high_s - low_s, 1e-3)
    step = next((s for s in _TIME_STEPS_S if span / s <= wanted), _TIME_STEPS_S[-1])
    values = [i * step for i in range(math.ceil(low_s / step - 1e-9), math.floor(high_s / step + 1e-9) + 1)]
    return Axis(
        low=low_s,
        high=max(high_s, low_s + 1e-3),
        ticks=tuple((value, clock(value) if high_s >= 120 else f"{plain(value, step)} s") for value in values),
        title="seconds since the run began",
    )


def clock(seconds: float) -> str:
    """0:32, 12:05, 1:02:03."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def log_axis(low: float, high: float, *, unit: str = "", title: str = "") -> Axis:
    """A logarithmic axis over whole decades that hold `low` and `high`, both above 0."""
    assert low > 0
    assert high > 0
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    every = max(1, math.ceil((last - first) / 7))
    ticks = [(10.0**power, _power(power)) for power in range(first, last + 1, every)]
    if unit:
        ticks[-1] = (ticks[-1][0], f"{ticks[-1][1]} {unit}")
    return Axis(low=10.0**first, high=10.0**last, ticks=tuple(ticks), log=True, title=title)


def _power(power: int) -> str:
    if power < 0:
        return f"{10.0**power:.{-power}f}"
    return f"{10**power:,}".replace(",", "\u202f")
