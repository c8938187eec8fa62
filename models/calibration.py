"""Text that a quantized model is shown before it runs, so that it can see how large activations get."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class CalibrationText:
    """Tokens to run through a model before it is quantized."""

    token_ids: Tensor
    """`[N, L]`: N pieces of text of L tokens, int64."""
    source: str
    """Where the text is from, for people."""
