"""Finding by typing: words first, then letters in order."""

from collections.abc import Callable, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def score(words: str, text: str) -> int | None:
    """Smaller is better; None: no match. Every word must occur, or all letters in order."""
    wanted, low = words.casefold().strip(), text.casefold()
    if not wanted:
        return 0
    parts = wanted.split()
    if all(part in low for part in parts):
        starts = sum(0 if low.startswith(part) or f" {part}" in low else 1 for part in parts)
        return starts * 100 + low.index(parts[0])
    position, gaps = 0, 0
    for letter in wanted.replace(" ", ""):
        found = low.find(letter, position)
        if found < 0:
            return None
        gaps += found - position
        position = found + 1
    return 10_000 + gaps


def best_matches(words: str, items: Sequence[_T], text: Callable[[_T], str]) -> list[_T]:
    """Items that match, best first; equal ones keep their order."""
    scored = [(score(words, text(item)), item) for item in items]
    return [item for _, item in sorted(((s, i) for s, i in scored if s is not None), key=lambda pair: pair[0])]
