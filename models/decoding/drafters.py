"""The two ways to guess the next tokens: look the last ones up in the text, or ask a smaller model."""

from collections.abc import Sequence

from gptscope.models.decoding.reader import Reader
from gptscope.models.decoding.speculation import SPECULATIONS, Drafter
from gptscope.models.prepare import PreparedModel


class LookupDrafter:
    """Finds the last place where the text's last tokens stood before.

    Args:
        ngram: Tokens that must agree, at most; shorter runs are tried after longer ones.
        shortest: Tokens that must agree, at least.
    """

    def __init__(self, ngram: int, shortest: int = 1) -> None:
        self._ngram, self._shortest = ngram, shortest
        self._text: list[int] = []
        self._behind: dict[tuple[int, ...], int] = {}
        """Run of tokens -> position right behind its last occurrence."""

    def propose(self, text: Sequence[int], most: int) -> list[int]:
        if list(text[: len(self._text)]) != self._text:
            self._text, self._behind = [], {}
        for end in range(len(self._text), len(text)):  # a run counts from the token behind it on
            for size in range(self._shortest, min(self._ngram, end) + 1):
                self._behind[tuple(text[end - size : end])] = end
        self._text = list(text)
        for size in range(min(self._ngram, len(text)), self._shortest - 1, -1):
            start = self._behind.get(tuple(text[-size:]))
            if start is not None:
                return self._text[start : start + most]
        return []


class ModelDrafter:
    """Lets a smaller model write ahead greedily.

    Args:
        draft: The smaller model, prepared.
        capacity: Tokens of the text at most.
    """

    def __init__(self, draft: PreparedModel, capacity: int) -> None:
        self._reader = Reader(draft, min(capacity, draft.config.context_length))

    def propose(self, text: Sequence[int], most: int) -> list[int]:
        reader = self._reader
        most = min(most, reader.capacity - len(text))
        if most < 1:
            return []
        agreed = next(
            (i for i, (read, said) in enumerate(zip(reader.text, text, strict=False)) if read != said),
            min(len(reader.text), len(text)),
        )
        reader.rewind(min(agreed, len(text) - 1))  # at least the last token is read, for its logits
        proposed = [int(reader.read(text[len(reader.text) :], last_only=True)[-1].argmax())]
        while len(proposed) < most:
            proposed.append(int(reader.read(proposed[-1:])[-1].argmax()))
        return proposed


def make_drafter(prepared: PreparedModel, capacity: int) -> Drafter:
    """The drafter that the model's lever `speculation` asks for."""
    values = SPECULATIONS[prepared.context.speculation].settings(prepared.context)
    if prepared.draft is not None:
        return ModelDrafter(prepared.draft, capacity)
    return LookupDrafter(int(values["ngram"]), int(values["shortest"]))
