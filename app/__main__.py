"""`gptscope` and `python -m gptscope.app`: the window without arguments, else a command."""

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Open the window, or run a command. Returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments:
        from gptscope.app.cli.main import run_command

        return run_command(arguments)
    if not has_display():
        print(
            "gptscope: there is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set), so the window cannot "
            "open. In a terminal: `gptscope demo` shows what the levers do, `gptscope --help` lists all commands.",
            file=sys.stderr,
        )
        return 1
    from gptscope.app.gui.main import main as open_window

    return open_window()


def has_display() -> bool:
    """Whether a window can be shown; on Linux that needs X or Wayland, unless a Qt platform was chosen by hand."""
    if not sys.platform.startswith("linux"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


if __name__ == "__main__":
    sys.exit(main())
