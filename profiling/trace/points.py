"""What a trace has beside events with a duration: instants, counters and flow arrows, as columns too."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Float64 = npt.NDArray[np.float64]


def _no_int64() -> Int64:
    return np.empty(0, dtype=np.int64)


def _no_int32() -> Int32:
    return np.empty(0, dtype=np.int32)


@dataclass(frozen=True)
class Instants:
    """Events at one moment. `name`, `category`, `track` are positions in the trace's lists."""

    name: Int32 = field(default_factory=_no_int32)
    category: Int32 = field(default_factory=_no_int32)
    track: Int32 = field(default_factory=_no_int32)
    time_ns: Int64 = field(default_factory=_no_int64)
    place: Int64 = field(default_factory=_no_int64)
    """Number of the event in the file."""

    def __len__(self) -> int:
        return int(self.time_ns.size)


@dataclass(frozen=True)
class Counters:
    """Samples of counters; one counter event with several values gives several samples."""

    series: list[tuple[Any, str, str]] = field(default_factory=list)
    """Process, counter and value name of each series."""
    serie: Int32 = field(default_factory=_no_int32)
    """Position in `series` of each sample."""
    time_ns: Int64 = field(default_factory=_no_int64)
    value: Float64 = field(default_factory=lambda: np.empty(0, dtype=np.float64))

    def __len__(self) -> int:
        return int(self.time_ns.size)


@dataclass(frozen=True)
class Flows:
    """Ends of arrows: those with the same id and category belong together, in order of time."""

    categories: list[str] = field(default_factory=list)
    category: Int32 = field(default_factory=_no_int32)
    """Position in the flows' own `categories`."""
    ident: Int64 = field(default_factory=_no_int64)
    """Text ids are numbered from -1 down."""
    begins: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    track: Int32 = field(default_factory=_no_int32)
    time_ns: Int64 = field(default_factory=_no_int64)

    def __len__(self) -> int:
        return int(self.time_ns.size)


@dataclass(frozen=True)
class MemoryEvents:
    """Allocations (positive `bytes`) and frees (negative) of torch's allocators."""

    time_ns: Int64 = field(default_factory=_no_int64)
    track: Int32 = field(default_factory=_no_int32)
    bytes: Int64 = field(default_factory=_no_int64)
    allocated: Int64 = field(default_factory=_no_int64)
    """Bytes in use on the device afterwards; -1: not recorded."""
    reserved: Int64 = field(default_factory=_no_int64)
    """Bytes that the caching allocator holds afterwards; -1: not recorded."""
    device_type: Int64 = field(default_factory=_no_int64)
    """0 is the CPU, 1 CUDA; -1: not recorded."""
    device_id: Int64 = field(default_factory=_no_int64)

    def __len__(self) -> int:
        return int(self.time_ns.size)
