"""`gptscope` and `python -m gptscope.app`: the window without arguments, else a command."""

import os
import sys
from collections.abc import Sequence

_INTERRUPTED = 130
"""What shells call the end by Ctrl+C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Open the window, or run a command. Returns the exit code."""
    try:
        return _start(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # before the command began, which tells its own end
        return _INTERRUPTED


def _start(arguments: Sequence[str]) -> int:
    if not arguments or (len(arguments) == 1 and _names_a_file(arguments[0])):
        from gptscope.app.cli.gui import open_window

        return open_window([f"--trace={file}" for file in arguments])
    from gptscope.app.cli.main import run_command

    return run_command(arguments)


def _names_a_file(argument: str) -> bool:
    """`gptscope trace.json.gz` opens it in the window; a command's name stays a command, a mistyped one too."""
    if argument.startswith("-"):
        return False
    if argument.endswith((".json", ".json.gz", ".zip")):
        return True
    return "." in argument and os.path.isfile(argument)  # noqa: PTH113 (Path raises for names that are too long)


if __name__ == "__main__":
    sys.exit(main())
