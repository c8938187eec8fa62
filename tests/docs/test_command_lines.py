"""Every `gptscope …` line in the documents and in the helps is one that the program accepts. Nothing is run."""

import argparse
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gptscope.app.__main__ import _names_a_file
from gptscope.app.cli import compare, finetune, main, models, options, quality
from gptscope.app.cli.commands import COMMANDS
from gptscope.models.compression import PRUNINGS
from gptscope.models.decoding.speculation import SPECULATIONS
from gptscope.models.fusion import FUSIONS
from gptscope.models.precision import RECIPES
from gptscope.profiling.experiment import Variant

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")])
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def in_document(path: Path) -> Iterator[str]:
    """Command lines in fenced blocks (after a `$ ` too) and in inline code; a `…` stands for what is left open."""
    text = path.read_text("utf-8")
    for block in FENCE.findall(text):
        yield from (line.removeprefix("$ ") for line in block.splitlines() if re.match(r"(\$ )?gptscope( |$)", line))
    for code in re.findall(r"`(gptscope(?: [^`]*)?)`", FENCE.sub("", text)):
        if "…" not in code:
            yield code


def in_help(text: str) -> Iterator[str]:
    """Command lines of an epilog; what a line does stands behind several spaces."""
    for line in text.splitlines():
        if line.strip().startswith("gptscope "):
            yield re.split(r" {3,}", line.strip())[0]


def actions_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Commands of the program, or actions of a command."""
    return next((dict(a.choices) for a in parser._actions if isinstance(a, argparse._SubParsersAction)), {})


def parser_of(words: Sequence[str]) -> argparse.ArgumentParser | None:
    """The parser of a command or of its action; None when there is none."""
    parser: argparse.ArgumentParser | None = main.build_parser()
    for word in words:
        parser = actions_of(parser).get(word) if parser is not None else None
    return parser


def is_name(words: Sequence[str]) -> bool:
    """True when the words only name a command, such as `trace diff` in a sentence."""
    return parser_of(words) is not None


def told() -> Iterator[tuple[str, str]]:
    for path in DOCUMENTS:
        yield from ((str(path.relative_to(REPOSITORY)), line) for line in in_document(path))
    yield from (("gptscope --help", line) for line in in_help(main.build_parser().epilog or ""))
    for name, command in COMMANDS.items():
        yield from ((f"gptscope {name} --help", line) for line in in_help(command.examples))


TOLD = list(told())


def variants_of(args: argparse.Namespace) -> list[Variant]:
    """What a parsed line asks to be measured; its numbers are checked on the way."""
    if args.command == "run":
        return list(options.experiment_from(args, [options.variant_from(args)], quality=False).variants)
    if args.command == "compare":
        return list(options.experiment_from(args, compare.variants_from(args), quality=True).variants)
    return list(quality.experiment_from(args).variants) if args.command == "quality" else []


def sections() -> dict[str, str]:
    """docs/commands.md by heading; what stands before the first has an empty one."""
    parts = re.split(r"^## (.*)$", (REPOSITORY / "docs" / "commands.md").read_text("utf-8"), flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def option_rows() -> Iterator[tuple[str, list[str], set[str]]]:
    """Rows of tables that name options: their place, the command and action, and the options."""
    for command in COMMANDS:
        rows = re.findall(r"^\| (`[^\n]+?) \|", SECTIONS.get(command, "").replace("\\|", "/"), re.MULTILINE)
        for row in rows:
            first, *rest = row.strip("`").split()
            action = [] if first.startswith("--") else rest[:1]
            yield f"{command}: {row}", [command, *action], set(re.findall(r"(--[a-z-]+)", row))


SECTIONS = sections()
OPTION_ROWS = list(option_rows())


def test_the_documents_are_found() -> None:
    places = {place for place, _ in TOLD}
    assert {"README.md", "docs/commands.md", "docs/window.md", "gptscope --help"} <= places
    assert len(TOLD) > 60


@pytest.mark.parametrize(("place", "line"), TOLD, ids=[f"{place}: {line}" for place, line in TOLD])
def test_a_command_line_is_accepted(place: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(line, comments=True)[1:]
    if not words or words in (["--help"], ["--version"]) or (len(words) == 1 and _names_a_file(words[0])):
        return
    if is_name(words):
        return
    if words[-1] == "--help":
        assert is_name(words[:-1])
        return
    monkeypatch.setattr(Path, "is_file", lambda _path: True)  # a text file of the reader's
    args = main.build_parser().parse_args(words)
    for variant in variants_of(args):
        assert variant.precision in RECIPES
        assert {*variant.fusions} <= {*FUSIONS, "all"}
        assert variant.pruning in {*PRUNINGS, "none"}
        assert variant.speculation in {*SPECULATIONS, "none"}
        assert {*variant.options} <= {*RECIPES, *FUSIONS, *PRUNINGS, *SPECULATIONS}
    if args.command == "finetune":
        assert finetune.request_from(args).recipe in RECIPES
    if args.command == "models" and args.action == "save":
        assert models.save_request(args).pruning in {*PRUNINGS, "none"}


@pytest.mark.parametrize(("place", "words", "named"), OPTION_ROWS, ids=[place for place, _, _ in OPTION_ROWS])
def test_what_a_table_names_exists(place: str, words: list[str], named: set[str]) -> None:
    parser = parser_of(words)
    assert parser is not None, place
    assert named <= set(parser._option_string_actions)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_described(command: str) -> None:
    parser = parser_of([command])
    assert parser is not None
    parsers = [parser, *actions_of(parser).values()]
    known = {name for one in parsers for name in one._option_string_actions if name.startswith("--")}
    text = "".join(SECTIONS.get(place, "") for place in (command, "run", "What all commands share", ""))
    described = set(re.findall(r"(--[a-z-]+)", text))
    assert known - {"--help"} <= described


def test_every_action_is_described() -> None:
    for command in COMMANDS:
        parser = parser_of([command])
        assert parser is not None
        for action in actions_of(parser):
            assert re.search(rf"\b{command} {action}\b", SECTIONS[command]), f"{command} {action}"
