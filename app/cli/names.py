"""Judges names before anything is started: what exists, and what a mistyped one may have meant."""

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import NoReturn

from gptscope.profiling.experiment import FUSIONS, KV_CACHES, PRECISIONS, PRUNINGS, SPECULATIONS, Variant

_CHOICE = re.compile(r"invalid choice: (?P<given>.*) \(choose from (?P<names>.*)\)$", re.DOTALL)
_LEVERS = (*PRECISIONS, *FUSIONS, *KV_CACHES, *PRUNINGS, *SPECULATIONS)


class Parser(argparse.ArgumentParser):
    """A parser that says what a mistyped choice may have meant."""

    def error(self, message: str) -> NoReturn:
        """Print usage and message, and leave with exit code 2."""
        found = _CHOICE.search(message)
        if found is not None:
            names = [name.strip(" '") for name in found["names"].split(",")]
            message += did_you_mean(found["given"].strip("'"), names)
        super().error(message)


def did_you_mean(given: str, names: Sequence[str]) -> str:
    """` Did you mean bf16?`; empty when nothing is near."""
    near = difflib.get_close_matches(given.lower(), names, n=1)
    return f" Did you mean {near[0]}?" if near else ""


def name_problem(variant: Variant) -> str:
    """What in a variant has a name that does not exist, as a sentence; empty when all names do."""
    asked = [
        ("precision", (variant.precision,), PRECISIONS),
        ("fusion", variant.fusions, (*FUSIONS, "all")),
        ("pruning", (variant.pruning,), ("none", *PRUNINGS)),
        ("speculation", (variant.speculation,), ("none", *SPECULATIONS)),
        ("lever", tuple(variant.options), _LEVERS),
    ]
    for what, given, names in asked:
        for name in given:
            if name not in names:
                return f"There is no {what} called {name!r}.{did_you_mean(name, names)} There are: {', '.join(names)}."
    return ""
