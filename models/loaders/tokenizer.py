"""Tokenizers: the `tokenizers` library around a `tokenizer.json`, without importing transformers (seconds)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as FastTokenizer

from gptscope.models.loaders.base import ModelError, Tokenizer
from gptscope.models.loaders.files import check_weight_file
from gptscope.models.loaders.settings import read_json

SLOW_FILES = ("tokenizer.model", "vocab.json", "spiece.model")
"""Files from which transformers can build a tokenizer when there is no `tokenizer.json`."""


class WrappedTokenizer:
    """A tokenizer and the vocabulary size of the model it feeds."""

    def __init__(
        self,
        encode: Callable[[str], list[int]],
        decode: Callable[[list[int]], str],
        eos_ids: tuple[int, ...],
        vocab_size: int,
        fast: FastTokenizer | None = None,
    ) -> None:
        self._encode = encode
        self._decode = decode
        self._eos_ids = eos_ids
        self._vocab_size = vocab_size
        self.fast = fast
        """What can be saved as a `tokenizer.json`; None for a slow tokenizer."""

    @property
    def eos_ids(self) -> tuple[int, ...]:
        return self._eos_ids

    def encode(self, text: str) -> list[int]:
        ids = self._encode(text)
        if ids and max(ids) >= self._vocab_size:
            raise ModelError(
                f"the text needs token {max(ids)}, but the model has embeddings for {self._vocab_size} tokens only: "
                "the tokenizer does not belong to this model, or the text holds a special token added later."
            )
        return ids

    def decode(self, ids: list[int]) -> str:
        return self._decode(ids)


def wrap_fast(fast: FastTokenizer, eos_ids: tuple[int, ...], vocab_size: int) -> Tokenizer:
    """Our interface around a `tokenizers.Tokenizer`, with truncation and padding off."""
    fast.no_truncation()
    fast.no_padding()

    def encode(text: str) -> list[int]:
        return list(fast.encode(text).ids)

    def decode(ids: list[int]) -> str:
        return str(fast.decode(ids, skip_special_tokens=False))

    return WrappedTokenizer(encode, decode, eos_ids, vocab_size, fast)


def has_tokenizer(folder: Path) -> bool:
    """Whether a model folder has tokenizer files."""
    return any((folder / name).is_file() for name in ("tokenizer.json", *SLOW_FILES))


def load_folder_tokenizer(folder: Path, vocab_size: int) -> tuple[Tokenizer | None, tuple[str, ...]]:
    """The tokenizer of a model folder, or None with a note on why there is none."""
    fast_file = folder / "tokenizer.json"
    try:
        if fast_file.is_file():
            return wrap_fast(read_fast(fast_file), folder_eos_ids(folder), vocab_size), ()
        if has_tokenizer(folder):
            return _from_transformers(folder, vocab_size), ()
    except ModelError as error:
        return None, (f"No tokenizer: {error}",)
    return None, (f"No tokenizer: {folder} has neither tokenizer.json nor another tokenizer file.",)


def read_fast(path: Path) -> FastTokenizer:
    """Read a `tokenizer.json`.

    Raises:
        ModelError: It is damaged.
    """
    check_weight_file(path)
    try:
        return FastTokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ModelError(f"{path} is not a valid tokenizer file ({error}).") from error


def folder_eos_ids(folder: Path) -> tuple[int, ...]:
    """Ids that end a text, from `generation_config.json`, else from `config.json`."""
    for name in ("generation_config.json", "config.json"):
        path = folder / name
        if path.is_file():
            ids = as_ids(read_json(path).get("eos_token_id"))
            if ids:
                return ids
    return ()


def as_ids(value: Any) -> tuple[int, ...]:
    """One id or a list of them, as configs write it."""
    listed = value if isinstance(value, list) else [value]
    return tuple(each for each in listed if isinstance(each, int) and not isinstance(each, bool))


def _from_transformers(folder: Path, vocab_size: int) -> Tokenizer:
    """Convert a slow tokenizer's files. Code in the folder is never run."""
    from transformers import AutoTokenizer

    try:
        slow = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    except Exception as error:  # transformers raises many kinds
        raise ModelError(f"the tokenizer files in {folder} cannot be used ({_short(error)}).") from error

    def encode(text: str) -> list[int]:
        return [int(each) for each in slow.encode(text)]

    def decode(ids: list[int]) -> str:
        return str(slow.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    return WrappedTokenizer(encode, decode, folder_eos_ids(folder) or as_ids(slow.eos_token_id), vocab_size)


def _short(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".")
