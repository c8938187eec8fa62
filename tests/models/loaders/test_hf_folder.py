"""Hugging Face folders: what loads, and what each kind of damage says."""

import json
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from gptscope.models.loaders import ModelError, describe_model, load_model

WriteFolder = Callable[..., dict[str, Tensor]]


def test_description_tells_what_the_config_and_files_say(folder: Path) -> None:
    description = describe_model(str(folder))
    assert (description.name, description.source) == ("little-llama", "hf_folder")
    assert (description.config.family, description.config.n_layer, description.config.n_kv_head) == ("llama", 2, 2)
    assert description.weight_file_bytes == (folder / "model.safetensors").stat().st_size
    assert description.weight_format == "F32"
    assert not description.random_weights
    assert not description.has_tokenizer


def test_describing_reads_headers_only(folder: Path, settings: dict[str, Any]) -> None:
    # A sparse file of 64 GB: whoever reads the weights needs minutes and fails.
    rows = 2**29
    header = json.dumps({"model.norm.weight": {"dtype": "F32", "shape": [rows, 32], "data_offsets": [0, rows * 128]}})
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode())
        file.truncate(8 + len(header) + rows * 128)
    assert describe_model(str(folder)).weight_file_bytes == 8 + len(header) + rows * 128
    # ... and a wrong shape is found before memory is taken.
    with pytest.raises(ModelError, match="missing"):
        load_model(str(folder))


def test_loaded_weights_are_the_stored_ones(folder: Path, settings: dict[str, Any], write_folder: WriteFolder) -> None:
    tensors = write_folder(folder, settings)
    model = load_model(str(folder)).model
    assert torch.equal(model.embed.weight, tensors["model.embed_tokens.weight"])
    assert torch.equal(model.lm_head.weight, tensors["lm_head.weight"])
    assert torch.equal(
        model.get_parameter("blocks.1.attn.qkv.k.weight"), tensors["model.layers.1.self_attn.k_proj.weight"]
    )
    assert not model.training
    assert all(parameter.data_ptr() % 64 == 0 for parameter in model.parameters())


def test_progress_counts_the_tensors(folder: Path) -> None:
    seen: list[tuple[float, float, str]] = []
    load_model(str(folder), progress=lambda done, total, unit, note: seen.append((done, total, unit)))
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    assert seen[-1] == (21.0, 21.0, "tensors")


def test_loading_leaves_the_number_of_threads_as_it_was(folder: Path) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        load_model(str(folder))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_bin_weights_load_like_safetensors(folder: Path, settings: dict[str, Any], write_folder: WriteFolder) -> None:
    tensors = write_folder(folder, settings)
    expected = load_model(str(folder)).model.state_dict()
    (folder / "model.safetensors").unlink()
    for legacy in (False, True):
        torch.save(tensors, folder / "pytorch_model.bin", _use_new_zipfile_serialization=not legacy)
        found = load_model(str(folder))
        assert found.description.weight_format == "F32"
        # The model must not look into the file any more, which is mapped while it is read.
        with (folder / "pytorch_model.bin").open("r+b") as file:
            file.write(bytes((folder / "pytorch_model.bin").stat().st_size))
        assert all(torch.equal(expected[name], value) for name, value in found.model.state_dict().items())


def test_sharded_bin_weights_load(folder: Path, settings: dict[str, Any], write_folder: WriteFolder) -> None:
    tensors = write_folder(folder, settings)
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    index = {}
    for shard, part in enumerate((names[:8], names[8:])):
        torch.save({name: tensors[name] for name in part}, folder / f"pytorch_model-{shard}.bin")
        index |= dict.fromkeys(part, f"pytorch_model-{shard}.bin")
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": index}))
    assert torch.equal(load_model(str(folder)).model.embed.weight, tensors["model.embed_tokens.weight"])


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.marker}",)


@pytest.mark.parametrize("zipped", [True, False])
def test_pickle_that_wants_to_run_code_is_refused_and_not_run(folder: Path, tmp_path: Path, zipped: bool) -> None:
    (folder / "model.safetensors").unlink()
    marker = tmp_path / "code-was-run"
    content = {"model.norm.weight": torch.ones(2), "x": Evil(marker)}
    if zipped:
        torch.save(content, folder / "pytorch_model.bin")
    else:
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"x": Evil(marker)}, protocol=2))
    with pytest.raises(ModelError, match=r"pytorch_model\.bin contains Python code.*posix\.system.*refused"):
        load_model(str(folder))
    assert not marker.exists()


def test_code_inside_the_folder_is_never_run(folder: Path, settings: dict[str, Any], tmp_path: Path) -> None:
    marker = tmp_path / "code-was-run"
    code = f"import pathlib\npathlib.Path({str(marker)!r}).touch()\n"
    for name in ("modeling_evil.py", "tokenization_evil.py", "configuration_evil.py", "setup.py", "__init__.py"):
        (folder / name).write_text(code)
    auto_map = {"AutoConfig": "configuration_evil.C", "AutoModelForCausalLM": "modeling_evil.M"}
    (folder / "config.json").write_text(json.dumps({**settings, "auto_map": auto_map}))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"auto_map": {"AutoTokenizer": ["tokenization_evil.T", None]}, "tokenizer_class": "T"})
    )
    (folder / "vocab.json").write_text("{}")  # makes the loader ask transformers
    loaded = load_model(str(folder))
    assert loaded.tokenizer is None
    assert "No tokenizer" in loaded.description.notes[0]
    assert not marker.exists()


