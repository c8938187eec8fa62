"""Greedy decoding in steps that check several guessed tokens at once."""

import torch
from torch import Tensor

from gptscope.models.decoding.drafters import make_drafter
from gptscope.models.decoding.reader import Reader
from gptscope.models.decoding.speculation import SPECULATIONS
from gptscope.models.prepare import PreparedModel


class SpeculativeSession:
    """Decodes one text; each step gives one token and every guess before it that was right.

    Args:
        prepared: The model with its levers, `speculation` among them.
        capacity: Prompt and new tokens together, at most.

    Raises:
        ValueError: `capacity` exceeds the model's context.
    """

    def __init__(self, prepared: PreparedModel, capacity: int) -> None:
        context_length = prepared.config.context_length
        if capacity > context_length:
            raise ValueError(
                f"{capacity} tokens (prompt and new tokens together) do not fit into this model's context of "
                f"{context_length}; use a shorter prompt or fewer new tokens."
            )
        self._prepared = prepared
        self._reader = Reader(prepared, capacity)
        values = SPECULATIONS[prepared.context.speculation].settings(prepared.context)
        self.most_drafts = int(values["drafts"])
        self._drafter = make_drafter(prepared, capacity)
        self._next: int | None = None
        """Said already, not yet read."""
        self.drafted = 0
        """Tokens guessed for the last step."""
        self.logits_NV = torch.empty(0, 0)
        """What each token of the last call was chosen from."""

    @property
    def length(self) -> int:
        """Tokens that the model has read so far."""
        return len(self._reader.text)

    @property
    def cache_bytes(self) -> int:
        """Bytes that the KV cache occupies now."""
        return 0 if self._reader.cache is None else self._reader.cache.storage_bytes

    def prefill(self, tokens_1L: Tensor) -> Tensor:
        """Read the prompt; return the most likely next token, `[1]`."""
        self._reader.reset()
        self.logits_NV = self._reader.read(tokens_1L[0].tolist(), last_only=True)
        self._next, self.drafted = int(self.logits_NV.argmax()), 0
        return torch.tensor([self._next])

    def step(self, most: int) -> Tensor:
        """Read the token that the last call ended with, and guesses behind it; return the new tokens, `[N]`.

        Args:
            most: New tokens that are wanted at most, 1 or more.

        Raises:
            ValueError: The text has reached `capacity`.
        """
        assert self._next is not None, "prefill comes first"
        reader = self._reader
        before, allocations = self.length, self._allocations()
        room = min(self.most_drafts, most - 1, reader.capacity - before - 1)
        guesses = self._drafter.propose([*reader.text, self._next], room) if room > 0 else []
        logits_NV = reader.read([self._next, *guesses])
        chosen = logits_NV.max(dim=-1).indices.tolist()
        right = next((i for i, guess in enumerate(guesses) if guess != chosen[i]), len(guesses))
        reader.rewind(before + 1 + right)
        self._next, self.drafted = chosen[right], len(guesses)
        self.logits_NV = logits_NV[: right + 1]
        self._count(right, self._allocations() - allocations)
        return torch.tensor(chosen[: right + 1])

    def _allocations(self) -> int:
        return 0 if self._reader.cache is None else self._reader.cache.allocations

    def _count(self, accepted: int, allocations: int) -> None:
        tally = self._prepared.tally
        for name, value in (
            ("decode_forwards", 1.0),
            ("decode_tokens", float(self.length - accepted if self._reader.cache is None else 1)),
            ("cache_allocations", float(allocations)),
            ("drafted_tokens", float(self.drafted)),
            ("accepted_tokens", float(accepted)),
        ):
            tally[name] = tally.get(name, 0.0) + value
        tally["cache_bytes"] = float(self.cache_bytes)
