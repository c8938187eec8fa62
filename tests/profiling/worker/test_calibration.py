"""The text that a recipe reads before it quantizes, and the ranges that are kept."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gptscope.models.config import PRESETS
from gptscope.models.gpt import GPT, init_weights
from gptscope.models.levers import LeverContext, Machine
from gptscope.models.prepare import prepare
from gptscope.models.quantization.ranges_file import load_ranges
from gptscope.profiling.records import Calibrate, Calibrated, Notice, Progress
from gptscope.profiling.worker import calibration
from gptscope.profiling.worker.calibration import calibrate, calibration_for, calibration_text, ranges_place
from gptscope.profiling.worker.failures import RequestError

CONFIG = replace(PRESETS["tiny"], vocab_size=256)


@pytest.fixture(autouse=True)
def user_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(calibration.platformdirs, "user_data_dir", lambda name: str(tmp_path / name))
    return tmp_path


@pytest.fixture
def loaded(kit: SimpleNamespace) -> Any:
    model = GPT(CONFIG).eval().requires_grad_(False)
    init_weights(model, 3)
    return SimpleNamespace(model=model, tokenizer=kit.letters(), description=None)


def context_with(**options: object) -> LeverContext:
    machine = Machine(
        device="cpu", device_name="cpu", cores=1, memory_bytes=8 << 30, cpu_features=frozenset({"avx512_bf16"})
    )
    return LeverContext(
        machine=machine,
        config=CONFIG,
        workload="decode",
        precision="int8-static",
        options={"int8-static": {name.replace("_", "-"): value for name, value in options.items()}},
    )


def test_the_bundled_text_is_cut_into_pieces_that_the_model_can_read(kit: SimpleNamespace) -> None:
    text = calibration_text(kit.letters(), CONFIG)
    assert text.token_ids.shape == (16, min(256, CONFIG.context_length))
    assert "comes with gptscope" in text.source


def test_a_persons_file_is_read_instead(kit: SimpleNamespace, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("abcd" * 200)
    text = calibration_text(kit.letters(), CONFIG, str(file))
    assert text.source == "notes.txt"
    assert bytes(text.token_ids[0, :4].tolist()) == b"abcd"
    file.write_text("abcd")
    with pytest.raises(RequestError, match=r"has 4 tokens, and at least \d+ are needed"):
        calibration_text(kit.letters(), CONFIG, str(file))
    with pytest.raises(RequestError, match="cannot be read: No such file"):
        calibration_text(kit.letters(), CONFIG, str(tmp_path / "gone"))


def test_a_model_without_a_tokenizer_is_refused_with_a_way_out() -> None:
    with pytest.raises(RequestError, match="Take a recipe that needs no calibration, such as int8-dynamic"):
        calibration_text(None, CONFIG)


def test_recipes_that_need_no_text_get_none(loaded: Any) -> None:
    assert calibration_for(replace(context_with(), precision="int8-dynamic", options={}), loaded, "m") is None
    assert calibration_for(context_with(ranges="some.json"), loaded, "m") is None


def test_a_run_keeps_its_ranges_and_names_the_file_that_a_later_run_can_take(
    loaded: Any, kit: SimpleNamespace, user_data: Path
) -> None:
    output = kit.collected()
    text = calibration_for(context_with(), loaded, "org/model name", output)
    assert text is not None
    prepare(loaded.model, context_with(), torch.device("cpu"), text)
    place = ranges_place("org/model name", text)
    assert place.parent == user_data / "gptscope" / "ranges"
    assert place.name.startswith("model-name-")
    assert load_ranges(place).tokens == text.token_ids.numel()
    notices = [record.message for record in output.of(Notice)]
    assert any(f"int8-static.ranges={place}" in message for message in notices)
    last = output.of(Progress)[-1]
    assert last.done == last.total == 16
    assert calibration_for(context_with(ranges=str(place)), loaded, "org/model name", output) is None


def test_ranges_that_cannot_be_kept_are_a_warning_and_the_run_goes_on(
    loaded: Any, kit: SimpleNamespace, user_data: Path
) -> None:
    (user_data / "gptscope").write_text("a file where a folder should be")
    output = kit.collected()
    prepared = prepare(
        loaded.model, context_with(), torch.device("cpu"), calibration_for(context_with(), loaded, "m", output)
    )
    assert prepared.logits(torch.zeros(1, 4, dtype=torch.long)).isfinite().all()
    assert any(record.level == "warning" and "could not be kept" in record.message for record in output.of(Notice))


def test_calibrating_writes_the_file_that_was_asked_for(
    loaded: Any, kit: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "load_model", lambda *args, **kwargs: loaded)
    output = kit.collected()
    file = tmp_path / "deep" / "ranges.json"
    found = calibrate(Calibrate(model="m", recipe="int8-smoothquant", out=str(file)), output)
    assert isinstance(found, Calibrated)
    assert found.path == str(file)
    assert found.inputs == len(load_ranges(file).inputs) == 4 * CONFIG.n_layer + 1
    with pytest.raises(RequestError, match=r"bf16 uses no calibrated ranges\. Recipes that do: int8-static"):
        calibrate(Calibrate(model="m", recipe="bf16"), output)
