"""The text that a quantized model is shown before it runs."""

import torch

from gptscope.assets.bundled import calibration_text as calibration_file
from gptscope.models.calibration import CalibrationText
from gptscope.models.config import GPTConfig
from gptscope.models.loaders import Tokenizer
from gptscope.profiling.worker.failures import RequestError

PIECES = 16
PIECE_TOKENS = 256


def calibration_text(tokenizer: Tokenizer | None, config: GPTConfig) -> CalibrationText:
    """The calibration text that comes with gptscope, never seen in training or evaluation.

    Raises:
        RequestError: The model cannot read text.
    """
    if tokenizer is None:
        raise RequestError(
            "This recipe has to see text before it quantizes, but the model has no tokenizer. Take a recipe that needs "
            "no calibration, such as int8-dynamic, or a model with a tokenizer."
        )
    ids = torch.tensor(tokenizer.encode(calibration_file().read_text(encoding="utf-8")), dtype=torch.long)
    length = min(PIECE_TOKENS, config.context_length)
    pieces = min(PIECES, len(ids) // length)
    return CalibrationText(token_ids=ids[: pieces * length].view(pieces, length), source="gptscope's calibration text")
