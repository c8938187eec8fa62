"""Tables as columns: values to sort by, texts made only for the rows that are seen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gptscope.app.viewmodels import formatting as fmt

Order = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column. `values`: floats (NaN = n/a, sorted last) or texts."""

    title: str
    values: Sequence[str] | Floats
    text: Callable[[int], str]
    """The cell's text of a row."""
    look: Literal["text", "number", "bar"] = "text"
    tip: str = ""
    width: int = 80
    stretch: bool = False
    strong: bool = False
    """Drawn in semibold."""
    tone: Callable[[int], str] | None = None
    """`good`, `bad` or empty for a row's cell."""

    total: Callable[[float], str] | None = None
    """Writes the sum of some rows, where numbers add up."""

    @property
    def numeric(self) -> bool:
        """True when the column sorts by number."""
        return isinstance(self.values, np.ndarray)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows in their natural order; the item model sorts and filters by index."""

    columns: tuple[Column, ...]
    rows: int
    categories: Sequence[str] = ()
    """Kernel category of each row, for the swatch; empty: no swatch."""
    keys: Sequence[str] = ()
    """Identity of each row across panes."""
    searched: Sequence[str] = ()
    """Lower-case text that a filter looks in."""
    footer: tuple[str, ...] = ()
    default_sort: int = 0
    sortable: bool = True
    """False: the rows have an order of their own."""
    empty: str = "Nothing to show."


def calls_text(per_step: float) -> str:
    """Calls per step: whole unless the steps differ."""
    whole = abs(per_step - round(per_step)) < 1e-6
    return fmt.count(round(per_step)) if whole else fmt.number(per_step)


def sorted_rows(table: Table, column: int, rows: Order, *, descending: bool) -> Order:
    """`rows` ordered by a column; equal values keep their order, NaN comes last either way."""
    values = table.columns[column].values
    if isinstance(values, np.ndarray):
        picked = values[rows]
        known = ~np.isnan(picked)
        order = np.argsort(-picked[known] if descending else picked[known], kind="stable")
        return np.concatenate((rows[known][order], rows[~known]))
    order_list = sorted(range(rows.size), key=lambda i: values[int(rows[i])].casefold(), reverse=descending)
    return rows[np.asarray(order_list, dtype=np.int64)] if order_list else rows


def filtered_rows(table: Table, words: str) -> Order:
    """Rows whose text holds every word."""
    wanted = words.casefold().split()
    if not wanted or not table.searched:
        return np.arange(table.rows, dtype=np.int64)
    found = [i for i, text in enumerate(table.searched) if all(word in text for word in wanted)]
    return np.asarray(found, dtype=np.int64)


def total_of(column: Column, rows: Order | slice = slice(None)) -> str:
    """The sum of some rows of a column; empty where none of them is known or a sum has no meaning."""
    if column.total is None or not isinstance(column.values, np.ndarray):
        return ""
    values = column.values[rows]
    return "" if np.isnan(values).all() else column.total(float(np.nansum(values)))


def filtered_footer(table: Table, rows: Order) -> tuple[str, ...]:
    """The footer of those rows that a filter leaves: how many, and the sums of what adds up."""
    if not table.footer or rows.size == table.rows:
        return table.footer
    sums = [total_of(column, rows) for column in table.columns]
    return (f"{fmt.count(int(rows.size))} of {fmt.count(table.rows)} rows", *sums[1:])


def as_tsv(table: Table, rows: Sequence[int]) -> str:
    """Rows as tab-separated text with a header, for the clipboard."""
    lines = ["\t".join(column.title for column in table.columns)]
    lines += ["\t".join(column.text(row).replace("\t", " ") for column in table.columns) for row in rows]
    return "\n".join(lines) + "\n"
