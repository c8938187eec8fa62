"""The same command on a real (pseudo) terminal and in a pipe."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gptscope.profiling.store.library import Library
from gptscope.profiling.store.recorder import Recorder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
PROGRAM = [sys.executable, "-P", "-m", "gptscope.app"]


@pytest.fixture
def command(tmp_path: Path, experiment) -> list[str]:
    """A command that prints every kind of table, without an engine."""
    Library(tmp_path).close()
    recorder = Recorder(tmp_path)
    for record in experiment():
        recorder.add(record)
    assert recorder.close()
    return [*PROGRAM, "history", "show", "e1-b", "--library", str(tmp_path)]


def on_terminal(command: list[str], **environment: str) -> str:
    import pty

    ours, theirs = pty.openpty()
    settings = {"TERM": "xterm-256color", "COLUMNS": "90", "PYTHONUTF8": "1", **environment}
    kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=kept | settings)
    os.close(theirs)
    pieces = []
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(ours)
    assert process.wait() == 0
    return b"".join(pieces).decode()


def test_a_terminal_gets_colours_and_marks(command: list[str]) -> None:
    text = on_terminal(command)
    assert "\x1b[32m" in text
    assert "✓ kv_cache" in text
    assert "aten::addmm" in text


def test_no_color_is_honoured(command: list[str]) -> None:
    text = on_terminal(command, NO_COLOR="1")
    assert "\x1b[3" not in text
    assert "✓ kv_cache" in text


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_pipe_gets_plain_text_in_its_encoding(command: list[str], encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    result = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert b"\x1b" not in result.stdout
    assert result.stderr == b""
    assert result.stdout.isascii() == (encoding == "ascii")
    assert ("yes kv_cache" if encoding == "ascii" else "✓ kv_cache") in result.stdout.decode(encoding)
