"""The one loop that generates tokens: worker, quality checks and benchmarks all decode through it."""

import torch
from torch import Tensor

from gptscope.models.prepare import PreparedModel


class DecodeSession:
    """Greedy decoding of a batch of equally long (left-padded) prompts.

    Args:
        prepared: The model with its levers.
        batch: Sequences decoded together.
        capacity: Prompt and new tokens of each sequence, together at most.

    Raises:
        ValueError: `capacity` exceeds the model's context.
    """

    def __init__(self, prepared: PreparedModel, batch: int, capacity: int) -> None:
        context_length = prepared.config.context_length
        if capacity > context_length:
            raise ValueError(
                f"{capacity} tokens (prompt and new tokens together) do not fit into this model's context of "
                f"{context_length}; use a shorter prompt or fewer new tokens."
            )
        self._prepared = prepared
        self._batch = batch
        self._capacity = capacity
        self._cache = prepared.new_cache(batch, capacity)
        self._padding_B: Tensor | None = None
        self._text_BL: Tensor | None = None
        self._next_B: Tensor | None = None
        self.logits_BV = torch.empty(batch, 0)
        """Logits behind the latest token, in the model's type; empty before the prefill."""
        self.length = 0
        """Tokens per sequence that the model has read so far."""

    @property
    def cache_bytes(self) -> int:
        """Bytes that the KV cache occupies now."""
        return 0 if self._cache is None else self._cache.storage_bytes

    def reset(self) -> None:
        """Forget the text; buffers of a static cache are used again."""
        if self._cache is not None:
            self._cache.reset()
        self._padding_B = self._text_BL = self._next_B = None
        self.logits_BV = torch.empty(self._batch, 0)
        self.length = 0

    @torch.inference_mode()
    def prefill(self, tokens_BL: Tensor, padding_B: Tensor | None = None) -> Tensor:
        """Read the prompts; return each sequence's most likely next token, `[B]`.

        Args:
            tokens_BL: Prompts, fillers at the left.
            padding_B: Number of fillers of each sequence; None: none.

        Raises:
            ValueError: The prompts do not fit into `capacity`, or the batch differs from the session's.
        """
        if tokens_BL.shape[0] != self._batch:
            raise ValueError(f"This session decodes {self._batch} sequences, but {tokens_BL.shape[0]} prompts came.")
        self.reset()
        device = self._prepared.device
        tokens_BL = tokens_BL.to(device)
        self._padding_B = None if padding_B is None else padding_B.to(device)
        return self._read(tokens_BL)

    @torch.inference_mode()
    def step(self) -> Tensor:
        """Read the token that the last call returned; return the next one, `[B]`.

        Raises:
            ValueError: The text has reached `capacity`.
        """
        assert self._next_B is not None, "prefill comes first"
        before = 0 if self._cache is None else self._cache.allocations
        next_B = self._read(self._next_B[:, None])
        tally = self._prepared.tally
        for name, value in (
            ("decode_forwards", 1.0),
            ("decode_tokens", float(self.length if self._cache is None else 1)),
            ("cache_allocations", 0.0 if self._cache is None else float(self._cache.allocations - before)),
        ):
            tally[name] = tally.get(name, 0.0) + value
        tally["cache_bytes"] = float(self.cache_bytes)
        return next_B

    def _read(self, new_BL: Tensor) -> Tensor:
        if self.length + new_BL.shape[1] > self._capacity:
            raise ValueError(
                f"{self.length + new_BL.shape[1]} tokens do not fit into this session, which was made for "
                f"{self._capacity}; use a shorter prompt or fewer new tokens."
            )
        if self._cache is None:
            self._text_BL = new_BL if self._text_BL is None else torch.cat((self._text_BL, new_BL), dim=1)
            new_BL = self._text_BL
        with self._prepared.autocast():
            logits_BxV = self._prepared.forward(new_BL, self._cache, self._padding_B, last_only=True)
        self.length = new_BL.shape[1] if self._cache is None else self._cache.length
        self.logits_BV = logits_BxV[:, -1]
        self._next_B = self.logits_BV.max(dim=-1).indices  # the first of equals, as argmax, at a quarter of its time
        return self._next_B
