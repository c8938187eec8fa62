"""Terminals get rich tables and colours, everything else plain lines, ASCII where it must be."""

import re

import pytest

from gptscope.app.cli.console import Cell, Column, shorten

COLUMNS = (Column("kernel", "left", name=True), Column("ms"), Column("what", "left"))
ROWS = [("aten::mm[/red]", "12.3", "a"), ("x" * 100, "0.5 µs", Cell("✓ yes", "good"))]


def test_a_pipe_gets_aligned_lines_without_escape_codes(screen) -> None:
    file, console = screen()
    console.table(COLUMNS, ROWS, "Kernels")
    console.line("a warning", "warn")
    lines = file.getvalue().splitlines()
    assert "\x1b" not in file.getvalue()
    assert lines[0] == "Kernels"
    assert lines[1].split() == ["kernel", "ms", "what"]
    assert lines[2].index("12.3") + 4 == lines[3].index("0.5 µs") + 6  # right-aligned
    assert "[/red]" in lines[2]
    assert "..." in lines[3]
    assert lines[4] == "a warning"
    assert all(line == line.rstrip() for line in lines)


def test_a_terminal_gets_colours_and_a_table_that_fits(screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    file, console = screen(terminal=True)
    console.table(COLUMNS, ROWS, "Kernels")
    text = file.getvalue()
    assert "\x1b[" in text
    assert "✓ yes" in text
    assert "0.5 µs" in text
    assert "[/red]" in text


def test_no_color_is_honoured(screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    file, console = screen(terminal=True)
    console.line("bad", "bad")
    assert "\x1b[31m" not in file.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1"])
def test_an_encoding_without_our_characters_gets_ascii(screen, encoding: str, terminal: bool) -> None:
    file, console = screen(encoding=encoding, terminal=terminal)
    console.table(COLUMNS, ROWS, "µ → −")
    console.line("✗ 8\u202f192")
    console.pairs((("a", Cell("✓", "good")),))
    assert file.getvalue().isascii()
    assert "NO 8 192" in file.getvalue()
    assert "u -> -" in file.getvalue()


def test_long_names_keep_both_ends() -> None:
    assert shorten("abc", 10) == "abc"
    assert shorten("abcdefghijklmnop", 10) == "abcd...nop"
    assert len(shorten("x" * 99, 60)) == 60


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        ("80", ["name", "first", "second", "third"]),
        ("50", ["name", "first", "third"]),
        ("40", ["name", "third"]),
        ("20", ["name", "third"]),
    ],
)
def test_a_narrow_terminal_leaves_out_what_is_spare_and_says_so(
    screen, monkeypatch: pytest.MonkeyPatch, width: str, titles: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    columns = [Column("name", "left", name=True), Column("first", spare=1), Column("second", spare=2), Column("third")]
    file, console = screen(terminal=True)
    console.table(columns, [["n" * 40, "1" * 12, "2" * 12, "3" * 12]])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue()).splitlines()
    assert lines[0].split() == titles
    left_out = [title for title in ("first", "second") if title not in titles]
    assert lines[2:] == ([f"  not shown in {width} columns: {', '.join(left_out)}"] if left_out else [])
    if width != "20":
        assert max(map(len, lines[:2])) <= int(width)
        assert len(lines[1].split()[0]) >= 20


def test_a_pipe_gets_every_column(screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    file, console = screen()
    console.table([Column("name", "left", name=True), Column("first", spare=1)], [["n" * 40, "1" * 12]])
    assert "1" * 12 in file.getvalue()
    assert "not shown" not in file.getvalue()
