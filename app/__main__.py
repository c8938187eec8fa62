"""`gptscope` and `python -m gptscope.app`: the window without arguments, else a command."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Open the window, or run a command. Returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments:
        from gptscope.app.cli.gui import open_window

        return open_window(())
    from gptscope.app.cli.main import run_command

    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(main())
