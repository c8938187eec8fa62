"""Text that a quantized model is shown before it runs, so that it can see how large activations get."""

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from gptscope.models.quantization.ranges_file import Ranges

CalibrationProgress = Callable[[int, int, str], None]
"""Done, total, what is being done."""


def _silent(done: int, total: int, note: str) -> None:
    del done, total, note


def _forget(ranges: Ranges) -> None:
    del ranges


def _unheard(sentence: str) -> None:
    del sentence


@dataclass(frozen=True, slots=True)
class CalibrationText:
    """Tokens to run through a model before it is quantized."""

    token_ids: Tensor
    """`[N, L]`: N pieces of text of L tokens, int64."""
    source: str
    """Where the text is from, for people."""
    progress: CalibrationProgress = field(default=_silent, compare=False)
    """Told how far the reading is."""
    keep: Callable[[Ranges], None] = field(default=_forget, compare=False)
    """Given the measured ranges, so that another run can use them again."""
    tell: Callable[[str], None] = field(default=_unheard, compare=False)
    """Told in a sentence what was decided on the way."""
