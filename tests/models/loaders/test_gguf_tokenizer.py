"""Tokenizers rebuilt from GGUF metadata give the ids of the tokenizers they were made from."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as FastTokenizer

from gptscope.models.loaders import ModelError
from gptscope.models.loaders.gguf_file import GgufHeader
from gptscope.models.loaders.gguf_tokenizer import build, can_build, load_gguf_tokenizer

# The splitting rules as they stand in the models' own tokenizer.json at Hugging Face.
LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)
QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def by_regex(pattern: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


ORIGINALS: dict[str, pre_tokenizers.PreTokenizer] = {
    "gpt-2": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "smollm": pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    ),
    "llama-bpe": by_regex(LLAMA3_SPLIT),
    "qwen2": by_regex(QWEN2_SPLIT),
}


def metadata_of(tokenizer: FastTokenizer, pre: str, special: int) -> dict[str, Any]:
    model = json.loads(tokenizer.to_str())["model"]
    vocab: dict[str, int] = model["vocab"]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": sorted(vocab, key=lambda token: vocab[token]),
        "tokenizer.ggml.token_type": [3] * special + [1] * (len(vocab) - special),
        "tokenizer.ggml.merges": [" ".join(pair) for pair in model["merges"]],
    }


@pytest.mark.parametrize("pre", ORIGINALS)
def test_byte_level_kinds_split_text_like_their_originals(pre: str, tricky_texts: tuple[str, ...]) -> None:
    original = FastTokenizer(models.BPE(ignore_merges=pre == "llama-bpe"))
    if pre == "qwen2":
        original.normalizer = normalizers.NFC()
    original.pre_tokenizer = ORIGINALS[pre]
    original.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    original.train_from_iterator([*tricky_texts, "2024 10000 333 4444 I'M THEY'RE we'LL\r\n\r\n  x"] * 2, trainer)
    rebuilt, notes = build(metadata_of(original, pre, special=3))
    assert not notes
    for text in tricky_texts:
        assert rebuilt.encode(text).ids == original.encode(text).ids, text
        assert rebuilt.decode(original.encode(text).ids, skip_special_tokens=False) == original.decode(
            original.encode(text).ids, skip_special_tokens=False
        )


def test_smollm_splits_digits_one_by_one(byte_level_tokenizer: FastTokenizer) -> None:
    metadata = metadata_of(byte_level_tokenizer, "smollm", special=3)
    assert build(metadata)[0].encode("123").tokens == ["1", "2", "3"]


@pytest.mark.parametrize(("pre", "whole"), [("gpt-2", False), ("llama-bpe", True)])
def test_llama3_takes_a_piece_that_is_a_token_whole(byte_level_tokenizer: FastTokenizer, pre: str, whole: bool) -> None:
    metadata = metadata_of(byte_level_tokenizer, pre, special=3)
    metadata["tokenizer.ggml.tokens"] += ["zqx"]  # no merges lead there
    metadata["tokenizer.ggml.token_type"] += [1]
    assert (build(metadata)[0].encode("zqx").ids == [320]) == whole


def test_sentencepiece_kind_matches_llama(tricky_texts: tuple[str, ...]) -> None:
    original = llama_like_tokenizer(tricky_texts)
    model = json.loads(original.to_str())["model"]
    tokens = sorted(model["vocab"], key=lambda token: model["vocab"][token])
    rank = {left + right: index for index, (left, right) in reversed(list(enumerate(model["merges"])))}
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [-float(rank.get(token, len(tokens))) for token in tokens],
        "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * (len(tokens) - 259),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }
    rebuilt, _ = build(metadata)
    for text in tricky_texts:
        ids = original.encode(text).ids
        assert ids[0] == 1
        assert rebuilt.encode(text).ids == ids, text
        assert rebuilt.decode(ids[1:], skip_special_tokens=False) == text


def llama_like_tokenizer(texts: tuple[str, ...]) -> FastTokenizer:
    """A tokenizer of the make of Llama 2's tokenizer.json: BPE over whole text with bytes for what is unknown."""
    trained = FastTokenizer(models.BPE())
    trained.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=special, show_progress=False, limit_alphabet=60, max_token_length=8
    )
    trained.train_from_iterator(texts, trainer)
    model = json.loads(trained.to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    original = FastTokenizer(models.BPE(model["vocab"], merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    original.add_special_tokens(["<unk>", "<s>", "</s>"])
    original.normalizer = trained.normalizer
    original.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    original.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return original


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 1}, [1]),
        ({"tokenizer.ggml.pre": "llama-bpe", "tokenizer.ggml.bos_token_id": 1}, [1]),
        (
            {
                "tokenizer.ggml.pre": "llama-bpe",
                "tokenizer.ggml.bos_token_id": 1,
                "tokenizer.ggml.add_bos_token": False,
            },
            [],
        ),
    ],
)
def test_begin_of_text_follows_the_metadata(
    byte_level_tokenizer: FastTokenizer, change: dict[str, Any], expected: list[int]
) -> None:
    metadata = {**metadata_of(byte_level_tokenizer, "gpt-2", special=3), **change}
    assert build(metadata)[0].encode("").ids == expected


