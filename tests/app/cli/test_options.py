"""What the command line means as an experiment, and what it refuses."""

import argparse
import shlex

import pytest

from gptscope.app.cli import options
from gptscope.app.cli.compare import variants_from
from gptscope.app.cli.demo import demo_experiment
from gptscope.app.cli.main import build_parser
from gptscope.app.cli.options import UsageError
from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.worker.repeat import command_line


def parse(line: str) -> argparse.Namespace:
    return build_parser().parse_args(shlex.split(line))


def experiment(line: str) -> Experiment:
    args = parse(line)
    return options.experiment_from(args, [options.variant_from(args)], quality=False)


def test_run_without_options_is_the_bundled_model_with_nothing_fused() -> None:
    assert experiment("run") == Experiment(model="bundled", workload=Workload(), variants=(Variant(),))


def test_every_option_reaches_the_experiment() -> None:
    line = (
        "run --model m --workload train --precision BF16 --fuse attention,qkv --kv-cache static --batch 4 --context 64"
        " --new-tokens 7 --steps 3 --device cpu --threads 2 --seed 9 --profile-steps 5 --time-limit 60"
    )
    assert experiment(line) == Experiment(
        model="m",
        workload=Workload(kind="train", batch=4, context=64, new_tokens=7, steps=3, seed=9),
        variants=(Variant(precision="bf16", fusions=("attention", "qkv"), kv_cache="static", threads=2),),
        device="cpu",
        profile_steps=5,
        time_limit_s=60,
    )


@pytest.mark.parametrize(
    "asked",
    [
        Experiment(
            model="preset:tiny",
            workload=Workload(kind="generate", prompt='It\'s "odd" $HOME; -n', new_tokens=3),
            variants=(Variant(precision="fp16", fusions=("qkv", "norm"), kv_cache="none", threads=1),),
            device="cpu",
        ),
        Experiment(model="bundled", workload=Workload(), variants=(Variant(threads=2),), device="cpu"),
        Experiment(
            model="bundled",
            workload=Workload(kind="generate", prompt="--fuse all"),
            variants=(Variant(threads=1),),
            device="cpu",
        ),
    ],
)
def test_the_command_line_kept_with_a_run_repeats_it(asked: Experiment) -> None:
    (variant,) = asked.variants
    line = command_line(asked, variant, device="cpu", threads=variant.threads or 1)
    assert experiment(line.removeprefix("gptscope ")) == asked


def test_a_prompt_makes_the_workload_generate() -> None:
    assert experiment("run --prompt hello").workload.kind == "generate"
    assert experiment("run --prompt hello --workload generate").workload.prompt == "hello"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("run --batch 0", "batch is 0, but it must be 1 or more"),
        ("run --context -3", "context is -3"),
        ("run --new-tokens 0", "new_tokens is 0"),
        ("run --steps 0", "steps is 0"),
        ("run --workload train --context 1", "training needs 2 or more tokens"),
        ("run --threads 0", "threads is 0"),
        ("run --steps 99999999999", "--steps is 99999999999, but it must be 1000000 or less"),
        ("run --seed -1", "seed is -1"),
        ("run --seed 99999999999999999999", "must be between 0 and 9223372036854775807"),
        ("run --prompt hi --workload train", "--prompt needs a workload that generates text"),
        ("run --prompt '  '", "--prompt is empty"),
        ("run --profile-steps -1", "--profile-steps is -1"),
        ("run --time-limit 0", "--time-limit is 0"),
        ("run --time-limit nan", "--time-limit is nan"),
        ("run --fuse none,qkv", "asks for none and for others"),
    ],
)
def test_impossible_numbers_are_named(line: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        experiment(line)


def test_fusions_may_be_written_with_spaces_and_twice() -> None:
    assert options.parse_fusions(" qkv, Norm,,qkv ", separators=",") == ("qkv", "norm")
    assert options.parse_fusions("none", separators=",") == ()
    assert options.parse_fusions("", separators=",") == ()


def test_a_setting_takes_what_it_leaves_out_from_the_single_options() -> None:
    args = parse(
        "compare --threads 2 --kv-cache static --candidate precision=bf16"
        " --candidate 'fuse=attention+qkv, kv_cache=none,threads=1,name=my own'"
    )
    assert variants_from(args) == [
        Variant(kv_cache="static", threads=2),
        Variant(precision="bf16", kv_cache="static", threads=2),
        Variant(fusions=("attention", "qkv"), kv_cache="none", threads=1, name="my own"),
    ]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("compare", "needs at least one candidate"),
        ("compare --candidate fp32", "'fp32' is not one of precision=..."),
        ("compare --candidate color=red", "'color=red' is not one of"),
        ("compare --candidate kv-cache=big", "kv-cache=big is unknown"),
        ("compare --candidate threads=two", "threads=two is not a whole number"),
        ("compare --candidate threads=0", "threads is 0"),
        ("compare --candidate precision=bf16,precision=fp16", "precision is given twice"),
        ("compare --candidate precision=fp32", "Two variants are the same"),
        ("compare --candidate precision=bf16 --candidate precision=bf16,name=b", "Two variants are the same"),
        ("compare " + "--candidate precision=bf16 " * 16, "at most 15 candidates"),
    ],
)
def test_impossible_settings_are_named(line: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        variants_from(parse(line))


def test_the_demo_compares_plain_with_tuned_and_looks_at_the_output() -> None:
    quick, full = demo_experiment(quick=True), demo_experiment(quick=False, threads=1)
    assert quick.model == full.model == "bundled"
    assert quick.quality
    assert quick.variants[0].precision == "fp32"
    assert quick.variants[-1].fusions == ("all",)
    assert full.variants[1].kv_cache == "dynamic"
    assert {v.threads for v in full.variants} == {1}
