"""What every command is."""

import argparse
from typing import Protocol


class Command(Protocol):
    """One command of the command line."""

    @property
    def summary(self) -> str:
        """One line for the list of commands."""

    @property
    def examples(self) -> str:
        """Shown under the command's help."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare its options."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; returns the exit code."""
