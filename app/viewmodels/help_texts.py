"""Two sentences about every metric and lever, from one file that the documentation shares."""

import json
from dataclasses import dataclass
from functools import cache

from gptscope.assets import ASSETS


@dataclass(frozen=True)
class HelpText:
    """A term and what it means."""

    title: str
    text: str


@cache
def help_texts() -> dict[str, HelpText]:
    """All texts by key."""
    table = json.loads((ASSETS / "help" / "texts.json").read_text("utf-8"))
    return {key: HelpText(entry["title"], entry["text"]) for key, entry in table.items()}


def help_for(key: str) -> str:
    """The sentences for a tool tip; empty for an unknown key."""
    found = help_texts().get(key)
    return found.text if found is not None else ""
