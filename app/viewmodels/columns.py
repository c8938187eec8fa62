"""Columns of tables: numbers in one unit per column, what is unknown as n/a.

What makes a cell's text is a value, not a closure, so that a table can be made in another process than it is shown in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.charts.kernel_times import category_title
from gptscope.app.viewmodels.tables import Column, Floats, Table

NS_PER_MS, NS_PER_US = 1e6, 1e3
Numbers = Sequence[float | int | None] | Floats
"""Of one column; None and NaN are unknown."""


@dataclass(frozen=True, slots=True)
class _Words:
    """The text of each row."""

    values: Sequence[str]
    missing: str

    def __call__(self, row: int) -> str:
        return self.values[row] or self.missing


@dataclass(frozen=True, slots=True)
class _Figures:
    """The number of each row as text."""

    values: Floats
    shown: Callable[[float], str]
    missing: str

    def __call__(self, row: int) -> str:
        value = float(self.values[row])
        return self.missing if np.isnan(value) else self.shown(value)


@dataclass(frozen=True, slots=True)
class _Tones:
    """The tone of each row's number."""

    values: Floats
    tone: Callable[[float], str]

    def __call__(self, row: int) -> str:
        return self.tone(float(self.values[row]))


def many(count: int, one: str, several: str = "") -> str:
    """`1 step`, `3 steps`."""
    return f"{fmt.count(count)} {one if count == 1 else several or one + 's'}"


def short_path(path: str, most: int = 26) -> str:
    """A module's path without its beginning where that is too long: `…Attention.Linear`."""
    if len(path) <= most or "." not in path:
        return path
    parts = path.split(".")
    while len(parts) > 1 and len(".".join(parts)) >= most:
        parts.pop(0)
    return f"…{'.'.join(parts)}"


def floats(values: Numbers) -> Floats:
    """Numbers to sort by; None is unknown."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def text(
    title: str,
    values: Sequence[str],
    *,
    width: int = 120,
    stretch: bool = False,
    strong: bool = False,
    tip: str = "",
    missing: str = "n/a",
) -> Column:
    """Words; `missing` stands in empty cells."""
    return Column(
        title=title,
        values=values,
        text=_Words(values, missing),
        width=width,
        stretch=stretch,
        strong=strong,
        tip=tip,
    )


def numbers(
    title: str,
    values: Numbers,
    *,
    scale: float = 1.0,
    width: int = 76,
    strong: bool = False,
    tip: str = "",
    shown: Callable[[float], str] = fmt.number,
    tone: Callable[[float], str] | None = None,
    missing: str = "n/a",
    adds: bool = False,
) -> Column:
    """Numbers, divided by the unit's size; `missing` stands for unknown ones. `adds`: a sum of rows has a meaning."""
    scaled = floats(values) / scale
    return Column(
        title=title,
        values=scaled,
        text=_Figures(scaled, shown, missing),
        look="number",
        width=width,
        strong=strong,
        tip=tip,
        tone=None if tone is None else _Tones(scaled, tone),
        total=shown if adds else None,
    )


def counts(title: str, values: Sequence[int], *, width: int = 64, tip: str = "", adds: bool = False) -> Column:
    """Whole numbers."""
    return numbers(title, values, width=width, tip=tip, shown=_whole, adds=adds)


def sizes(
    title: str, values: Numbers, *, width: int = 76, strong: bool = False, tip: str = "", adds: bool = False
) -> Column:
    """Bytes in the unit that suits the largest; the unit stands behind the title."""
    known = floats(values)
    factor, unit = fmt.unit_for(float(np.nanmax(known)) if np.isfinite(known).any() else 0.0, "bytes")
    shown = _whole if unit == "B" else fmt.number
    heading = f"{title} {unit}".lstrip()
    return numbers(heading, known, scale=factor, width=width, strong=strong, tip=tip, shown=shown, adds=adds)


def _whole(value: float) -> str:
    return fmt.count(round(value))


def percents(title: str, values: Numbers, *, width: int = 70, tip: str = "") -> Column:
    """Shares as percent."""
    return numbers(title, values, width=width, tip=tip, shown=fmt.percent)


def speedups(title: str, values: Numbers, *, width: int = 72, tip: str = "", missing: str = "n/a") -> Column:
    """Ratios to a baseline; what is at least 2 % faster is good, slower bad."""
    return numbers(title, values, width=width, tip=tip, shown=fmt.ratio, tone=_speedup_tone, missing=missing)


def _speedup_tone(speedup: float) -> str:
    if not np.isfinite(speedup) or abs(speedup - 1) < 0.02:
        return ""
    return "good" if speedup > 1 else "bad"


def bar(title: str, shares: Numbers, *, width: int = 140, tip: str = "", adds: bool = False) -> Column:
    """Shares as bars."""
    values = floats(shares)
    shown = _Figures(values, fmt.share, "n/a")
    return Column(
        title=title, values=values, text=shown, look="bar", width=width, tip=tip, total=fmt.share if adds else None
    )


def categories(values: Sequence[str], *, width: int = 116) -> Column:
    """Kinds of work."""
    return text("Category", [category_title(value) for value in values], width=width)


def table(
    columns: Sequence[Column],
    keys: Sequence[str],
    *,
    swatches: Sequence[str] = (),
    sort: int = 0,
    footer: dict[int, str] | None = None,
    empty: str,
    sortable: bool = True,
) -> Table:
    """Put columns together; a filter looks in all texts."""
    words = [column.values for column in columns if not column.numeric]
    searched = [" ".join(str(values[i]) for values in words).casefold() for i in range(len(keys))]
    below = footer or {}
    return Table(
        columns=tuple(columns),
        rows=len(keys),
        keys=keys,
        categories=swatches,
        searched=searched,
        default_sort=sort,
        footer=tuple(below.get(i, "") for i in range(len(columns))) if below and keys else (),
        empty=empty,
        sortable=sortable,
    )
