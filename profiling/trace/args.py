"""All arguments of one event, read from the file again when somebody asks: memory holds none of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.events import BROKEN, decode_args
from gptscope.profiling.trace.health import TraceError
from gptscope.profiling.trace.repair import args_one_by_one
from gptscope.profiling.trace.source import Checkpoint, find_checkpoints, read_range

_BETWEEN = b" \t\r\n,"


@dataclass(frozen=True, slots=True)
class Pieces:
    """Where the pieces of a file's events lie in its uncompressed text, and the number of each piece's first event."""

    offset: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]


class ArgsReader:
    """Reads arguments by the event's number in the file; remembers the last piece, where the next one often lies."""

    def __init__(self, path: Path, pieces: Pieces, checkpoints: Sequence[Checkpoint] = (), bom_bytes: int = 0) -> None:
        self.path, self.pieces = path, pieces
        self._checkpoints, self._bom_bytes = checkpoints, bom_bytes
        self._known: tuple[int, list[Any]] = (-1, [])

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: checkpoints cannot go there and are found anew by `prepare`, or when first needed."""
        return ArgsReader, (self.path, self.pieces, (), self._bom_bytes)

    def prepare(self) -> None:
        """Find the places from which a packed file can be read: that inflates all of it once.

        Raises:
            TraceError: The file cannot be read.
        """
        if not self._checkpoints:
            self._checkpoints = find_checkpoints(self.path)

    def of(self, place: int) -> dict[str, Any]:
        """The arguments of one event; empty when it has none, or when the file is gone or has changed."""
        piece = int(np.searchsorted(self.pieces.first, place, side="right")) - 1
        if piece < 0:
            return {}
        if self._known[0] != piece:
            self._known = (piece, self._read(piece))
        events = self._known[1]
        index = place - int(self.pieces.first[piece])
        args = events[index] if index < len(events) else None
        return args if isinstance(args, dict) else {}

    def _read(self, piece: int) -> list[Any]:
        try:
            self.prepare()
            offset, size = int(self.pieces.offset[piece]), int(self.pieces.size[piece])
            text = read_range(self.path, offset, size, self._checkpoints, self._bom_bytes)
        except TraceError:
            return []
        try:
            return [event.args for event in decode_args(b"[" + text.strip(_BETWEEN) + b"]")]
        except BROKEN:
            return args_one_by_one(text)
