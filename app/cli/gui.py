"""`gptscope` and `gptscope gui`: the window, where there is a display."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence

THEMES = ("system", "dark", "light")


class Gui:
    """Opens the window."""

    summary = "open the window (as gptscope without a command does)"
    examples = "example:\n  gptscope gui --theme dark --model preset:gpt2-124m"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--theme", choices=THEMES, help="colours, for this start only")
        parser.add_argument("--model", metavar="M", help="model to begin with")
        parser.add_argument("--trace", metavar="FILE", help="trace to open (as gptscope FILE does)")
        parser.add_argument("--library", metavar="DIR", help="folder of the run library (default: user data)")

    def run(self, args: argparse.Namespace) -> int:
        options = (
            ("--theme", args.theme),
            ("--model", args.model),
            ("--library", args.library),
            ("--trace", args.trace),
        )
        return open_window([f"{name}={value}" for name, value in options if value is not None])


def open_window(options: Sequence[str]) -> int:
    """Open the window, or say why it cannot be and what to run instead. Returns the exit code."""
    if not has_display():
        files = [option.removeprefix("--trace=") for option in options if option.startswith("--trace=")]
        command, does = ("gptscope demo", "shows what the levers do")
        if files:
            command, does = f"gptscope trace summary {shlex.quote(files[0])}", "says what its time went to"
        print(
            "gptscope: there is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set), so the window cannot "
            f"open. In a terminal: `{command}` {does}, `gptscope --help` lists all commands.",
            file=sys.stderr,
        )
        return 1
    from gptscope.app.gui.main import main

    return main(options)


def has_display() -> bool:
    """Whether a window can be shown; on Linux that needs X or Wayland, unless a Qt platform was chosen by hand."""
    if not sys.platform.startswith("linux"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))
