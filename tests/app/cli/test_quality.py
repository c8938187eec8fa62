"""`gptscope quality`: what is asked of the engine, what is printed and written, and how it fails."""

import json
from pathlib import Path

import msgspec
import pytest

from gptscope.app.cli.main import run_command
from gptscope.app.cli.options import UsageError
from gptscope.app.cli.quality import Quality as Command
from gptscope.app.cli.quality import experiment_from
from gptscope.profiling.records import (
    ExperimentFinished,
    ExperimentStarted,
    Failure,
    LayerErrors,
    ModelLoaded,
    ModuleError,
    Notice,
    PromptComparison,
    Quality,
    RunStarted,
)


def asked(*arguments: str):
    import argparse

    parser = argparse.ArgumentParser()
    Command().add_arguments(parser)
    return experiment_from(parser.parse_args(arguments))


def module(name: str, kl: float) -> ModuleError:
    return ModuleError(
        module=name, layer=0, part=name.split(".", 2)[2], parameters=9, kl_mean=kl, logit_sqnr_db=20.0,
        output_sqnr_db=None, output_cosine=1.0, reference_us=40.0, candidate_us=10.0,
    )  # fmt: skip


@pytest.fixture
def compared(experiment):
    """Records of a comparison with one real change and a layer map."""
    records = experiment()
    found = [r for r in records if isinstance(r, ExperimentStarted | RunStarted | ModelLoaded)]
    quality = next(r for r in records if isinstance(r, Quality))
    prompt = PromptComparison(
        prompt="The lighthouse\nkeeper",
        baseline=(" climbed", " the", " stairs"),
        candidate=(" climbed", " a", " tower"),
        equal=1,
        outcome="changed",
        margins=(1.0, 2.0, 3.0),
        forced_gaps=(0.0, 1.5, 0.0),
    )
    quality = msgspec.structs.replace(
        quality, prompts=(prompt,), real_changes=1, near_ties=0, logit_sqnr_db=12.8, logit_cosine=0.99,
        forced_tokens=48, forced_changes=1, text_tokens=9000,
    )  # fmt: skip
    errors = LayerErrors(
        run_id=quality.run_id,
        baseline_run_id=quality.baseline_run_id,
        modules=(module("blocks.0.mlp.up", 0.01), module("blocks.1.mlp.down", 0.03)),
        stream_sqnr_db=(30.0, 20.0),
        tokens=512,
        timed_tokens=1,
        kl_all=0.05,
        reference="the same model in FP32, unfused",
    )
    return [*found, quality, errors, ExperimentFinished(experiment_id="e1", outcome="done")]


def test_only_outputs_are_compared(tmp_path: Path) -> None:
    text = tmp_path / "my text.txt"
    text.write_text("words")
    experiment = asked("--candidate", "precision=bf16", "--text", str(text))
    assert (experiment.quality, experiment.measure, experiment.peaks, experiment.layer_map) == (
        True,
        False,
        False,
        False,
    )
    assert experiment.text == str(text.resolve())
    assert asked("--candidate", "precision=bf16", "--keep-worst", "3").layer_map
    work = asked("--candidate", "precision=bf16", "--workload", "prefill", "--context", "512").workload
    assert (work.kind, work.context) == ("prefill", 512)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--keep-worst", "0"), "--keep-worst is 0, but it must be between 1 and 1000"),
        (("--text", "nowhere.txt"), "there is no file nowhere.txt"),
        (("--time-limit", "0"), "must be more than 0 seconds"),
        (("--context", "0"), "context is 0"),
    ],
)
def test_impossible_requests_are_refused_in_a_sentence(arguments: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        asked("--candidate", "precision=bf16", *arguments)


def test_figures_the_changed_text_and_the_layer_map_are_printed(compared, play, capsys) -> None:
    play(compared)
    assert run_command(["quality", "--candidate", "precision=bf16"]) == 0
    out = capsys.readouterr().out.replace("\u202f", " ")
    assert "14.86 → 14.88 (+0.020 ± 0.010), 4 000 tokens (of 9 000) of held-out text" in out
    assert "12.8 dB signal to error, cosine 0.990000" in out
    assert "47 of 48 tokens are its own choice" in out
    assert "first real change, prompt 1, token 2, 1.50 logits below the baseline's choice:" in out
    assert "prompt     The lighthouse\\nkeeper" in out
    assert "baseline    climbed[ the] stairs" in out
    assert "candidate   climbed[ a] tower" in out
    assert out.index("blocks.1.mlp.down") < out.index("blocks.0.mlp.up"), "worst first"
    assert "all together 0.0500" in out


def test_a_mixed_recipe_is_proposed_verified_and_written(compared, play, capsys, tmp_path: Path) -> None:
    play(compared)
    target = tmp_path / "q.json"
    assert (
        run_command(["quality", "--candidate", "precision=int8-dynamic", "--keep-worst", "1", "--json", str(target)])
        == 0
    )
    out = capsys.readouterr().out
    assert "A, worst 1 kept unquantized: blocks.1.mlp.down, 50 % of the time saved stays" in out
    assert '--candidate "precision=int8-dynamic,kv-cache=dynamic,int8-dynamic.keep=blocks.1.mlp.down"' in out
    assert "(predicted 0.0125)" in out
    document = json.loads(target.read_text())
    assert document["gptscope"] == "quality"
    (candidate,) = document["candidates"]
    assert candidate["layer_errors"]["kl_all"] == 0.05
    assert candidate["mixed"]["kept"] == ["blocks.1.mlp.down"]
    assert candidate["mixed"]["variant"]["options"] == {"int8-dynamic": {"keep": "blocks.1.mlp.down"}}
    assert candidate["mixed"]["quality"]["tokens"] == 4000


def test_nothing_compared_is_a_failure_with_the_reason(experiment, play, capsys) -> None:
    records = [r for r in experiment() if isinstance(r, ExperimentStarted | RunStarted | ModelLoaded)]
    ended = ExperimentFinished(experiment_id="e1", outcome="done")
    play([*records, Notice(message="Output quality was not evaluated: random weights."), ended])
    assert run_command(["quality", "--candidate", "precision=bf16"]) == 1
    assert "random weights" in capsys.readouterr().err
    play([*records, Failure(kind="usage", message="int8-static has no option 'rows'."), ended])
    assert run_command(["quality", "--candidate", "precision=int8-static,int8-static.rows=1"]) == 2
    assert "int8-static has no option 'rows'." in capsys.readouterr().err
