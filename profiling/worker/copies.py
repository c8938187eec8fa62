"""Further copies of a variant's model with other levers, for comparisons inside one worker."""

from dataclasses import dataclass

import psutil
import torch

from gptscope.models.config import GPTConfig
from gptscope.models.levers import LeverContext
from gptscope.models.loaders import Tokenizer, load_model
from gptscope.models.precision import RECIPES
from gptscope.models.prepare import PreparedModel, prepare
from gptscope.profiling.worker.calibration import calibration_for
from gptscope.profiling.worker.failures import NotEnoughMemoryError

_FLOAT32 = 4
_SPARE = 1.2
"""Over the weights alone: buffers while they are read and converted."""


@dataclass(frozen=True, slots=True)
class ModelCopies:
    """Loads one model again.

    Attributes:
        source: What the user typed for it.
        seed: Of random weights.
        device: Where copies go.
        tokenizer: For recipes that must see text first.
    """

    source: str
    seed: int
    device: torch.device
    tokenizer: Tokenizer | None

    def make(self, context: LeverContext) -> PreparedModel:
        """A copy with these levers, for inference.

        Raises:
            ModelError: The model has gone meanwhile.
            LeverError: A lever is not available here.
        """
        recipe = RECIPES[context.precision]
        loaded = load_model(self.source, dtype=recipe.weight_dtype(training=False), seed=self.seed)
        calibration = calibration_for(context, loaded, self.source)
        return prepare(loaded.model, context, self.device, calibration)

    def check_room(self, config: GPTConfig, copies: int, purpose: str) -> None:
        """Refuse more copies (in FP32) than fit into free memory.

        Raises:
            NotEnoughMemoryError: They do not fit.
        """
        needed = int(config.parameter_count * _FLOAT32 * copies * _SPARE)
        free = psutil.virtual_memory().available
        if self.device.type == "cuda":
            free = min(free, torch.cuda.mem_get_info(self.device)[0])
        if needed > free:
            raise NotEnoughMemoryError(
                f"{purpose} needs {copies} more copies of the model, about {needed / 1e9:.1f} GB, and "
                f"{free / 1e9:.1f} GB are free. Leave it out, or close other programs."
            )
