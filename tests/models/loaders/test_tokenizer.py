"""Tokenizers of model folders."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, processors
from tokenizers import Tokenizer as FastTokenizer
from torch import Tensor

from gptscope.models.loaders import LoadedModel, ModelError, describe_model, load_model


@pytest.fixture
def load_with(folder: Path) -> Callable[[FastTokenizer], LoadedModel]:
    """Save a tokenizer into the folder and load it."""

    def load(tokenizer: FastTokenizer) -> LoadedModel:
        tokenizer.save(str(folder / "tokenizer.json"))
        return load_model(str(folder))

    return load


def copy_of(tokenizer: FastTokenizer) -> FastTokenizer:
    return FastTokenizer.from_str(tokenizer.to_str())


def test_ids_and_texts_are_those_of_the_tokenizer_file(
    load_with: Callable[[FastTokenizer], LoadedModel],
    byte_level_tokenizer: FastTokenizer,
    tricky_texts: tuple[str, ...],
) -> None:
    tokenizer = load_with(byte_level_tokenizer).tokenizer
    assert tokenizer is not None
    for text in tricky_texts:
        ids = tokenizer.encode(text)
        assert ids == byte_level_tokenizer.encode(text).ids
        assert tokenizer.decode(ids) == text
    assert tokenizer.decode([0]) == "<|endoftext|>", "special tokens are spelled out"


def test_truncation_and_padding_stored_in_the_file_are_off(
    load_with: Callable[[FastTokenizer], LoadedModel], byte_level_tokenizer: FastTokenizer
) -> None:
    changed = copy_of(byte_level_tokenizer)
    changed.enable_truncation(max_length=4)
    changed.enable_padding(length=16)
    tokenizer = load_with(changed).tokenizer
    assert tokenizer is not None
    assert tokenizer.encode("a") == byte_level_tokenizer.encode("a").ids
    assert len(tokenizer.encode("one two three four five six seven")) > 4


def test_begin_of_text_is_added_where_the_file_says_so(
    load_with: Callable[[FastTokenizer], LoadedModel], byte_level_tokenizer: FastTokenizer
) -> None:
    changed = copy_of(byte_level_tokenizer)
    changed.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", 1)]
    )
    tokenizer = load_with(changed).tokenizer
    assert tokenizer is not None
    assert tokenizer.encode("hi") == [1, *byte_level_tokenizer.encode("hi").ids]


@pytest.mark.parametrize(
    ("generation", "config", "expected"),
    [(None, 2, (2,)), ({"eos_token_id": [0, 2]}, 5, (0, 2)), ({"eos_token_id": None}, 5, (5,)), (None, None, ())],
)
def test_end_of_text_ids_come_from_the_generation_config_first(
    folder: Path,
    settings: dict[str, Any],
    load_with: Callable[[FastTokenizer], LoadedModel],
    byte_level_tokenizer: FastTokenizer,
    generation: dict[str, Any] | None,
    config: int | None,
    expected: tuple[int, ...],
) -> None:
    (folder / "config.json").write_text(json.dumps({**settings, "eos_token_id": config}))
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation))
    tokenizer = load_with(byte_level_tokenizer).tokenizer
    assert tokenizer is not None
    assert tokenizer.eos_ids == expected


def test_token_without_an_embedding_is_an_error_and_not_a_crash(
    load_with: Callable[[FastTokenizer], LoadedModel], byte_level_tokenizer: FastTokenizer
) -> None:
    changed = copy_of(byte_level_tokenizer)
    changed.add_tokens([AddedToken("<late>")])
    tokenizer = load_with(changed).tokenizer
    assert tokenizer is not None
    assert tokenizer.encode("fine")
    with pytest.raises(ModelError, match="token 320, but the model has embeddings for 320 tokens"):
        tokenizer.encode("see <late>")


@pytest.mark.parametrize("content", ["", "{}", "not json"])
def test_damaged_tokenizer_leaves_the_model_usable_with_a_note(folder: Path, content: str) -> None:
    (folder / "tokenizer.json").write_text(content)
    loaded = load_model(str(folder))
    assert loaded.tokenizer is None
    assert not loaded.description.has_tokenizer
    assert any("tokenizer.json" in note for note in loaded.description.notes)


def test_gpt2_vocabulary_and_merges_are_enough(
    folder: Path,
    settings: dict[str, Any],
    write_folder: Callable[..., dict[str, Tensor]],
    byte_level_tokenizer: FastTokenizer,
    tricky_texts: tuple[str, ...],
) -> None:
    gpt2 = {"model_type": "gpt2", "vocab_size": 320, "n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 32}
    write_folder(folder, gpt2)
    byte_level_tokenizer.model.save(str(folder))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GPT2Tokenizer"}))
    assert describe_model(str(folder)).has_tokenizer
    tokenizer = load_model(str(folder)).tokenizer
    assert tokenizer is not None
    for text in tricky_texts:
        if "<|" not in text:  # which tokens are special is not in those two files
            assert tokenizer.encode(text) == byte_level_tokenizer.encode(text).ids
            assert tokenizer.decode(tokenizer.encode(text)) == text
