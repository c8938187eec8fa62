"""The bundled model loads like any other, from what is installed."""

from pathlib import Path

import torch
from tokenizers import Tokenizer as FastTokenizer

from gptscope.models.loaders import describe_model, fetch_model, load_model
from gptscope.models.loaders.bundled import FOLDER


def test_description_and_loaded_model_agree() -> None:
    description, loaded = describe_model("bundled"), load_model("bundled")
    assert loaded.description == description
    assert (description.name, description.source) == ("bundled", "bundled")
    assert not description.random_weights
    assert description.has_tokenizer
    assert description.notes == ()
    assert 0 < description.weight_file_bytes < 25_000_000
    assert sum(parameter.numel() for parameter in loaded.model.parameters()) == description.config.parameter_count


def test_it_knows_english(tmp_path: Path) -> None:
    loaded = load_model("bundled")
    assert loaded.tokenizer is not None
    ids = loaded.tokenizer.encode("And it came to pass in those")
    with torch.no_grad():
        following = loaded.model(torch.tensor([ids]))[0, -1].argmax().item()
    assert loaded.tokenizer.decode([int(following)]) == " days"


def test_its_tokenizer_file_is_used_as_it_is() -> None:
    loaded = load_model("bundled")
    assert loaded.tokenizer is not None
    original = FastTokenizer.from_file(str(FOLDER / "tokenizer.json"))
    text = "Call me Ishmael; it's 1851 — “whale”\n\n\tnaïve 🙂"
    assert loaded.tokenizer.encode(text) == original.encode(text).ids
    assert loaded.tokenizer.decode(loaded.tokenizer.encode(text)) == text
    (end,) = loaded.tokenizer.eos_ids
    assert original.id_to_token(end) == "<|endoftext|>"


def test_it_is_always_here() -> None:
    assert fetch_model("bundled") == FOLDER
