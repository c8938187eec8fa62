"""Saving from request to folder: pruned models really are smaller, and impossible requests cost no time."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from gptscope.models.levers import LeverError
from gptscope.models.loaders import ModelError, load_model
from gptscope.profiling.records import ModelSaved, SaveModel
from gptscope.profiling.worker import saving
from gptscope.profiling.worker.failures import NotEnoughMemoryError
from gptscope.profiling.worker.saving import save_model


def save(kit, folder: Path, **changes: Any) -> ModelSaved:
    return save_model(SaveModel(model="preset:tiny", folder=str(folder), **changes), kit.collected())


def test_a_structured_pruning_saves_a_smaller_model(kit, tmp_path: Path) -> None:
    whole = save(kit, tmp_path / "whole")
    found = save(kit, tmp_path / "half", pruning="structured", options={"heads": 0.5, "mlp": 0.5})
    assert whole.parameters == whole.parameters_before == found.parameters_before
    assert whole.zeros == found.zeros == 0.0
    assert found.parameters < whole.parameters
    assert whole.bytes - found.bytes == pytest.approx(4 * (whole.parameters - found.parameters), rel=0.01)
    fields = json.loads((tmp_path / "half" / "config.json").read_text())
    named = ("num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size")
    assert [fields[name] for name in named] == [2, 1, 16, 96]
    assert "2 of 4 heads" in found.notes[0]


def test_a_masked_model_keeps_its_shape_and_its_zeros(kit, tmp_path: Path) -> None:
    found = save(kit, tmp_path / "masked", pruning="2:4")
    assert found.parameters == found.parameters_before
    assert found.zeros == 0.5
    model = load_model(found.folder).model
    assert float((model.get_parameter("blocks.0.mlp.up.weight") == 0).float().mean()) == 0.5
    assert int((model.embed.weight == 0).sum()) == 0


def test_what_cannot_be_saved_is_refused_before_anything_is_read(kit, tmp_path: Path, monkeypatch) -> None:
    def never(*_args: Any, **_options: Any) -> None:
        raise AssertionError("the model was read")

    monkeypatch.setattr(saving, "load_model", never)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(ModelError, match="is not empty"):
        save(kit, tmp_path / "full")
    with pytest.raises(LeverError, match="no pruning called 'half'"):
        save(kit, tmp_path / "new", pruning="half")
    with pytest.raises(LeverError, match="has no option 'amont'"):
        save(kit, tmp_path / "new", pruning="magnitude", options={"amont": 0.5})
    monkeypatch.setattr(saving.facts, "memory_available_bytes", lambda: 1000)
    with pytest.raises(NotEnoughMemoryError, match="Saving preset:tiny needs about"):
        save(kit, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_file_that_holds_something_else_is_noticed(kit, tmp_path: Path) -> None:
    save(kit, tmp_path / "saved")
    model = load_model(str(tmp_path / "saved")).model
    with torch.no_grad():
        model.blocks[1].mlp.up.weight[0, 0] += 1.0
    with pytest.raises(RuntimeError, match=r"blocks\.1\.mlp\.up\.weight"):
        saving.check_saved(model, tmp_path / "saved")
