"""Builds a `tokenizers.Tokenizer` from a GGUF file's metadata.

Follows llama.cpp's `llama-vocab.cpp` (which kind splits text how) and the `tokenizer.json` files that the same models
have at Hugging Face.
"""

from collections.abc import Mapping
from typing import Any

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as FastTokenizer

from gptscope.models.loaders.base import ModelError, Tokenizer
from gptscope.models.loaders.gguf_file import GgufHeader
from gptscope.models.loaders.tokenizer import as_ids, wrap_fast

_CONTROL, _USER_DEFINED = 3, 4
"""Token types: special tokens, and words added to the vocabulary later. Both are matched whole in the text."""

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

_GPT2_KINDS = frozenset({"gpt-2", "gpt2", "mpt", "olmo", "jais", "trillion", "phi-2"})
_DIGIT_KINDS = frozenset({"smollm", "starcoder", "refact", "command-r", "codeshell"})
_REGEX_KINDS: dict[str, str] = {
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "smaug-bpe": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
    "tekken": _TEKKEN,
}
_WHOLE_WORDS_FIRST = frozenset({"llama-bpe", "llama3", "llama-v3", "smaug-bpe", "tekken"})
"""Kinds where a piece that is itself a token is taken whole, merges or not."""
_COMPOSED = frozenset({"qwen2", "deepseek-r1-qwen", "olmo"})
"""Kinds whose original tokenizer first composes characters (Unicode NFC)."""


def load_gguf_tokenizer(header: GgufHeader, vocab_size: int) -> tuple[Tokenizer | None, tuple[str, ...]]:
    """The file's tokenizer, or None with a note on why there is none."""
    metadata = header.metadata
    try:
        fast, notes = build(metadata)
    except ModelError as error:
        return None, (f"No tokenizer: {error}",)
    except Exception as error:  # noqa: BLE001 - the tokenizers library raises bare Exception for a bad vocabulary
        return None, (f"No tokenizer: the vocabulary in {header.path} cannot be used ({error}).",)
    ids = (metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot"))
    eos_ids = tuple(dict.fromkeys(each for value in ids for each in as_ids(value)))
    return wrap_fast(fast, eos_ids, vocab_size), notes


def can_build(metadata: Mapping[str, Any]) -> bool:
    """Whether `build` knows this kind of tokenizer."""
    kind = metadata.get("tokenizer.ggml.model")
    return bool(metadata.get("tokenizer.ggml.tokens")) and (
        kind == "llama" or (kind == "gpt2" and _knows_pre_tokenizer(_pre_tokenizer_name(metadata)))
    )


def build(metadata: Mapping[str, Any]) -> tuple[FastTokenizer, tuple[str, ...]]:
    """Build the tokenizer that metadata describes.

    Raises:
        ModelError: There is none, or one of a kind that we lack.
    """
    kind = metadata.get("tokenizer.ggml.model")
    tokens = metadata.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, list) or not tokens:
        raise ModelError("the file has no vocabulary.")
    notes: tuple[str, ...] = ()
    if kind == "gpt2":
        fast = _byte_level(metadata, tokens)
        if "tokenizer.ggml.pre" not in metadata:
            notes = ("the file does not say how its tokenizer splits text; GPT-2's rule is assumed.",)
    elif kind == "llama":
        fast = _sentencepiece(metadata, tokens)
    else:
        raise ModelError(f"the file's tokenizer is of the kind {kind!r}; gptscope builds gpt2 and llama ones.")
    _add_special(fast, metadata, tokens)
    _add_begin_and_end(fast, metadata, tokens)
    return fast, notes


def _pre_tokenizer_name(metadata: Mapping[str, Any]) -> str:
    return str(metadata.get("tokenizer.ggml.pre", "gpt-2"))


def _knows_pre_tokenizer(name: str) -> bool:
    return name in _GPT2_KINDS or name in _DIGIT_KINDS or name in _REGEX_KINDS


