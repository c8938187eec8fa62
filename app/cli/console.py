r"""Text for people: rich tables and colours on a terminal, plain aligned lines in a pipe or file.

Results go to standard output, progress and errors to standard error, so that a pipe holds results only. Characters that
the output's encoding cannot hold are written in ASCII, control characters as `\x1b`.
"""

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TextIO

from gptscope.app.viewmodels.formatting import to_ascii
from gptscope.profiling.printable import printable

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

Style = Literal["", "good", "warn", "bad", "dim", "title"]

_RICH_STYLES = {"": "", "good": "green", "warn": "yellow", "bad": "red", "dim": "dim", "title": "bold"}
_SPECIAL = "✓✗△↓µ×±→−\u202f…━"
_MOST_NAME_WIDTH = 60
_LEAST_NAME_WIDTH = 10
_READABLE_NAME_WIDTH = 20


@dataclass(frozen=True)
class Column:
    """Heading and alignment of a table column; `name` columns are shortened in the middle when space is short.

    Where that would leave too little of the names, `spare` columns are left out, those with the highest number first.
    """

    title: str
    align: Literal["left", "right"] = "right"
    name: bool = False
    spare: int = 0


@dataclass(frozen=True)
class Cell:
    """A table cell with a meaning."""

    text: str
    style: Style = ""


class Console:
    """One output stream."""

    def __init__(self, file: TextIO) -> None:
        """Write to `file`, with colours and rich tables only when it is a terminal."""
        self.file = file
        self.is_terminal = file.isatty()
        self.ascii = not _can_encode(file)
        self._rich: RichConsole | None = None

    @property
    def rich(self) -> "RichConsole":
        """The rich console of a terminal; made when first needed, because importing rich takes a while."""
        if self._rich is None:
            from rich.console import Console as RichConsole

            self._rich = RichConsole(file=self.file, highlight=False, markup=False, emoji=False)
        return self._rich

    def text(self, text: str) -> str:
        """One line of text as this output can show it."""
        return self._encodable(printable(text))

    def _encodable(self, text: str) -> str:
        return to_ascii(text) if self.ascii else text

    def line(self, text: str = "", style: Style = "") -> None:
        """A line, wrapped by the terminal, or several."""
        shown = self._encodable(printable(text, lines=True))
        if self.is_terminal:
            self.rich.print(shown, style=_RICH_STYLES[style] or None, soft_wrap=True)
        else:
            print(shown, file=self.file)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str | Cell]], title: str = "") -> None:
        """A table with a heading line, as wide as the terminal at most: `name` columns give way, numbers do not."""
        head = [Cell(self.text(column.title), "title") for column in columns]
        cells = [head, *([_shown(cell, self) for cell in row] for row in rows)]
        available = self.rich.width if self.is_terminal else None
        kept = _kept_columns(columns, cells, available)
        left_out = [column.title for column in columns if column not in kept]
        cells = [[cell for column, cell in zip(columns, row, strict=True) if column in kept] for row in cells]
        widths = _fitting_widths(kept, cells, available)
        if title:
            self.line(title, "title")
        for row in cells:
            self._row([_aligned(*parts) for parts in zip(kept, row, widths, strict=True)])
        if left_out:
            self.line(f"  not shown in {available} columns: {', '.join(left_out)}", "dim")

    def _row(self, cells: list[Cell]) -> None:
        if not self.is_terminal:
            print(f"  {'  '.join(cell.text for cell in cells)}".rstrip(), file=self.file)
            return
        from rich.text import Text

        line = Text("  ").append_tokens((f"{cell.text}  ", _RICH_STYLES[cell.style]) for cell in cells)
        line.rstrip()
        self.rich.print(line, no_wrap=True, overflow="ignore", crop=False)

    def pairs(self, pairs: Sequence[tuple[str, str | Cell]], title: str = "") -> None:
        """Names and values below each other."""
        if title:
            self.line(title, "title")
        width = max((len(name) for name, _ in pairs), default=0)
        for name, value in pairs:
            cell = _shown(value, self)
            self.line(f"  {name:<{width}}  {cell.text}".rstrip(), cell.style)


def shorten(text: str, width: int) -> str:
    """At most `width` characters, keeping both ends, where names of kernels and modules differ."""
    if len(text) <= width:
        return text
    kept = width - 3
    return f"{text[: kept - kept // 2]}...{text[len(text) - kept // 2 :]}"


def _shown(cell: str | Cell, console: Console) -> Cell:
    if isinstance(cell, str):
        return Cell(console.text(cell))
    return Cell(console.text(cell.text), cell.style)


def _aligned(column: Column, cell: Cell, width: int) -> Cell:
    text = shorten(cell.text, width)
    return Cell(text.ljust(width) if column.align == "left" else text.rjust(width), cell.style)


def _kept_columns(columns: Sequence[Column], rows: list[list[Cell]], available: int | None) -> list[Column]:
    """The columns beside which names stay readable, without spare ones that are in the way."""
    least = {}
    for i, column in enumerate(columns):
        width = max(len(row[i].text) for row in rows)
        least[column] = min(width, _READABLE_NAME_WIDTH) if column.name else width
    kept = list(columns)
    while available is not None and sum(least[column] + 2 for column in kept) > available:
        spare = max(kept, key=lambda column: column.spare)
        if not spare.spare:
            break
        kept.remove(spare)
    return kept


def _fitting_widths(columns: Sequence[Column], rows: list[list[Cell]], available: int | None) -> list[int]:
    """Widths of the columns; the widest `name` column is shortened first, none below `_LEAST_NAME_WIDTH`."""
    widths = [max(len(row[i].text) for row in rows) for i in range(len(columns))]
    names = [i for i, column in enumerate(columns) if column.name]
    for i in names:
        widths[i] = min(widths[i], _MOST_NAME_WIDTH)
    while names and available is not None and sum(widths) + 2 * len(widths) > available:
        widest = max(names, key=lambda i: widths[i])
        if widths[widest] <= _LEAST_NAME_WIDTH:
            break
        widths[widest] -= 1
    return widths


def _can_encode(file: TextIO) -> bool:
    try:
        _SPECIAL.encode(file.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def results() -> Console:
    """Standard output."""
    return Console(sys.stdout)


def messages() -> Console:
    """Standard error; nowhere, where it is closed."""
    return Console(io.StringIO() if sys.stderr is None else sys.stderr)
