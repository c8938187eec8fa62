"""Texts from outside lose their power over what shows them, and nothing else."""

import pytest

from gptscope.profiling.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x00", "\\x1b[2J\\x00"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\u202eevil\u2069\u200b\ufeff", "\\u202eevil\\u2069\\u200b\\ufeff"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("name\udcff", "name\\udcff"),
        ("核函数 🔥 µ → −8\u202f192 a\u00a0b 👩\u200d💻 \\x1b", "核函数 🔥 µ → −8\u202f192 a\u00a0b 👩\u200d💻 \\x1b"),
    ],
)
def test_what_steers_a_terminal_is_shown_instead(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_lines_may_stay() -> None:
    assert printable("a\n\tb\x0b\r\x1b", lines=True) == "a\n\tb\\x0b\\r\\x1b"
