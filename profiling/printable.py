"""Texts from outside (names in traces, paths, what a model wrote), made safe to show."""

import re

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]",
)
"""Control characters, what turns the writing direction, what is invisible, and bytes of names that are no text."""
_UNSAFE_BUT_LINES = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def printable(text: str, *, lines: bool = False) -> str:
    r"""The text with `\x1b` in place of an escape character, and so on, so that it can do nothing to what shows it.

    Args:
        text: Anything.
        lines: It may be several lines: line ends and tabs stay.
    """
    return (_UNSAFE_BUT_LINES if lines else _UNSAFE).sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return _SHORT.get(found[0]) or (f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}")
