from pathlib import Path

import pytest
from tests_app_quality_streams import INT8, fine_tuned

from gptscope.app.viewmodels import tuning as vm
from gptscope.profiling.experiment import Experiment, Variant, Workload

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
    first = vm.new_folder("/models/my.gguf", "int8-static", tmp_path)
    assert first == str(tmp_path / "my-int8-static-tuned")
    Path(first).mkdir()
    assert vm.new_folder("/models/my.gguf", "int8-static", tmp_path).endswith("my-int8-static-tuned-2")


def test_a_gain_is_told_only_when_it_is_sure() -> None:
    sure = vm.tuning_result(fine_tuned())
    assert sure.better
    assert sure.rows[1] == ("INT8 dynamic", "17.9 ± 0.600", "15.2 ± 0.500")
    assert sure.sentence.startswith("INT8 dynamic: perplexity −2.70 ± 0.20, better than before. 2 layers trained in")
    unsure = vm.tuning_result(fine_tuned(change=-0.1))
    assert not unsure.better
    assert "no sure gain" in unsure.sentence


def test_only_roundings_of_integers_are_trained_for() -> None:
    assert vm.can_tune(INT8)
    assert not vm.can_tune(Variant(precision="bf16"))
    assert not vm.can_tune(None)
    assert vm.can_calibrate(Variant(precision="int8-static"))
    assert not vm.can_calibrate(INT8)
