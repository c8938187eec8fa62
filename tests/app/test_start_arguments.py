"""What `gptscope ARGUMENT` means: a file opens in the window, everything else is a command."""

from pathlib import Path
from typing import Any

import pytest

from gptscope.app import __main__ as program


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    calls: list[tuple[str, list[str]]] = []

    def note(name: str) -> Any:
        return lambda arguments: calls.append((name, list(arguments))) or 0

    monkeypatch.setattr("gptscope.app.cli.gui.open_window", note("window"))
    monkeypatch.setattr("gptscope.app.cli.main.run_command", note("command"))
    return calls


def test_a_trace_file_opens_in_the_window(asked: list[Any], tmp_path: Path) -> None:
    trace = tmp_path / "odd.name"
    trace.write_text("[]")
    program.main([str(trace)])
    program.main(["missing.json.gz"])
    assert asked == [("window", [f"--trace={trace}"]), ("window", ["--trace=missing.json.gz"])]


def test_commands_stay_commands_and_nothing_opens_the_window(asked: list[Any]) -> None:
    for arguments in (["demo"], ["demmo"], ["--help"], ["trace", "summary", "a.json"]):
        program.main(arguments)
    program.main([])
    assert [name for name, _ in asked] == ["command"] * 4 + ["window"]
    assert asked[-1][1] == []
