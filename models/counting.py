"""Modules that count what they do, so that evidence does not rest on kernel names alone."""

from torch import nn


class CountingModule(nn.Module):
    """A module with a tally of its own; `PreparedModel.counters` adds up those of all modules."""

    def __init__(self) -> None:
        super().__init__()
        self.tally: dict[str, float] = {}
        """Counter name -> count since the last reset."""


def counted(model: nn.Module) -> dict[str, float]:
    """The tallies of all counting modules, added up."""
    total: dict[str, float] = {}
    for module in model.modules():
        if isinstance(module, CountingModule):
            for name, count in module.tally.items():
                total[name] = total.get(name, 0.0) + count
    return total


def reset_counts(model: nn.Module) -> None:
    """Start counting anew."""
    for module in model.modules():
        if isinstance(module, CountingModule):
            module.tally.clear()
