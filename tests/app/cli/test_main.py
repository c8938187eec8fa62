"""Exit codes, sentences instead of tracebacks, and a fast start."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gptscope.app.__main__ import main
from gptscope.app.cli import main as cli_main
from gptscope.app.cli.commands import COMMANDS
from gptscope.app.cli.failing import CommandError
from gptscope.app.cli.main import build_parser

PROGRAM = [sys.executable, "-P", "-m", "gptscope.app"]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def test_version_and_help() -> None:
    assert run("--version").stdout.startswith("gptscope ")
    shown = run("--help")
    assert shown.returncode == 0
    for name in COMMANDS:
        assert name in shown.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    assert left.value.code == 0
    assert f"gptscope {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["run", "--batch", "many"], ["run", "--kv-cache", "huge"], ["models"], ["--debug"]]
)
def test_wrong_usage_has_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "usage: gptscope" in capsys.readouterr().err


def test_an_unknown_option_is_told_with_the_usage_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["run", "--modell", "x"])
    assert left.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith("usage: gptscope run ")
    assert told.endswith("gptscope run: error: unrecognized arguments: --modell x\n")


def test_a_mistyped_command_gets_a_guess(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, guess in ((["trace", "sumary", "x"], "summary"), (["comparre"], "compare")):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 2
        assert capsys.readouterr().err.endswith(f" Did you mean {guess}?\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "--batch", "0"], "batch is 0"),
        (["compare"], "needs at least one candidate"),
        (["compare", "--candidate", "precision=bf16", "--seeds", "3"], "the workload is decode"),
        (["bench-machine", "--threads", "0"], "threads is 0, but it must be between 1 and 1024"),
        (["run", "--json", "/nowhere/at/all.json"], "the folder /nowhere/at does not exist"),
        (["run", "--trace", "/"], "it is a folder"),
        (["run", "--precision", "bf17"], "There is no precision called 'bf17'. Did you mean bf16?"),
        (["run", "--fuse", "atention"], "Did you mean attention?"),
        (
            ["run", "--option", "int8-statc.granularity=row"],
            "There is no lever called 'int8-statc'. Did you mean int8-s",
        ),
        (
            ["compare", "--candidate", "precision=bf61"],
            "--candidate: There is no precision called 'bf61'. Did you mean",
        ),
        (["history", "export", "last"], "needs at least one of"),
        (["history", "tag", "last"], "needs tags to add"),
    ],
)
def test_an_impossible_request_is_told_in_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("gptscope: ")
    assert sentence in captured.err
    assert len(captured.err.splitlines()) == 1


def test_a_fault_of_our_own_is_a_sentence_and_with_debug_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli_main.COMMANDS["doctor"], "run", lambda _args: 1 // 0, raising=False)
    assert main(["doctor"]) == 1
    quiet = capsys.readouterr().err
    assert "Traceback" not in quiet
    assert "fault of its own: ZeroDivisionError" in quiet
    for arguments in (["doctor", "--debug"], ["--debug", "doctor"]):
        assert main(arguments) == 1
        assert "Traceback" in capsys.readouterr().err


def test_debug_shows_what_a_worker_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_args: object) -> int:
        raise CommandError("The worker died.", detail="last line of stderr")

    monkeypatch.setattr(cli_main.COMMANDS["doctor"], "run", fail, raising=False)
    assert main(["doctor"]) == 1
    assert capsys.readouterr().err == "gptscope: The worker died.\n"
    assert main(["doctor", "--debug"]) == 1
    assert "last line of stderr" in capsys.readouterr().err


def test_ctrl_c_outside_a_run_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_main.COMMANDS["doctor"], "run", interrupted, raising=False)
    assert main(["doctor"]) == 1
    assert capsys.readouterr().err == "gptscope: Stopped.\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems always have a display")
@pytest.mark.parametrize("arguments", [(), ("gui", "--theme", "dark")])
def test_without_a_display_the_window_says_what_to_run_instead(arguments: tuple[str, ...]) -> None:
    result = run(*arguments, DISPLAY="", WAYLAND_DISPLAY="", QT_QPA_PLATFORM="")
    assert result.returncode == 1
    assert "gptscope demo" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_help_and_a_missing_display_tell_what_opens_a_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "gptscope trace.json.gz " in build_parser().format_help()
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert main(["my trace.json.gz"]) == 1
    assert "`gptscope trace summary 'my trace.json.gz'`" in capsys.readouterr().err
    assert main(["gui"]) == 1
    assert "`gptscope demo`" in capsys.readouterr().err


def test_the_window_gets_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr("gptscope.app.gui.main.main", lambda options: given.append(list(options)) or 0)
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    assert main([]) == 0
    assert main(["gui", "--theme", "light", "--library", "a b"]) == 0
    assert given == [[], ["--theme=light", "--library=a b"]]


@pytest.mark.skipif(sys.platform == "win32", reason="uses bash")
def test_a_reader_that_leaves_early_is_no_failure(tmp_path: Path) -> None:
    program = " ".join(PROGRAM)

    closed = subprocess.run(
        ["bash", "-c", f"cd {tmp_path}; ({program} history list --library lib; echo $? >code) 2>err | true"],
        check=False,
    )
    assert closed.returncode == 0

    assert (tmp_path / "code").read_text() == "0\n"
    assert (tmp_path / "err").read_text() == ""


def test_starting_imports_nothing_heavy() -> None:
    code = (
        "import sys; from gptscope.app.cli.main import build_parser; build_parser();"
        "print([name for name in ('torch', 'numpy', 'rich', 'PySide6', 'sqlite3', 'psutil') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    ("redirection", "sentence"),
    [
        (">&-", "gptscope: Standard output is closed. Leave it open, or send it to a file.\n"),
        (">/dev/full", "gptscope: No space left on device. Free some space, or choose another place.\n"),
        (">&- 2>&-", ""),
    ],
)
def test_an_output_that_takes_nothing_is_told_in_a_sentence(redirection: str, sentence: str, tmp_path: Path) -> None:
    result = shell(f"{' '.join(PROGRAM)} history list --library {tmp_path / 'lib'} {redirection}")
    assert (result.returncode, result.stderr) == (1, sentence)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "There is not enough memory for this."),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device. Free some space"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "xx"), "File name too long (xx). Give a shorter name."),
        (OSError(errno.ECHILD, "No child"), "gptscope met a fault of its own"),
    ],
)
def test_what_the_system_lacks_is_no_fault_of_ours(
    error: Exception, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_args: object) -> int:
        raise error

    monkeypatch.setattr(cli_main.COMMANDS["doctor"], "run", fail, raising=False)
    assert main(["doctor"]) == 1
    assert f"gptscope: {sentence}" in capsys.readouterr().err


def test_ctrl_c_while_libraries_are_imported_ends_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupting:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "gptscope.app.cli.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "gptscope.app.cli.main")
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert main(["doctor"]) == 130
    assert capsys.readouterr() == ("", "")
