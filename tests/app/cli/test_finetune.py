"""finetune: what is asked of the engine, and what people and programs read."""

import argparse
import json
from pathlib import Path

import msgspec
import pytest

from gptscope.app.__main__ import main
from gptscope.app.cli.finetune import FineTuneCommand, request_from
from gptscope.app.cli.options import UsageError
from gptscope.profiling.records import Failure, FineTune, FineTuned, Progress, TextScore


def parsed(*arguments: str) -> FineTune:
    parser = argparse.ArgumentParser()
    FineTuneCommand().add_arguments(parser)
    return request_from(parser.parse_args(arguments))


@pytest.fixture
def tuned() -> FineTuned:
    return FineTuned(
        request=FineTune(model="bundled", folder="/tmp/tuned", steps=4),
        folder="/tmp/tuned",
        trained=("blocks.0.mlp.up", "lm_head"),
        losses=(0.4, 0.3, 0.2, 0.1),
        seconds=12.0,
        tokens=6144,
        original=TextScore(perplexity=14.86, error=0.4),
        quantized_before=TextScore(perplexity=16.2, error=0.5),
        quantized_after=TextScore(perplexity=15.0, error=0.4),
        after=TextScore(perplexity=None, error=None),
        change=TextScore(perplexity=-1.2, error=0.1),
        text="gptscope's calibration text",
    )


def test_the_request_holds_everything_with_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = parsed(
        "--model", "smollm2-135m", "--out", "tuned", "--mode", "targeted", "--recipe", "INT8-dynamic", "--option",
        "granularity=tensor", "--option", "keep=lm_head", "--steps", "9", "--lr", "1e-4", "--layers", "5",
        "--goal", "text", "--text", "a.txt", "--batch", "2", "--context", "64", "--seed", "7", "--threads", "1",
    )  # fmt: skip
    assert asked == FineTune(
        model="smollm2-135m", folder=str(tmp_path / "tuned"), mode="targeted", recipe="int8-dynamic",
        options={"granularity": "tensor", "keep": "lm_head"}, steps=9, lr=1e-4, layers=5, goal="text",
        text=str(tmp_path / "a.txt"), batch=2, context=64, seed=7, threads=1,
    )  # fmt: skip
    assert parsed("--out", "x").options == {}
    assert (parsed("--out", "x").recipe, parsed("--out", "x").pruning) == ("int8-static", "none")
    pruned = parsed("--out", "x", "--pruning", "Structured", "--pruning-option", "mlp=0.5")
    assert (pruned.recipe, pruned.pruning, pruned.pruning_options) == ("fp32", "structured", {"mlp": "0.5"})
    with pytest.raises(UsageError, match="Give --pruning too"):
        parsed("--out", "x", "--pruning-option", "mlp=0.5")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--steps", "0"), "steps is 0"),
        (("--lr", "-1"), "learning rate is -1"),
        (("--context", "1"), "context is 1"),
        (("--option", "granularity"), "not LEVER.NAME=VALUE"),
    ],
)
def test_impossible_arguments_are_refused_here(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parsed("--out", "x", *arguments)


def test_people_read_what_was_trained_and_what_it_brought(play, tuned, capsys) -> None:
    play([Progress(phase="train", done=1, total=4, unit="steps", note="loss 0.4000"), tuned])
    assert main(["finetune", "--out", "/tmp/tuned"]) == 0
    captured = capsys.readouterr()
    assert "Training: loss 0.4000" in captured.err
    assert "bundled for int8-static, 4 steps in 12.0 s" in captured.out
    assert "0.350 in the first 2 steps, 0.150 in the last" in captured.out
    assert "not quantized  14.9 ± 0.400           n/a" in captured.out
    assert "int8-static    16.2 ± 0.500  15.0 ± 0.400" in captured.out
    assert "int8-static: perplexity −1.20 ± 0.100, better than before." in captured.out
    assert "Saved in /tmp/tuned." in captured.out


@pytest.mark.parametrize(
    ("change", "verdict"),
    [(0.5, "worse than before"), (0.1, "no real difference"), (-0.1, "no real difference")],
)
def test_a_change_within_its_error_is_no_difference(change: float, verdict: str, play, tuned, capsys) -> None:
    play([msgspec.structs.replace(tuned, change=TextScore(perplexity=change, error=0.1))])
    assert main(["finetune", "--out", "/tmp/tuned"]) == 0
    assert verdict in capsys.readouterr().out


def test_programs_read_every_number(play, tuned, capsys) -> None:
    play([tuned])
    assert main(["finetune", "--out", "/tmp/tuned", "--json", "-"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["gptscope"] == "finetuned"
    assert data["losses"] == [0.4, 0.3, 0.2, 0.1]
    assert data["request"]["recipe"] == "int8-static"
    assert data["change"] == {"perplexity": -1.2, "error": 0.1}


def test_a_failure_is_one_sentence(play, capsys) -> None:
    play([Failure(kind="usage", message="The text x has 3 tokens.")])
    assert main(["finetune", "--out", "/tmp/tuned"]) == 2
    assert capsys.readouterr().err.endswith("gptscope: The text x has 3 tokens.\n")
