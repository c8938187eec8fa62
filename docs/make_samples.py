"""Runs the commands of docs/commands.md again and puts what they print into it.

    python docs/make_samples.py                      all; takes some minutes, so leave the machine alone meanwhile
    python docs/make_samples.py doctor "models list" only the blocks with a command that holds one of these texts
    python docs/make_samples.py trace --files DIR    DIR holds files that a command reads, such as a trace

A block belongs to this script when `<!-- sample -->` stands before it. Its lines that begin with `$ ` are run one after
the other, in a folder and with a library of their own; a block without such lines shows more of the block before it.
The comment chooses paragraphs by how they begin, and lines of them: `<!-- sample: Model | Kernels 6+1 | Warning? -->`
is the paragraph that begins with "Model", six lines and the last one of "Kernels", and "Warning" if there is one.
A block whose command is refused although it was not before, or lacks a paragraph, stays as it is, and that is told.
"""

import argparse
import os
import pickle
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

DOCUMENT = Path(__file__).with_name("commands.md")
MOST_CHARACTERS = 136
_BLOCK = re.compile(r"<!-- sample(?::(?P<parts>[^\n]*?))? -->\n```console\n(?P<body>.*?)\n```", re.DOTALL)
_PART = re.compile(r"(?P<start>.+?)(?P<optional>\?)?(?: (?P<rows>\d+)(?:\+(?P<tail>\d+))?)?")
_REFUSAL = "gptscope: "


@dataclass(frozen=True)
class Part:
    """A paragraph that is shown: its first `rows` lines and its last `tail` ones; `rows` None: all of it."""

    start: str
    optional: bool = False
    rows: int | None = None
    tail: int = 0

    @classmethod
    def parse(cls, text: str) -> "Part":
        """`Kernels 6+1`, `Warning?`."""
        found = _PART.fullmatch(text.strip())
        assert found is not None, text
        rows = found["rows"]
        return cls(found["start"], found["optional"] is not None, int(rows) if rows else None, int(found["tail"] or 0))

    def lines(self, paragraph: Sequence[str]) -> list[str]:
        """What is shown of the paragraph."""
        if self.rows is None or len(paragraph) <= self.rows + self.tail:
            return list(paragraph)
        dots = _indent(paragraph[1]) + "..."
        return [*paragraph[: self.rows], dots, *paragraph[len(paragraph) - self.tail :]]


def rewritten(text: str, output_of: Callable[[str], str | None], wanted: Sequence[str] = ()) -> tuple[str, list[str]]:
    """The document with new outputs, and what went wrong.

    Args:
        text: The document.
        output_of: What a command prints; None leaves its block as it is.
        wanted: Only blocks with a command that holds one of these; empty: all.
    """
    pieces: list[str] = []
    outputs: list[str] = []
    problems: list[str] = []
    end = 0
    for found in _BLOCK.finditer(text):
        commands, body = commands_in(found["body"]), ""
        try:
            if commands:
                outputs = []  # of an earlier block
                outputs = answers(commands, found["body"], output_of, wanted)
            body = filled(commands, outputs, found["parts"] or "")
        except ValueError as error:
            problems.append(str(error))
        pieces += [text[end : found.start("body")], body or found["body"]]
        end = found.end("body")
    return "".join([*pieces, text[end:]]), problems


def answers(
    commands: Sequence[str], body: str, output_of: Callable[[str], str | None], wanted: Sequence[str]
) -> list[str]:
    """Outputs of a block's commands; none when the block is to stay as it is.

    Raises:
        ValueError: A command to which the block shows an answer is refused: offline, or broken.
    """
    if wanted and not any(word in command for word in wanted for command in commands):
        return []
    outputs = []
    for command in commands:
        output = output_of(command)
        if output is None:
            return []
        if re.search(rf"^{_REFUSAL}", output, re.MULTILINE) and f"$ {command}\n{_REFUSAL}" not in body:
            raise ValueError(f"refused now: {command}\n{output}")
        outputs.append(output)
    return outputs


def filled(commands: Sequence[str], outputs: Sequence[str], parts: str) -> str:
    """A block's commands, each with what is shown of its output.

    Raises:
        ValueError: A paragraph is not there.
    """
    chosen = [Part.parse(part) for part in parts.split("|")] if parts else []
    lines: list[str] = []
    for index, output in enumerate(outputs):
        lines += [f"$ {command}" for command in commands[index : index + 1]] + shown(output, chosen)
    return "\n".join(lines)


