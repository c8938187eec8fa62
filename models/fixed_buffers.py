"""What KV caches in buffers of a fixed size share, whatever the buffers hold."""

from collections.abc import Sequence
from typing import Generic, Self, TypeVar

from torch import Tensor

LayerT = TypeVar("LayerT", bound=tuple[Tensor, ...])


class FixedBuffers(Generic[LayerT]):
    """One tuple of buffers per layer, `[B, K, capacity + 1, ...]` each, keys first, written in place.

    The last row stays unused: a view of the whole buffer would be contiguous, all others are not, and torch.compile
    would compile anew for the last token.
    """

    title = "a fixed"

    def __init__(self, layers: Sequence[LayerT]) -> None:
        self.layers = list(layers)
        self.length = 0
        self.capacity = layers[0][0].shape[2] - 1
        self.allocations = len(layers) * len(layers[0])

    def room_for(self, added: int) -> tuple[int, int]:
        """Where the next `added` tokens begin and end.

        Raises:
            ValueError: The buffers are full.
        """
        end = self.length + added
        if end > self.capacity:
            raise ValueError(
                f"{end} tokens do not fit into {self.title} KV cache made for {self.capacity}; make it larger, "
                "or use the dynamic cache."
            )
        return self.length, end

    def advance(self, tokens: int) -> None:
        """Count `tokens` as stored."""
        self.length += tokens

    def part(self, first: int, count: int) -> Self:
        """The same buffers seen by `count` layers from `first` on, which are numbered from 0 there."""
        part = type(self)(self.layers[first : first + count])
        part.length = self.length
        return part

    def truncate(self, length: int) -> None:
        """Forget all but the first `length` tokens; their places are written again."""
        self.length = length

    def reset(self) -> None:
        """Start over in the same buffers."""
        self.length = 0

    @property
    def storage_bytes(self) -> int:
        """Bytes of the buffers, used or not."""
        return sum(tensor.nbytes for layer in self.layers for tensor in layer)
