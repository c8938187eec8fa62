"""Refuses to start on combinations of libraries that are known to crash, with a sentence instead of a core dump."""

import sys

_QT = "PySide6-Essentials"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())


def broken_pair(pyside: str, python: tuple[int, int]) -> str | None:
    """Why this PySide6 must not be used with this Python, or None when nothing is known against it.

    PySide6 6.12.0 drops a reference to None on every void call under Python 3.10 and 3.11; the interpreter aborts
    with "deallocating None" after about a second of live charts.
    """
    if _numbers(pyside)[:2] == (6, 12) and python < (3, 12):
        return (
            f"PySide6 {pyside} crashes on Python {python[0]}.{python[1]} after a few seconds of live charts. "
            f"Install a good one with: python -m pip install '{_QT}>=6.11,<6.12'"
        )
    return None


def refusal() -> str | None:
    """The sentence to print instead of opening the window, or None when it can open."""
    try:
        import PySide6  # the package alone; `importlib.metadata` would tell as well, but takes 30 ms more
    except ImportError:
        return (
            f"The window needs Qt, which is not installed. Install it with: python -m pip install '{_QT}>=6.11,<6.12'"
        )
    return broken_pair(PySide6.__version__, sys.version_info[:2])
