"""Columns of the tables of a trace: times in one unit per column, unknown numbers as n/a."""

from collections.abc import Callable, Sequence

import numpy as np

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.charts.kernel_times import category_title
from gptscope.app.viewmodels.tables import Column, Floats, Table

NS_PER_MS, NS_PER_US = 1e6, 1e3


def floats(values: Sequence[float | int | None]) -> Floats:
    """Numbers to sort by; None is unknown."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def text(title: str, values: Sequence[str], *, width: int = 120, stretch: bool = False, tip: str = "") -> Column:
    """Words."""
    return Column(title=title, values=values, text=lambda i: values[i] or "n/a", width=width, stretch=stretch, tip=tip)


def numbers(
    title: str,
    values: Sequence[float | int | None],
    *,
    scale: float = 1.0,
    width: int = 76,
    strong: bool = False,
    tip: str = "",
    shown: Callable[[float], str] = fmt.number,
) -> Column:
    """Numbers, divided by the unit's size."""
    scaled = floats(values) / scale
    return Column(
        title=title,
        values=scaled,
        text=lambda i: "n/a" if np.isnan(scaled[i]) else shown(float(scaled[i])),
        look="number",
        width=width,
        strong=strong,
        tip=tip,
    )


def counts(title: str, values: Sequence[int], *, width: int = 64, tip: str = "") -> Column:
    """Whole numbers."""
    return numbers(title, values, width=width, tip=tip, shown=lambda value: fmt.count(round(value)))


def percents(title: str, values: Sequence[float | None], *, width: int = 70, tip: str = "") -> Column:
    """Shares as percent."""
    return numbers(title, values, width=width, tip=tip, shown=fmt.percent)


def bar(title: str, shares: Sequence[float], *, width: int = 140, tip: str = "") -> Column:
    """Shares as bars."""
    values = floats(shares)
    return Column(
        title=title, values=values, text=lambda i: fmt.percent(float(values[i])), look="bar", width=width, tip=tip
    )


def categories(values: Sequence[str]) -> Column:
    """Kinds of work."""
    return text("Category", [category_title(value) for value in values], width=96)


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