def test_missing_folder_config_or_weights_each_have_their_sentence(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no file or folder"):
        load_model(str(tmp_path / "nowhere"))
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"has a config\.json but no weights"):
        describe_model(str(folder))
    (folder / "config.json").unlink()
    with pytest.raises(ModelError, match=r"has no config\.json"):
        describe_model(str(folder))
    (folder / "some.gguf").touch()
    with pytest.raises(ModelError, match=r"the GGUF file some\.gguf: give the path of that file"):
        describe_model(str(folder))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        (b"<!DOCTYPE html><html>404</html>", "web page"),
        (b"\x00" * 7, "not a whole safetensors file"),
        (b"GGUF" + b"\x00" * 400, "not a whole safetensors file"),
        (struct.pack("<Q", 2**60) + b"{" * 64, "not a whole safetensors file"),
        (struct.pack("<Q", 64) + b"{" * 64, "not a whole safetensors file"),
    ],
)
def test_damaged_or_foreign_weight_file_is_named(folder: Path, content: bytes, message: str) -> None:
    (folder / "model.safetensors").write_bytes(content)
    for action in (describe_model, load_model):
        with pytest.raises(ModelError, match=message) as caught:
            action(str(folder))
        assert "model.safetensors" in str(caught.value)


def test_weight_file_cut_anywhere_is_refused(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    for keep in (*range(1, 200, 13), len(whole) // 2, len(whole) - 1):
        (folder / "model.safetensors").write_bytes(whole[:keep])
        with pytest.raises(ModelError, match="not a whole safetensors file"):
            load_model(str(folder))


@pytest.mark.parametrize("keep", [1, 100, 0.5, 0.95])
def test_bin_file_cut_anywhere_is_refused(
    folder: Path, settings: dict[str, Any], write_folder: WriteFolder, keep: float
) -> None:
    tensors = write_folder(folder, settings)
    (folder / "model.safetensors").unlink()
    path = folder / "pytorch_model.bin"
    torch.save(tensors, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep if keep >= 1 else keep * len(whole))])
    with pytest.raises(ModelError, match=r"pytorch_model\.bin"):
        load_model(str(folder))


def test_missing_tensor_is_named(folder: Path, settings: dict[str, Any], write_folder: WriteFolder) -> None:
    tensors = write_folder(folder, settings)
    del tensors["model.layers.1.mlp.up_proj.weight"]
    write_folder(folder, settings, tensors)
    with pytest.raises(ModelError, match=r"model\.layers\.1\.mlp\.up_proj\.weight is missing"):
        load_model(str(folder))


def test_tensor_of_wrong_shape_is_named_with_both_shapes(
    folder: Path, settings: dict[str, Any], write_folder: WriteFolder
) -> None:
    tensors = write_folder(folder, settings)
    tensors["model.layers.0.self_attn.k_proj.weight"] = torch.zeros(8, 32)
    write_folder(folder, settings, tensors)
    with pytest.raises(ModelError) as caught:
        load_model(str(folder))
    message = str(caught.value)
    assert "model.layers.0.self_attn.k_proj.weight" in message
    assert "[8, 32]" in message
    assert "[16, 32]" in message
    assert "model.safetensors" in message


def test_tensor_of_a_type_that_is_no_weight_is_named(
    folder: Path, settings: dict[str, Any], write_folder: WriteFolder
) -> None:
    tensors = write_folder(folder, settings)
    tensors["model.norm.weight"] = torch.ones(32, dtype=torch.int8)
    write_folder(folder, settings, tensors)
    with pytest.raises(ModelError, match=r"model\.norm\.weight is stored as I8"):
        load_model(str(folder))


def test_extra_tensors_are_noted_and_known_tables_are_not(
    folder: Path, settings: dict[str, Any], write_folder: WriteFolder
) -> None:
    tensors = write_folder(folder, settings)
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(4)
    write_folder(folder, settings, tensors)
    assert not [note for note in load_model(str(folder)).description.notes if "not used" in note]
    tensors["model.layers.0.self_attn.q_proj.bias"] = torch.ones(32)
    write_folder(folder, settings, tensors)
    (note,) = [note for note in load_model(str(folder)).description.notes if "not used" in note]
    assert "model.layers.0.self_attn.q_proj.bias" in note


def test_weights_saved_without_the_model_prefix_load(
    folder: Path, settings: dict[str, Any], write_folder: WriteFolder
) -> None:
    tensors = write_folder(folder, settings)
    write_folder(folder, settings, {name.removeprefix("model."): tensor for name, tensor in tensors.items()})
    assert torch.equal(load_model(str(folder)).model.embed.weight, tensors["model.embed_tokens.weight"])


@pytest.mark.parametrize("shard", ["../other/model.safetensors", "/etc/passwd", "a\\b.safetensors", "model.bin"])
def test_index_that_names_files_outside_the_folder_is_refused(folder: Path, shard: str) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"lm_head.weight": shard}}))
    with pytest.raises(ModelError, match="refused"):
        load_model(str(folder))


def test_missing_shard_is_named(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"lm_head.weight": "model-1.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    for action in (describe_model, load_model):
        with pytest.raises(ModelError, match=r"model-1\.safetensors"):
            action(str(folder))


def test_16_bit_files_keep_their_values(folder: Path, settings: dict[str, Any], write_folder: WriteFolder) -> None:
    tensors = {name: tensor.bfloat16() for name, tensor in write_folder(folder, settings).items()}
    save_file(tensors, str(folder / "model.safetensors"))
    wide, narrow = load_model(str(folder)), load_model(str(folder), dtype=torch.bfloat16)
    assert wide.description.weight_format == "BF16"
    assert torch.equal(wide.model.embed.weight, tensors["model.embed_tokens.weight"].float())
    assert torch.equal(narrow.model.embed.weight, tensors["model.embed_tokens.weight"])
