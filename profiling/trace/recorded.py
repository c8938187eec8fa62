"""What the profiler recorded of operators' inputs: shapes, types and values, as numbers of texts stored once."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.growing import Interner, narrow

SEPARATOR = b"\0"
"""Between the three texts; it stands in no JSON."""
MOST_TEXT = 1 << 16
"""Bytes; longer shapes are of no operator and count as not recorded."""


class RecordedInterner(Interner):
    """Gives every different combination of shapes, types and values a number; 0 is none recorded."""

    def __init__(self) -> None:
        self.texts = Interner(b"")
        self._parts: list[tuple[int, ...]] = []
        super().__init__(SEPARATOR * 2)

    def __missing__(self, value: Any) -> int:
        if len(value) > MOST_TEXT:
            return 0
        number = super().__missing__(value)
        self._parts.append(tuple(self.texts[part] for part in value.split(SEPARATOR)))
        return number

    def columns(self, numbers: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        """Numbers in `texts` of the shapes, types and values of every row."""
        parts = np.array(self._parts, dtype=np.int64)
        return tuple(narrow(parts[:, i])[numbers] for i in range(3))
