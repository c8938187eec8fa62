"""What a pruning is: a lever that removes weights."""

from abc import abstractmethod

from gptscope.models.gpt import GPT
from gptscope.models.levers import Lever, LeverContext


class Pruning(Lever):
    """One way to choose and remove weights."""

    group = "pruning"

    @abstractmethod
    def apply(self, model: GPT, context: LeverContext) -> None:
        """Remove weights from the textbook model, in place; fusions and quantization come after."""
