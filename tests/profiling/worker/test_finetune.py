"""Fine-tuning from request to folder: what is trained, scored and saved, and what is refused before it costs time."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from gptscope.models.config import GPTConfig
from gptscope.models.gpt import GPT, init_weights
from gptscope.models.levers import LeverError
from gptscope.models.loaders import ModelError, load_model
from gptscope.models.loaders.config_writing import config_fields
from gptscope.models.loaders.families import FAMILIES
from gptscope.profiling.client import EngineClient
from gptscope.profiling.records import Failure, FineTune, FineTuned, Progress
from gptscope.profiling.worker import finetune as module
from gptscope.profiling.worker.failures import RequestError
from gptscope.profiling.worker.finetune import finetune

CONFIG = GPTConfig(
    family="llama", vocab_size=300, context_length=64, n_layer=2, d_model=32, n_head=4, n_kv_head=2, d_head=8, d_ff=48,
    rotary_dim=8,
)  # fmt: skip
COARSE = {"granularity": "tensor", "clipping": "minmax", "range": "minmax"}


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Llama with random weights and a tokenizer."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    folder.mkdir()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(["the old man and the sea " * 20], trainer)
    (folder / "config.json").write_text(json.dumps(config_fields(CONFIG, (0,))))
    tokenizer.save(str(folder / "tokenizer.json"))
    model = GPT(CONFIG)
    init_weights(model, 3)
    with torch.no_grad():
        for parameter in model.blocks.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4)
    state = model.state_dict()
    stored = {one.name: state[one.parts[0][0]].clone() for one in FAMILIES["llama"].plan(CONFIG, ())}
    save_file(stored, str(folder / "model.safetensors"))
    return folder


@pytest.fixture(autouse=True)
def few_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WINDOWS", 3)


def request(model: Path | str, out: Path, **changes: Any) -> FineTune:
    usual = {"recipe": "int8-static", "options": COARSE, "steps": 3, "batch": 2, "context": 16, "threads": 1}
    return FineTune(model=str(model), folder=str(out), **(usual | changes))


def test_a_model_is_trained_scored_and_saved(model_folder: Path, tmp_path: Path, kit) -> None:
    output = kit.collected()
    found = finetune(request(model_folder, tmp_path / "tuned"), output)
    assert len(found.losses) == 3
    assert len(found.trained) == 15
    assert found.folder == str(tmp_path / "tuned")
    assert found.tokens == 3 * 64
    assert found.original.perplexity is not None
    for score in (found.quantized_before, found.quantized_after, found.after):
        assert score.perplexity is not None
        assert score.perplexity != found.original.perplexity
    assert found.change.perplexity == pytest.approx(
        found.quantized_after.perplexity - found.quantized_before.perplexity
    )
    before, after = load_model(str(model_folder)).model, load_model(str(tmp_path / "tuned")).model
    assert after.config == before.config
    assert not torch.equal(before.embed.weight, after.embed.weight)
    assert not torch.equal(
        before.get_parameter("blocks.0.mlp.up.weight"), after.get_parameter("blocks.0.mlp.up.weight")
    )
    steps = [(one.done, one.total, one.note) for one in output.of(Progress) if one.phase == "train"]
    assert steps[-1][:2] == (3, 3)
    assert steps[-1][2].startswith("loss ")


def test_targeted_training_leaves_every_other_weight_as_it_was(model_folder: Path, tmp_path: Path, kit) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the old man and the sea " * 40)
    asked = request(model_folder, tmp_path / "tuned", mode="targeted", layers=2, text=str(text), goal="text")
    found = finetune(asked, kit.collected())
    assert len(found.trained) == 2
    assert found.text == str(text)
    before, after = load_model(str(model_folder)).model, load_model(str(tmp_path / "tuned")).model
    changed = {name for name, value in before.state_dict().items() if not torch.equal(value, after.state_dict()[name])}
    # the output projection and the embedding are one matrix here
    assert changed - {"embed.weight", "lm_head.weight"} == {f"{path}.weight" for path in found.trained} - {
        "lm_head.weight"
    }


def test_a_pruned_model_is_trained_and_saved_smaller(model_folder: Path, tmp_path: Path, kit) -> None:
    pruning = {"pruning": "structured", "pruning_options": {"heads": 0.5, "mlp": 0.3}}
    asked = request(model_folder, tmp_path / "tuned", recipe="fp32", options={}, mode="targeted", layers=1, **pruning)
    found = finetune(asked, kit.collected())
    assert all(path.startswith("blocks.") for path in found.trained)
    assert len({path.split(".")[1] for path in found.trained}) == 1
    assert found.quantized_before.perplexity != found.original.perplexity
    assert found.quantized_after == found.after
    saved = load_model(str(tmp_path / "tuned")).model
    assert (saved.config.n_head, saved.config.n_kv_head, saved.config.d_ff) == (2, 1, 48)
    both = finetune(request(model_folder, tmp_path / "both", **pruning), kit.collected())
    assert both.quantized_after != both.after, "INT8 after the pruning"


def test_the_same_request_gives_the_same_model(model_folder: Path, tmp_path: Path, kit) -> None:
    for name in ("one", "two"):
        finetune(request(model_folder, tmp_path / name, recipe="fp8-current", options={}), kit.collected())
    one, two = (load_model(str(tmp_path / name)).model.state_dict() for name in ("one", "two"))
    assert all(torch.equal(value, two[name]) for name, value in one.items())


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"recipe": "int9"}, LeverError, "no precision called 'int9'"),
        ({"recipe": "bf16", "options": {}}, LeverError, "bf16 rounds nothing"),
        ({"options": {"granularity": "row"}}, LeverError, "must be one of channel, tensor"),
        ({"context": 65}, RequestError, "reads at most 64"),
        ({"text": "/nowhere/text"}, RequestError, "cannot be read: No such file"),
        ({"text": "/dev/null"}, RequestError, "is no file"),
        ({"model": "preset:tiny"}, RequestError, "no tokenizer"),
    ],
)
def test_impossible_requests_get_a_sentence(
    changes: dict[str, Any], error: type[Exception], message: str, model_folder: Path, tmp_path: Path, kit
) -> None:
    asked = request(**({"model": model_folder, "out": tmp_path / "tuned"} | changes))
    with pytest.raises(error, match=message):
        finetune(asked, kit.collected())
    assert not (tmp_path / "tuned").exists()


def test_a_short_text_and_a_full_folder_are_refused(model_folder: Path, tmp_path: Path, kit) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(bytes(range(256)) * 8)
    with pytest.raises(RequestError, match="no UTF-8 text"):
        finetune(request(model_folder, tmp_path / "tuned", text=str(text)), kit.collected())
    with text.open("wb") as huge:
        huge.truncate(200_000_000)
    with pytest.raises(RequestError, match="has 200 MB, more than the 64 MB"):
        finetune(request(model_folder, tmp_path / "tuned", text=str(text)), kit.collected())
    text.write_text("the old")
    with pytest.raises(RequestError, match=r"has \d+ tokens, but one piece of 16 needs more"):
        finetune(request(model_folder, tmp_path / "tuned", text=str(text)), kit.collected())
    with pytest.raises(ModelError, match="is not empty"):
        finetune(request(model_folder, tmp_path), kit.collected())


def test_a_loss_that_is_no_number_saves_nothing(
    model_folder: Path, tmp_path: Path, kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gptscope.models.compression.tuning.Tuner._loss", lambda _self, _tokens: _nan())
    with pytest.raises(RequestError, match="The loss became nan in step 1, so nothing was saved"):
        finetune(request(model_folder, tmp_path / "tuned"), kit.collected())
    assert list(tmp_path.iterdir()) == []


def _nan() -> torch.Tensor:
    return torch.tensor(float("nan"), requires_grad=True)


@pytest.mark.parametrize(
    "changes", [{"steps": 0}, {"layers": 0}, {"batch": 0}, {"context": 1}, {"lr": 0.0}, {"lr": 2.0}]
)
def test_impossible_numbers_are_refused_before_anything_is_sent(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must be"):
        request("bundled", tmp_path, **changes)


def test_cancel_stops_a_training_within_a_second_and_leaves_nothing(model_folder: Path, tmp_path: Path) -> None:
    with EngineClient() as engine:
        cancelled_s, answer = 0.0, None
        for record, _ in engine.stream(request(model_folder, tmp_path / "tuned", steps=100_000), 60):
            if isinstance(record, Progress) and record.phase == "train" and record.done > 2 and not cancelled_s:
                engine.cancel()
                cancelled_s = time.monotonic()
            answer = record
        assert isinstance(answer, Failure)
        assert answer.kind == "cancelled"
        assert answer.message == f"Cancelled while fine-tuning {model_folder}."
        assert time.monotonic() - cancelled_s < 1.0
        assert list(tmp_path.iterdir()) == []
        again = engine.ask(request(model_folder, tmp_path / "tuned", steps=1), 60)
        assert isinstance(again, FineTuned), again
