from pathlib import Path

import msgspec
import pytest
from tests_app_quality_streams import INT8, fine_tuned

from gptscope.app.viewmodels import tuning as vm
from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.records import ModelSaved

EXPERIMENT = Experiment(model="/models/my.gguf", workload=Workload(), variants=(Variant(), INT8))


def test_the_request_takes_recipe_and_settings_of_the_run() -> None:
    made = vm.tuning_request(EXPERIMENT, INT8, mode="targeted", layers=2, steps=50, lr=1e-4, folder=" /tmp/new ")
    assert (made.model, made.recipe, made.options) == ("/models/my.gguf", "int8-dynamic", {"granularity": "tensor"})
    assert (made.mode, made.layers, made.steps, made.folder) == ("targeted", 2, 50, str(Path("/tmp/new")))
    with pytest.raises(ValueError, match="new folder"):
        vm.tuning_request(EXPERIMENT, INT8, mode="qat", layers=2, steps=50, lr=1e-4, folder=" ")
    with pytest.raises(ValueError, match="learning rate"):
        vm.tuning_request(EXPERIMENT, INT8, mode="qat", layers=2, steps=50, lr=3.0, folder="x")


def test_the_proposed_folder_is_new(tmp_path: Path) -> None:
    first = vm.new_folder("/models/my.gguf", "int8-static-tuned", tmp_path)
    assert first == str(tmp_path / "my-int8-static-tuned")
    Path(first).mkdir()
    assert vm.new_folder("/models/my.gguf", "int8-static-tuned", tmp_path).endswith("my-int8-static-tuned-2")


def test_a_gain_is_told_only_when_it_is_sure() -> None:
    sure = vm.tuning_result(fine_tuned())
    assert sure.better
    assert sure.rows[1] == ("INT8 dynamic", "17.9 ± 0.600", "15.2 ± 0.500")
    assert sure.sentence.startswith("INT8 dynamic: perplexity −2.70 ± 0.20, better than before. 2 layers trained in")
    unsure = vm.tuning_result(fine_tuned(change=-0.1))
    assert not unsure.better
    assert "no sure gain" in unsure.sentence


PRUNED = Variant(
    precision="bf16",
    pruning="structured",
    options={"structured": {"mlp": 0.5}, "int8-dynamic": {"granularity": "tensor"}},
)


def test_a_pruning_is_trained_for_and_saved_with_its_settings() -> None:
    made = vm.tuning_request(EXPERIMENT, PRUNED, mode="qat", layers=2, steps=50, lr=1e-4, folder="/tmp/new")
    assert (made.recipe, made.options, made.pruning, made.pruning_options) == ("fp32", {}, "structured", {"mlp": 0.5})
    both = Variant(precision="int8-static", pruning="structured")
    assert (
        vm.tuning_request(EXPERIMENT, both, mode="qat", layers=2, steps=50, lr=1e-4, folder="x").recipe == "int8-static"
    )
    saved = vm.saving_request(EXPERIMENT.model, PRUNED, "/tmp/new")
    assert (saved.model, saved.pruning, saved.options) == ("/models/my.gguf", "structured", {"mlp": 0.5})
    with pytest.raises(ValueError, match="new folder"):
        vm.saving_request(EXPERIMENT.model, PRUNED, " ")


def test_what_was_pruned_before_it_was_saved_is_not_pruned_again() -> None:
    made = vm.made_variant(PRUNED, "/saved")
    assert (made.model, made.pruning, made.precision) == ("/saved", "none", "bf16")
    assert made.options == {"int8-dynamic": {"granularity": "tensor"}}


def test_scores_after_a_pruning_are_called_by_it() -> None:
    plain = fine_tuned()
    request = msgspec.structs.replace(plain.request, recipe="fp32", pruning="structured")
    found = vm.tuning_result(msgspec.structs.replace(plain, request=request))
    assert found.rows[0] == ("not pruned", "14.9 ± 0.480", "n/a: trained pruned")
    assert found.rows[1][0] == "Structured pruning"
    assert found.sentence.startswith("Structured pruning: perplexity −2.70")


def test_what_was_saved_is_told_with_what_is_left() -> None:
    saved = ModelSaved(model="m", folder="/saved", bytes=20_000_000, parameters_before=10, parameters=8, zeros=0.5)
    assert vm.saving_result(saved) == (
        "Saved 20.0 MB in FP32 in /saved. 8 of 10 parameters are left. 50 % of the weights in the layers are zero."
    )


def test_a_folder_is_judged_before_anything_is_done(tmp_path: Path) -> None:
    assert vm.folder_problem(str(tmp_path / "new")) == ""
    (tmp_path / "empty").mkdir()
    assert vm.folder_problem(f" {tmp_path / 'empty'} ") == ""
    (tmp_path / "file").write_text("x")
    for folder, said in (
        ("", "Say into which new folder"), (str(tmp_path), "is not empty"), (str(tmp_path / "file"), "is a file"),
        (str(tmp_path / "no" / "new"), f"The folder {tmp_path / 'no'} does not exist."),
        ("/" + "x" * 300, "cannot be used"),
    ):  # fmt: skip
        assert said in vm.folder_problem(folder)


def test_a_text_must_be_there(tmp_path: Path) -> None:
    assert vm.text_problem("") == ""
    assert vm.text_problem(str(tmp_path / "no.txt")) == f"There is no file {tmp_path / 'no.txt'}."
    assert "cannot be used" in vm.text_problem("/" + "x" * 300)


def test_only_narrow_roundings_and_prunings_are_trained_for() -> None:
    assert vm.can_tune(INT8)
    assert vm.can_tune(Variant(precision="fp8-delayed"))
    assert vm.can_tune(Variant(precision="bf16", pruning="magnitude"))
    assert not vm.can_tune(Variant(precision="bf16"))
    assert not vm.can_tune(Variant(precision="int8-smoothquant")), "it changes the weights itself"
    assert not vm.can_tune(None)
    assert vm.can_calibrate(Variant(precision="int8-static"))
    assert not vm.can_calibrate(INT8)
