"""Models saved as Hugging Face folders: the same weights come back, here and in transformers."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer as FastTokenizer

from gptscope.models.config import PRESETS, GPTConfig, RopeScaling
from gptscope.models.gpt import GPT, init_weights
from gptscope.models.levers import LeverContext, Machine
from gptscope.models.loaders import ModelError, load_model
from gptscope.models.loaders.config_writing import config_fields
from gptscope.models.loaders.families import FAMILIES, find_family, read_config
from gptscope.models.loaders.saving import check_room, check_source, check_target, save_folder
from gptscope.models.loaders.settings import Settings
from gptscope.models.prepare import prepare

COMMON: dict[str, Any] = {"vocab_size": 320, "eos_token_id": 2, "torch_dtype": "bfloat16"}
LLAMA_KIN: dict[str, Any] = {
    **COMMON,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
}
LLAMA_FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
FIELDS: dict[str, dict[str, Any]] = {
    "gpt2": {**COMMON, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "gpt_neox": {
        **COMMON,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 64,
    },
    **dict.fromkeys(LLAMA_FAMILIES, LLAMA_KIN),
}
WriteFolder = Callable[..., dict[str, torch.Tensor]]


@pytest.fixture
def folder_of(tmp_path: Path, write_folder: WriteFolder, byte_level_tokenizer: FastTokenizer) -> Callable[..., Path]:
    def make(family: str, **fields: Any) -> Path:
        path = tmp_path / family
        write_folder(path, {"model_type": family, **FIELDS[family], **fields})
        byte_level_tokenizer.save(str(path / "tokenizer.json"))
        (path / "modeling.py").write_text("raise SystemExit")
        return path

    return make


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_comes_back_as_it_was_saved(family: str, folder_of, tmp_path: Path) -> None:
    source = folder_of(family)
    loaded = load_model(str(source))
    with torch.no_grad():
        for parameter in loaded.model.parameters():
            parameter.add_(0.25)
    save_folder(loaded.model, loaded.tokenizer, str(source), tmp_path / "saved")
    again = load_model(str(tmp_path / "saved"))
    assert again.model.config == loaded.model.config
    expected = loaded.model.state_dict()
    assert all(torch.equal(expected[name], value) for name, value in again.model.state_dict().items())
    assert again.tokenizer is not None
    assert again.tokenizer.encode("It's 12 days") == loaded.tokenizer.encode("It's 12 days")
    assert again.description.weight_format == "F32"
    assert json.loads((tmp_path / "saved" / "config.json").read_text())["torch_dtype"] == "float32"
    assert not (tmp_path / "saved" / "modeling.py").exists()
    assert {path.name for path in tmp_path.iterdir()} == {family, "saved"}, "nothing half-done is left"


@pytest.mark.parametrize(("family", "tied"), [("gpt2", True), ("llama", True), ("llama", False), ("gpt_neox", False)])
def test_transformers_reads_it_and_computes_the_same(family: str, tied: bool, folder_of, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    source = folder_of(family, tie_word_embeddings=tied)
    loaded = load_model(str(source))
    save_folder(loaded.model, loaded.tokenizer, str(source), tmp_path / "saved")
    theirs = AutoModelForCausalLM.from_pretrained(str(tmp_path / "saved"), local_files_only=True).eval()
    assert next(theirs.parameters()).dtype == torch.float32
    tokens = torch.randint(0, 320, (2, 20), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        torch.testing.assert_close(loaded.model(tokens), theirs(tokens).logits, rtol=1e-4, atol=1e-4)


def pruned(model: GPT, name: str, **options: float) -> GPT:
    """The model after a pruning, as runs have it."""
    machine = Machine(device="cpu", device_name="test", cores=1, memory_bytes=1 << 34)
    levers = {"precision": "fp32", "pruning": name, "options": {name: options}}
    context = LeverContext(machine=machine, config=model.config, workload="prefill", **levers)
    return prepare(model, context, torch.device("cpu")).model


@pytest.mark.parametrize(
    ("family", "pruning", "options", "shape"),
    [
        *((family, "structured", {"heads": 0.5, "mlp": 0.5}, (2, 1, 32)) for family in LLAMA_FAMILIES),
        ("gpt2", "structured", {"heads": 0.0, "mlp": 0.5}, (4, 4, 64)),
        ("gpt_neox", "structured", {"heads": 0.0, "mlp": 0.5}, (4, 4, 32)),
        ("llama", "magnitude", {"amount": 0.5}, (4, 2, 48)),
        ("gpt2", "2:4", {}, (4, 4, 128)),
    ],
)
def test_a_pruned_model_comes_back_here_and_in_transformers(
    family: str, pruning: str, options: dict[str, float], shape: tuple[int, int, int], folder_of, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    source = folder_of(family)
    loaded = load_model(str(source))
    model = pruned(loaded.model, pruning, **options)
    save_folder(model, loaded.tokenizer, str(source), tmp_path / "saved")
    again = load_model(str(tmp_path / "saved")).model
    assert (again.config.n_head, again.config.n_kv_head, again.config.d_ff) == shape
    assert again.config == model.config
    theirs = AutoModelForCausalLM.from_pretrained(str(tmp_path / "saved"), local_files_only=True).eval()
    assert theirs.num_parameters() == again.config.parameter_count
    tokens = torch.randint(0, 320, (2, 20), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        assert torch.equal(again(tokens), model(tokens))
        torch.testing.assert_close(again(tokens), theirs(tokens).logits, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("family", ["gpt2", "gpt_neox"])
def test_heads_that_a_config_cannot_count_are_refused(family: str, folder_of, tmp_path: Path) -> None:
    source = folder_of(family)
    loaded = load_model(str(source))
    model = pruned(loaded.model, "structured", heads=0.5, mlp=0.0)
    with pytest.raises(ModelError, match=r"layers of width 32 have 2 heads of 8.*Prune only MLP channels"):
        save_folder(model, loaded.tokenizer, str(source), tmp_path / "saved")
    assert {path.name for path in tmp_path.iterdir()} == {family}


CONFIG = GPTConfig(
    family="llama", vocab_size=320, context_length=64, n_layer=2, d_model=32, n_head=4, n_kv_head=2, d_head=8, d_ff=48,
    rotary_dim=8,
)  # fmt: skip
GPT2 = replace(
    CONFIG, family="gpt2", n_kv_head=4, norm="layernorm", position="learned", rotary_dim=0, mlp="gelu_tanh",
    qkv_bias=True, out_bias=True, mlp_bias=True,
)  # fmt: skip
WRITTEN = {
    "gpt2": GPT2,
    "gelu": replace(GPT2, mlp="gelu", tie_embeddings=False),
    "llama": CONFIG,
    "biases": replace(CONFIG, qkv_bias=True, out_bias=True, mlp_bias=True),
    "linear rope": replace(CONFIG, rope_scaling=RopeScaling(kind="linear", factor=2.0)),
    "llama3 rope": replace(CONFIG, rope_scaling=RopeScaling(kind="llama3", factor=8.0, original_context=32)),
    "mistral": replace(CONFIG, family="mistral", sliding_window=16, tie_embeddings=False),
    "mistral without window": replace(CONFIG, family="mistral"),
    "qwen2": replace(CONFIG, family="qwen2", qkv_bias=True),
    "qwen3": replace(CONFIG, family="qwen3", qk_norm=True, d_head=16, rotary_dim=16),
    "qwen3 with window": replace(CONFIG, family="qwen3", qk_norm=True, sliding_window=16),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_written_config_says_the_same(name: str) -> None:
    fields = config_fields(WRITTEN[name], (2,))
    settings = Settings(Path("config.json"), json.loads(json.dumps(fields)))
    assert read_config(find_family(settings), settings) == WRITTEN[name]


@pytest.mark.parametrize("name", ["gpt2", "llama", "llama3 rope", "mistral", "qwen2", "qwen3"])
def test_models_of_single_files_are_saved_with_config_and_tokenizer(
    name: str, tmp_path: Path, byte_level_tokenizer: FastTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from gptscope.models.loaders import saving
    from gptscope.models.loaders.tokenizer import wrap_fast

    monkeypatch.setattr(saving, "_origin", lambda _source: None)
    model = GPT(WRITTEN[name]).eval()
    init_weights(model, 3)
    tokenizer = wrap_fast(byte_level_tokenizer, (2,), 320)
    save_folder(model, tokenizer, "model.gguf", tmp_path / "saved")
    again = load_model(str(tmp_path / "saved"))
    assert again.model.config == model.config
    assert again.tokenizer is not None
    assert again.tokenizer.eos_ids == (2,)
    theirs = AutoModelForCausalLM.from_pretrained(str(tmp_path / "saved"), local_files_only=True).eval()
    tokens = torch.randint(0, 320, (2, 40), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        torch.testing.assert_close(again.model(tokens), theirs(tokens).logits, rtol=1e-4, atol=1e-4)
    read = AutoTokenizer.from_pretrained(str(tmp_path / "saved"), local_files_only=True)
    assert read.encode("the old man") == tokenizer.encode("the old man")


def test_targets_that_hold_something_are_refused(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    for target, message in (("full", "is not empty"), ("full/x", "is a file"), ("none/new", "does not exist")):
        with pytest.raises(ModelError, match=message):
            check_target(tmp_path / target)
    (tmp_path / "empty").mkdir()
    check_target(tmp_path / "empty")
    check_target(tmp_path / "new")


def test_a_failure_leaves_nothing_behind(folder_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: Any, **_options: Any) -> None:
        raise OSError(28, "No space left on device")

    source = folder_of("llama")
    loaded = load_model(str(source))
    monkeypatch.setattr("gptscope.models.loaders.saving.save_file", full)
    with pytest.raises(OSError, match="No space"):
        save_folder(loaded.model, loaded.tokenizer, str(source), tmp_path / "saved")
    assert {path.name for path in tmp_path.iterdir()} == {"llama"}


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_to_an_empty_folder_is_kept_and_the_folder_filled(folder_of, tmp_path: Path) -> None:
    source = folder_of("llama")
    loaded = load_model(str(source))
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    save_folder(loaded.model, loaded.tokenizer, str(source), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "empty" / "model.safetensors").is_file()


def test_families_without_a_written_config_are_refused_early(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="gpt_neox model that does not come from a Hugging Face folder"):
        config_fields(replace(GPT2, family="gpt_neox"), ())
    check_source("bundled")
    check_source("preset:tiny")


def test_a_place_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be made: File name too long"):
        check_target(tmp_path / ("x" * 300))
    check_target(tmp_path / "new")
    assert list(tmp_path.iterdir()) == [], "looking leaves nothing behind"


def test_a_disk_without_room_for_the_weights_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = PRESETS["gpt2-124m"]
    check_room(tmp_path / "new", config)
    monkeypatch.setattr("shutil.disk_usage", lambda _folder: SimpleNamespace(free=config.parameter_count * 4 - 1))
    with pytest.raises(ModelError, match=r"takes 0\.50 GB, but the disk of .*new has only 0\.50 GB free"):
        check_room(tmp_path / "new", config)
