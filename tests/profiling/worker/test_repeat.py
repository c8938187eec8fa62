"""The stored command line repeats the run: parsed by the command line itself it gives the same request."""

import argparse
import shlex
from pathlib import Path

import pytest

from gptscope.app.cli import options
from gptscope.app.cli.run import Run
from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.worker.repeat import command_line, environment_that_matters


def parsed(line: str) -> Experiment:
    words = shlex.split(line)
    assert words[:2] == ["gptscope", "run"]
    parser = argparse.ArgumentParser()
    Run().add_arguments(parser)
    args = parser.parse_args(words[2:])
    return options.experiment_from(args, [options.variant_from(args)], quality=False)


@pytest.mark.parametrize(
    ("work", "variant"),
    [
        (Workload(), Variant()),
        (Workload(kind="train", batch=3, context=77, steps=5, seed=9), Variant(precision="bf16", fusions=("all",))),
        (
            Workload(kind="generate", prompt='it\'s $HOME; "quoted"\nand new', new_tokens=7),
            Variant(kv_cache="static", fusions=("attention", "compile")),
        ),
    ],
)
def test_command_line_round_trip(work: Workload, variant: Variant):
    experiment = Experiment(model="preset:tiny", workload=work, variants=(variant,))
    again = parsed(command_line(experiment, variant, device="cpu", threads=2))
    assert again.model == experiment.model
    assert again.workload == work
    assert again.device == "cpu"
    (same,) = again.variants
    assert (same.precision, same.fusions, same.kv_cache) == (variant.precision, variant.fusions, variant.kv_cache)
    assert same.threads == 2


def test_a_folder_is_written_in_full_so_that_it_works_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "my model").mkdir()
    monkeypatch.chdir(tmp_path)
    experiment = Experiment(model="my model", workload=Workload(), variants=(Variant(),))
    line = command_line(experiment, Variant(), device="cpu", threads=1)
    assert str(tmp_path / "my model") in shlex.split(line)


def test_profile_steps_are_kept():
    experiment = Experiment(model="bundled", workload=Workload(), variants=(Variant(),), profile_steps=0)
    assert parsed(command_line(experiment, Variant(), device="cpu", threads=1)).profile_steps == 0


def test_only_variables_that_matter_are_kept():
    environment = {
        "OMP_NUM_THREADS": "2",
        "SECRET_TOKEN": "x",
        "HOME": "/root",
        "LD_PRELOAD": "lib.so",
        "HF_TOKEN": "x",
    }
    assert environment_that_matters(environment) == {"LD_PRELOAD": "lib.so", "OMP_NUM_THREADS": "2"}