def commands_in(body: str) -> list[str]:
    """The commands of a block."""
    return [line[2:] for line in body.splitlines() if line.startswith("$ ")]


def shown(output: str, parts: Sequence[Part]) -> list[str]:
    """The chosen paragraphs, or all of it; long lines are made to fit.

    Raises:
        ValueError: A paragraph is not there.
    """
    paragraphs = [paragraph.splitlines() for paragraph in re.split(r"\n\s*\n", output.strip("\n"))]
    lines: list[str] = []
    for part in parts:
        found = next((one for one in paragraphs if one[0].lstrip().startswith(part.start)), None)
        if found is not None:
            lines += ["", *part.lines(found)]
        elif not part.optional:
            raise ValueError(f"no paragraph begins with {part.start!r} in:\n{output}")
    if not parts:
        lines = ["", *output.strip("\n").splitlines()]
    return [fitting for line in lines[1:] for fitting in fit(line)]


def fit(line: str) -> list[str]:
    """A line that fits on a page: sentences go on in the next line, columns end with dots."""
    if len(line) <= MOST_CHARACTERS:
        return [line.rstrip()]
    if "  " in line.strip():
        return [line[: line.rindex(" ", 0, MOST_CHARACTERS - 4)].rstrip() + " ..."]
    indent = _indent(line)
    return textwrap.wrap(line, MOST_CHARACTERS, subsequent_indent=indent, break_long_words=False)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


class Runner:
    """Runs commands in one folder with one library."""

    def __init__(self, folder: Path, files: Path | None) -> None:
        self.work, self._data = folder / "work", folder / "data"
        self.work.mkdir()
        self._data.mkdir()
        with zipfile.ZipFile(self.work / "evil.pt", "w") as checkpoint:
            checkpoint.writestr("evil/data.pkl", pickle.dumps(_Evil(), protocol=2))
            checkpoint.writestr("evil/version", "3\n")
        for file in files.iterdir() if files is not None else ():
            (self.work / file.name).symlink_to(file.resolve())

    def output_of(self, command: str) -> str | None:
        """What a command prints, with a reader's folders; None when a file for it is missing."""
        words = shlex.split(command)
        missing = [word for word in words if word.endswith((".json.gz", ".pt")) and not (self.work / word).exists()]
        if missing:
            print(f"left as it is, {missing[0]} is not in --files: {command}")
            return None
        print(command, flush=True)
        kept = self._data.with_name("kept")
        shutil.copytree(self._data, kept)
        environment = os.environ | {"XDG_DATA_HOME": str(self._data), "PYTHONUTF8": "1"}
        done = subprocess.run(
            [sys.executable, "-P", "-m", "gptscope.app", *words[1:]],
            cwd=self.work,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        told = [line for line in done.stderr.splitlines() if line.startswith(_REFUSAL)]
        if told:  # the library's own sample shows runs that went well
            shutil.rmtree(self._data)
            kept.rename(self._data)
        shutil.rmtree(kept, ignore_errors=True)
        return self._as_a_reader("\n".join([*done.stdout.splitlines(), *told]))

    def _as_a_reader(self, output: str) -> str:
        home = "/home/me"
        for here, there in (
            (str(self._data), f"{home}/.local/share"),
            (platformdirs.user_cache_dir(), f"{home}/.cache"),
            (str(self.work), home),
        ):
            output = output.replace(here, there)
        return output.replace("\u202f", " ")  # not as wide as the other characters of a block


class _Evil:
    """Unpickles as a call, as a hostile checkpoint would."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("true",)


def main() -> int:
    """Rewrite the document; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wanted", nargs="*", metavar="TEXT", help="only blocks with a command that holds one of these")
    parser.add_argument("--files", type=Path, metavar="DIR", help="files that commands read")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gptscope-samples-") as folder:
        runner = Runner(Path(folder), args.files)
        text, problems = rewritten(DOCUMENT.read_text("utf-8"), runner.output_of, args.wanted)
    DOCUMENT.write_text(text, "utf-8")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