def _byte_level(metadata: Mapping[str, Any], tokens: list[str]) -> FastTokenizer:
    name = _pre_tokenizer_name(metadata)
    if not _knows_pre_tokenizer(name):
        raise ModelError(f"the file's tokenizer splits text by the rule {name!r}, which gptscope does not know.")
    merges = metadata.get("tokenizer.ggml.merges")
    if not isinstance(merges, list):
        raise ModelError("the file has a byte-level vocabulary but no merges.")
    pairs = []
    for merge in merges:
        left, _, right = merge.partition(" ")
        pairs.append((left, right))
    vocab = {token: index for index, token in enumerate(tokens)}
    fast = FastTokenizer(models.BPE(vocab=vocab, merges=pairs, ignore_merges=name in _WHOLE_WORDS_FIRST))
    if name in _COMPOSED:
        fast.normalizer = normalizers.NFC()
    fast.pre_tokenizer = _pre_tokenizer(name)
    fast.decoder = decoders.ByteLevel()
    return fast


def _pre_tokenizer(name: str) -> pre_tokenizers.PreTokenizer:
    if name in _REGEX_KINDS:
        return pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(_REGEX_KINDS[name]), behavior="isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    by_word = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if name in _DIGIT_KINDS:
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), by_word])
    return by_word


def _sentencepiece(metadata: Mapping[str, Any], tokens: list[str]) -> FastTokenizer:
    """Llama's sentencepiece kind: BPE by scores, unknown characters as bytes."""
    scores = metadata.get("tokenizer.ggml.scores")
    if not isinstance(scores, list) or len(scores) != len(tokens):
        raise ModelError("the file's sentencepiece vocabulary has no score for each token.")
    vocab = {token: index for index, token in enumerate(tokens)}
    unknown = metadata.get("tokenizer.ggml.unknown_token_id", 0)
    model = models.BPE(
        vocab=vocab,
        merges=merges_from_scores(vocab, scores),
        unk_token=tokens[unknown],
        fuse_unk=True,
        byte_fallback=True,
    )
    fast = FastTokenizer(model)
    steps: list[normalizers.Normalizer] = [normalizers.Replace(" ", "▁")]
    undo: list[decoders.Decoder] = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if metadata.get("tokenizer.ggml.add_space_prefix", True):
        steps.insert(0, normalizers.Prepend("▁"))
        undo.append(decoders.Strip(content=" ", left=1, right=0))
    fast.normalizer = normalizers.Sequence(steps)
    fast.decoder = decoders.Sequence(undo)
    return fast


def merges_from_scores(vocab: Mapping[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """All pairs of tokens that make a token, the highest scored result first (as sentencepiece merges)."""
    found = []
    for token, index in vocab.items():
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in vocab and right in vocab:
                found.append((-scores[index], vocab[left], vocab[right], left, right))
    found.sort()
    return [(left, right) for *_, left, right in found]


def _add_special(fast: FastTokenizer, metadata: Mapping[str, Any], tokens: list[str]) -> None:
    kinds = metadata.get("tokenizer.ggml.token_type")
    if not isinstance(kinds, list):
        return
    pairs = list(zip(tokens, kinds, strict=False))
    fast.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token, kind in pairs if kind == _CONTROL]
    )
    fast.add_tokens(
        [AddedToken(token, normalized=False, special=False) for token, kind in pairs if kind == _USER_DEFINED]
    )


def _add_begin_and_end(fast: FastTokenizer, metadata: Mapping[str, Any], tokens: list[str]) -> None:
    """Begin- and end-of-text tokens around every text, where the model was trained with them."""
    sentencepiece = metadata.get("tokenizer.ggml.model") == "llama"
    begins = sentencepiece or _pre_tokenizer_name(metadata) in ("llama-bpe", "llama3", "llama-v3")
    template, special = ["$A"], []
    for name, default, position in (("bos", begins, 0), ("eos", False, 1)):
        index = metadata.get(f"tokenizer.ggml.{name}_token_id")
        if metadata.get(f"tokenizer.ggml.add_{name}_token", default) and isinstance(index, int):
            token = tokens[index]
            template.insert(position * len(template), token)
            special.append((token, index))
    if special:
        fast.post_processor = processors.TemplateProcessing(single=" ".join(template), special_tokens=special)
