"""What a fusion is: a lever that replaces textbook modules by fused ones with the same inputs and outputs."""

from collections.abc import Callable

from torch import nn

from gptscope.models.gpt import GPT, Block
from gptscope.models.levers import Lever, LeverContext


class Fusion(Lever):
    """One switchable replacement."""

    group = "fusion"
    part_of_all = True
    """False: `all` leaves it out, a person must name it."""

    def apply(self, model: GPT, context: LeverContext) -> None:
        """Replace modules in `model`, in place. Weights are already in their final type and on their device."""


def blocks_of(model: GPT) -> list[Block]:
    """The layers, typed."""
    blocks = list(model.blocks)
    assert all(isinstance(block, Block) for block in blocks)
    return [block for block in blocks if isinstance(block, Block)]


def replace_modules(root: nn.Module, make: Callable[[nn.Module], nn.Module | None]) -> int:
    """Swap every submodule for which `make` returns another; return how many were swapped."""
    swapped = 0
    for parent in list(root.modules()):
        for name, child in list(parent.named_children()):
            new = make(child)
            if new is not None:
                setattr(parent, name, new)
                swapped += 1
    return swapped
