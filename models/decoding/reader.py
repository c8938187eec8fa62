"""One text that a model reads on and takes back: what guessing and checking are made of."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gptscope.models.prepare import PreparedModel


class Reader:
    """A model with one text behind it.

    Args:
        prepared: The model with its levers.
        capacity: Tokens of the text at most.
    """

    def __init__(self, prepared: PreparedModel, capacity: int) -> None:
        self._prepared = prepared
        self.capacity = capacity
        self.cache = prepared.new_cache(1, capacity)
        self.text: list[int] = []
        """What the model has read."""

    @torch.inference_mode()
    def read(self, tokens: Sequence[int], *, last_only: bool = False) -> Tensor:
        """Read these tokens; return the logits behind each of them, `[N, V]`, or behind the last one, `[1, V]`.

        Raises:
            ValueError: The text has reached its capacity.
        """
        if len(self.text) + len(tokens) > self.capacity:
            raise ValueError(
                f"{len(self.text) + len(tokens)} tokens do not fit into this session, which was made for "
                f"{self.capacity}; use a shorter prompt or fewer new tokens."
            )
        self.text += tokens
        new = self.text if self.cache is None else tokens
        ids_1L = torch.tensor([list(new)], device=self._prepared.device)
        with self._prepared.autocast():
            logits_1LV = self._prepared.forward(ids_1L, self.cache, None, last_only=last_only)
        return logits_1LV[0, -len(tokens) :]

    def rewind(self, length: int) -> None:
        """Forget all but the first `length` tokens."""
        del self.text[length:]
        if self.cache is not None:
            self.cache.truncate(length)

    def reset(self) -> None:
        """Forget the text; buffers of a static cache are used again."""
        self.text.clear()
        if self.cache is not None:
            self.cache.reset()