def test_user_defined_tokens_stay_whole(byte_level_tokenizer: FastTokenizer) -> None:
    metadata = metadata_of(byte_level_tokenizer, "gpt-2", special=3)
    metadata["tokenizer.ggml.tokens"] += ["<think>"]
    metadata["tokenizer.ggml.token_type"] += [4]
    assert build(metadata)[0].encode("a<think>b").ids[1] == 320


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokenizer.ggml.pre": "some-new-rule"}, "some-new-rule"),
        ({"tokenizer.ggml.model": "bert"}, "bert"),
        ({"tokenizer.ggml.tokens": []}, "no vocabulary"),
        ({"tokenizer.ggml.merges": None}, "no merges"),
        ({"tokenizer.ggml.model": "llama"}, "no score"),
    ],
)
def test_kind_that_we_lack_gives_no_tokenizer_and_a_note(
    byte_level_tokenizer: FastTokenizer, change: dict[str, Any], message: str
) -> None:
    metadata = {**metadata_of(byte_level_tokenizer, "gpt-2", special=3), **change}
    with pytest.raises(ModelError, match=message):
        build(metadata)
    tokenizer, notes = load_gguf_tokenizer(GgufHeader(Path("x.gguf"), metadata, {}), 320)
    assert tokenizer is None
    assert message in notes[0]


def test_unusable_vocabulary_gives_a_note_and_not_a_crash(byte_level_tokenizer: FastTokenizer) -> None:
    metadata = metadata_of(byte_level_tokenizer, "gpt-2", special=3)
    metadata["tokenizer.ggml.merges"] = ["no such"]
    tokenizer, notes = load_gguf_tokenizer(GgufHeader(Path("x.gguf"), metadata, {}), 320)
    assert tokenizer is None
    assert "cannot be used" in notes[0]


def test_missing_splitting_rule_is_assumed_and_said(byte_level_tokenizer: FastTokenizer) -> None:
    metadata = metadata_of(byte_level_tokenizer, "gpt-2", special=3)
    del metadata["tokenizer.ggml.pre"]
    assert can_build(metadata)
    assert "assumed" in build(metadata)[1][0]


def test_end_of_text_ids_are_those_of_text_and_turn(byte_level_tokenizer: FastTokenizer) -> None:
    metadata = metadata_of(byte_level_tokenizer, "gpt-2", special=3)
    metadata |= {"tokenizer.ggml.eos_token_id": 0, "tokenizer.ggml.eot_token_id": 2}
    tokenizer, _ = load_gguf_tokenizer(GgufHeader(Path("x.gguf"), metadata, {}), 320)
    assert tokenizer is not None
    assert tokenizer.eos_ids == (0, 2)
