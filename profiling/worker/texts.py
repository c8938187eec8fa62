"""Where tokens come from: the evaluation text where the model can read it, else seeded random ids."""

import functools
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from gptscope.assets.bundled import evaluation_text
from gptscope.models.loaders import Tokenizer
from gptscope.profiling.records import GeneratedText
from gptscope.profiling.worker.failures import RequestError
from gptscope.profiling.worker.output import Output

MOST_TEXT_BYTES = 64_000_000
"""Tokens of more text would take minutes to make and gigabytes to keep."""


class TokenSource:
    """Gives the same tokens for the same seed, whatever the levers.

    Args:
        tokenizer: None for models without one.
        vocab_size: Ids run from 0 to here, exclusive.
        seed: Decides random ids and the places where training windows begin.
    """

    def __init__(self, tokenizer: Tokenizer | None, vocab_size: int, seed: int) -> None:
        self._tokenizer, self._vocab_size, self._seed = tokenizer, vocab_size, seed

    @functools.cached_property
    def text_ids(self) -> Tensor | None:
        """The evaluation text as token ids, `[N]`; None without a tokenizer."""
        if self._tokenizer is None:
            return None
        text = evaluation_text().read_text(encoding="utf-8")
        return torch.tensor(self._tokenizer.encode(text), dtype=torch.long)

    def prompt_ids(self, prompt: str) -> Tensor:
        """Token ids of a person's prompt, `[L]`.

        Raises:
            RequestError: The model cannot read text, or the prompt is empty.
        """
        if self._tokenizer is None:
            raise RequestError(
                "This model has no tokenizer, so it cannot read a prompt. Leave the prompt out (the model then reads "
                "random token ids), or take a trained model such as 'bundled'."
            )
        ids = self._tokenizer.encode(prompt)
        if not ids:
            raise RequestError("The prompt is empty. Give at least one word, or leave the prompt out.")
        return torch.tensor(ids, dtype=torch.long)

    def beginning(self, batch: int, length: int) -> Tensor:
        """A context to read, `[batch, length]`: passages of the text, the first one its beginning, or random ids."""
        text = self.text_ids
        if text is None or len(text) == 0:
            return self._random(batch, length, number=0)
        starts = [row * max(1, len(text) // batch) for row in range(batch)]
        return self._windows(text, starts, length)

    def training_batch(self, number: int, batch: int, length: int) -> Tensor:
        """The tokens of one optimizer step, `[batch, length]`: the same for the same number, whatever came before."""
        text = self.text_ids
        if text is None or len(text) == 0:
            return self._random(batch, length, number)
        generator = torch.Generator().manual_seed(self._seed + number)
        starts = torch.randint(0, max(1, len(text) - length), (batch,), generator=generator)
        return self._windows(text, starts.tolist(), length)

    def _random(self, batch: int, length: int, number: int) -> Tensor:
        generator = torch.Generator().manual_seed(self._seed + number)
        return torch.randint(0, self._vocab_size, (batch, length), generator=generator)

    @staticmethod
    def _windows(text: Tensor, starts: Sequence[int], length: int) -> Tensor:
        """Passages of the text from these places; a text that is too short is repeated."""
        offsets = torch.arange(length)
        return torch.stack([text[(offsets + start) % len(text)] for start in starts])


def read_text(path: str) -> str:
    """A person's text file.

    Raises:
        RequestError: It is missing, no file, too large, not a text, or empty; the message says which.
    """
    file = Path(path).expanduser()
    try:
        size_bytes = file.stat().st_size
        if not file.is_file():
            raise RequestError(f"{path} is no file. Give a plain text file.")
        if size_bytes > MOST_TEXT_BYTES:
            raise RequestError(
                f"The file {path} has {size_bytes / 1e6:.0f} MB, more than the {MOST_TEXT_BYTES / 1e6:.0f} MB that are "
                "read at once. Give a part of it."
            )
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(f"The file {path} is no UTF-8 text (byte {error.start}). Give a plain text file.") from error
    except OSError as error:
        raise RequestError(f"The text {path} cannot be read: {error.strerror or error}.") from error
    if not text.strip():
        raise RequestError(f"The file {path} holds no text.")
    return text


class TextStream:
    """Turns tokens that arrive one by one into text, never half a character.

    Byte-level tokenizers split characters between tokens, and some drop a leading space when they decode one token
    alone. So all tokens are decoded together every time, and what is new at the end is shown.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._shown = 0

    def add(self, ids: Sequence[int]) -> str:
        """Take new tokens; return the text that they complete, perhaps none."""
        self._ids += ids
        text = self._tokenizer.decode(self._ids)
        if text.endswith("\N{REPLACEMENT CHARACTER}"):
            return ""
        return self._show(text)

    def rest(self) -> str:
        """What is left at the end, also half a character."""
        return self._show(self._tokenizer.decode(self._ids))

    def _show(self, text: str) -> str:
        new = text[self._shown :]
        self._shown = len(text)
        return new


class FirstSequenceText:
    """Sends the first sequence's text as it is produced."""

    def __init__(self, output: Output, run_id: str, tokenizer: Tokenizer) -> None:
        self._output, self._run_id = output, run_id
        self._text = TextStream(tokenizer)

    def show(self, tokens_B: list[Tensor]) -> None:
        """Send the text of these tokens."""
        ids = torch.stack([token_B[0] for token_B in tokens_B]).tolist()
        self._output.emit(GeneratedText(run_id=self._run_id, text=self._text.add(ids), token_ids=tuple(ids)))

    def end(self) -> None:
        """Send what was kept back because it might have been half a character."""
        if rest := self._text.rest():
            self._output.emit(GeneratedText(run_id=self._run_id, text=rest, token_ids=()))
