"""A trace as columns: one row per complete event, exact nanoseconds, texts stored once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.health import HealthNote

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

GPU_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
"""What occupies a device. Synchronisation, annotations and overhead are not work, whatever stream they name."""
OLD_CATEGORIES = {
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "Operator": "cpu_op",
    "Runtime": "cuda_runtime",
}
"""Names before PyTorch 1.11."""
STEP_PREFIX = "ProfilerStep#"
GENERATED_PREFIX = "## Call CompiledFxGraph"
"""A call of code that torch.compile generated: recorded as an annotation, but on a CPU its loops are work."""


class Track(NamedTuple):
    """A row of the timeline: process and thread (or device and stream), as the file has them."""

    pid: Any
    tid: Any


@dataclass(frozen=True, slots=True)
class TraceTable:
    """All events with a beginning and a duration. Columns have equal length and are in file order.

    `name`, `category`, `track`, `shapes`, `types` and `values` are positions in `names`, `categories`, `tracks` and
    `texts`. Missing numbers: 0 for `correlation`, `external_id` (no id), -1 for the others.
    """

    names: list[str]
    categories: list[str]
    tracks: list[Track]
    texts: list[bytes]
    """JSON of `Input Dims`, `Input type` and `Concrete Inputs`; the first is empty (none recorded)."""
    name: Int32
    category: Int32
    track: Int32
    start_ns: Int64
    duration_ns: Int64
    unfinished: Bools
    """No usable duration was recorded: `duration_ns` goes to the trace's end and is in no sum."""
    correlation: Int64
    external_id: Int64
    sequence: Int64
    forward_thread: Int64
    device: Int64
    stream: Int64
    moved_bytes: Int64
    shapes: Int32
    types: Int32
    values: Int32
    phases: Mapping[str, int] = field(default_factory=dict)
    """How many events of each phase the file has, also of those that have no row here."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What stands around the events: device properties, rank, versions."""
    health: tuple[HealthNote, ...] = ()

    def __len__(self) -> int:
        return int(self.start_ns.size)

    @property
    def end_ns(self) -> Int64:
        """End of every event."""
        return self.start_ns + self.duration_ns

    def in_categories(self, *wanted: str) -> Bools:
        """Which rows are of one of these categories."""
        return self._lookup(np.array([c in wanted for c in self.categories], dtype=bool), self.category)

    def launches(self) -> Bools:
        """Which rows are calls into a device's runtime or driver, of any vendor."""
        return self._lookup(
            np.array([c.endswith(("_runtime", "_driver")) for c in self.categories], dtype=bool), self.category
        )

    def named_like(self, prefix: str) -> Bools:
        """Which rows have a name with this prefix."""
        return self._lookup(np.array([n.startswith(prefix) for n in self.names], dtype=bool), self.name)

    def _lookup(self, table: Bools, column: Int32) -> Bools:
        return table[column] if table.size else np.zeros(column.size, dtype=bool)

    def gpu_work(self) -> Bools:
        """Which rows occupied a device."""
        return self.in_categories(*GPU_CATEGORIES) & ~self.unfinished

    def operators(self) -> Bools:
        """Which rows are operators on the CPU, generated code included.

        Profiler steps are not, though old traces file them there.
        """
        return (self.in_categories("cpu_op") & ~self.named_like(STEP_PREFIX)) | self.named_like(GENERATED_PREFIX)

    def annotations(self) -> Bools:
        """Which rows are ranges that a program marked on the CPU: containers, not work."""
        return self.in_categories("user_annotation") & ~self.named_like(GENERATED_PREFIX)

    def parsed(self, text: int) -> Any:
        """The value of one of `texts`; None when nothing was recorded or it is no JSON."""
        raw = self.texts[text]
        if not raw:
            return None
        try:
            return msgspec.json.decode(raw)
        except msgspec.DecodeError:
            return None
