"""Which source a typed text means, and what loading costs before the first tensor."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gptscope.models.loaders import ModelError, describe_model, load_model
from gptscope.models.loaders.registry import SOURCES, find_source


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("bundled", "bundled"),
        ("preset:tiny", "preset"),
        ("preset:unknown", "preset"),
        ("smollm2-135m", "catalogue"),
        ("openai-community/gpt2", "hf_hub"),
        ("Qwen/Qwen2.5-0.5B", "hf_hub"),
    ],
)
def test_text_means_one_source(source: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_source(source) is SOURCES[kind]


def test_existing_paths_win_over_hub_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "name").mkdir(parents=True)
    assert find_source("org/name") is SOURCES["hf_folder"]
    (tmp_path / "org" / "model.gguf").touch()
    assert find_source("org/model.gguf") is SOURCES["gguf"]
    (tmp_path / "org" / "name" / "ckpt.pt").touch()
    assert find_source("org/name") is SOURCES["nanogpt"]
    (tmp_path / "org" / "name" / "config.json").touch()
    assert find_source("org/name") is SOURCES["hf_folder"]


def test_home_folder_is_expanded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    assert describe_model("~/little-llama").name == "little-llama"


@pytest.mark.parametrize("source", ["", "gpt3", "./nowhere", "/nowhere/model.gguf", "a/b/c", "nowhere.pt", "org/na me"])
def test_text_that_means_nothing_is_told_what_is_understood(source: str) -> None:
    with pytest.raises(ModelError, match=r"gptscope understands `bundled`, `preset:NAME`, .*org/name"):
        load_model(source)


@pytest.mark.parametrize("name", ["model.safetensors", "weights.bin", "config.json"])
def test_single_file_of_a_folder_is_told_to_give_the_folder(folder: Path, name: str) -> None:
    (folder / name).touch()
    with pytest.raises(ModelError, match="give the folder"):
        load_model(str(folder / name))


def test_loading_imports_neither_transformers_nor_sympy(folder: Path) -> None:
    code = (
        "import json, sys\n"
        "from gptscope.models.loaders import load_model\n"
        f"load_model('preset:tiny'); load_model({str(folder)!r})\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    output = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True).stdout
    loaded = set(json.loads(output))
    assert "torch" in loaded
    assert not loaded & {"transformers", "sympy", "huggingface_hub", "gguf"}
