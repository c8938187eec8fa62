"""The script that puts real outputs into docs/commands.md, without running a command."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "commands.md"
OUTPUT = """\
Model  tiny

Kernels
  one
  two
  three
  the other 4 take 2 %

Kept in a library
"""
BLOCKS = """\
Before.
<!-- sample: Model | Kernels 2+1 | Warning? -->
```console
$ gptscope run
old
```
Between.
<!-- sample: Kept -->
```console
old
```
```console
$ gptscope compare
by hand
```
"""


@pytest.fixture(scope="module")
def samples() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_samples", DOCUMENT.with_name("make_samples.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_samples"] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


def test_chosen_paragraphs_replace_what_stood_there_and_nothing_else(samples: ModuleType) -> None:
    text, problems = samples.rewritten(BLOCKS, lambda _command: OUTPUT)
    assert problems == []
    assert text == BLOCKS.replace(
        "$ gptscope run\nold", "$ gptscope run\nModel  tiny\n\nKernels\n  one\n  ...\n  the other 4 take 2 %"
    ).replace("\nold", "\nKept in a library")


def test_a_second_run_changes_nothing(samples: ModuleType) -> None:
    text, _ = samples.rewritten(BLOCKS, lambda _command: OUTPUT)
    assert samples.rewritten(text, lambda _command: OUTPUT) == (text, [])


def test_a_block_stays_without_output_or_when_another_was_asked_for(samples: ModuleType) -> None:
    assert samples.rewritten(BLOCKS, lambda _command: None) == (BLOCKS, [])
    assert samples.rewritten(BLOCKS, lambda _command: OUTPUT, ["doctor"]) == (BLOCKS, [])


def test_a_refusal_is_no_new_sample_unless_it_is_what_the_block_shows(samples: ModuleType) -> None:
    text, problems = samples.rewritten(BLOCKS, lambda _command: "gptscope: no network.")
    assert text == BLOCKS
    assert problems == ["refused now: gptscope run\ngptscope: no network."]
    refusal = "<!-- sample -->\n```console\n$ gptscope run\ngptscope: old words.\n```\n"
    text, problems = samples.rewritten(refusal, lambda _command: "gptscope: new words.")
    assert text == refusal.replace("old", "new")
    assert problems == []


def test_a_paragraph_that_is_gone_is_told(samples: ModuleType) -> None:
    text, problems = samples.rewritten(BLOCKS, lambda _command: "Kept in a library")
    assert text == BLOCKS.replace("\nold\n```\n```", "\nKept in a library\n```\n```")
    assert problems == ["no paragraph begins with 'Model' in:\nKept in a library"]


def test_several_commands_keep_their_order(samples: ModuleType) -> None:
    block = "<!-- sample -->\n```console\n$ gptscope a\n$ gptscope b\n```\n"
    text, _ = samples.rewritten(block, lambda command: f"{command} says {len(command)}")
    assert text.splitlines()[2:6] == ["$ gptscope a", "gptscope a says 10", "$ gptscope b", "gptscope b says 10"]


def test_long_sentences_go_on_and_long_rows_end_with_dots(samples: ModuleType) -> None:
    sentence, row = f"  {'word ' * 40}".rstrip(), f"  name  {'value ' * 40}".rstrip()
    lines = samples.fit(sentence)
    assert [line.split() for line in lines] == [["word"] * 27, ["word"] * 13]
    assert all(line.startswith("  word") for line in lines)
    assert samples.fit(row) == [f"  name  {' '.join(['value'] * 20)} ..."]
    assert samples.fit("short  ") == ["short"]


def test_every_marked_block_of_the_document_holds_what_it_chooses(samples: ModuleType) -> None:
    text = DOCUMENT.read_text("utf-8")
    found = list(samples._BLOCK.finditer(text))
    assert len(found) == text.count("<!-- sample")
    for block in found:
        body = "\n".join(line for line in block["body"].splitlines() if not line.startswith("$ "))
        parts = [samples.Part.parse(part) for part in block["parts"].split("|")] if block["parts"] else []
        assert samples.shown(body, parts), block["body"]
