"""A trace as columns: one row per event with a duration, exact nanoseconds, texts stored once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.args import ArgsReader
from gptscope.profiling.trace.events import BROKEN
from gptscope.profiling.trace.health import HealthNote
from gptscope.profiling.trace.points import Counters, Flows, Instants, MemoryEvents

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Integers = npt.NDArray[np.signedinteger[Any]]
"""Whole numbers in the narrowest type that holds them all."""
Bools = npt.NDArray[np.bool_]

GPU_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events", "hpu_op")
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
_FEW = 4
NOT_STATISTICS = frozenset({"Trace", "Spans", "__metadata"})
"""Rows that only frame a recording."""


class Track(NamedTuple):
    """A row of the timeline: process and thread (or device and stream), as the file has them."""

    pid: Any
    tid: Any


@dataclass(frozen=True)
class Trace:
    """All events with a beginning and a duration, and beside them instants, counters and flows.

    Columns have equal length and are in file order; events with separate begin and end come last. `name`, `category`,
    `track`, `collective`, `shapes`, `types` and `values` are positions in `names`, `categories`, `tracks` and `texts`.
    Missing numbers: 0 for `correlation`, `external_id` (no id), -1 for the others.
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
    correlation: Integers
    external_id: Integers
    sequence: Integers
    forward_thread: Integers
    device: Integers
    stream: Integers
    moved_bytes: Integers
    collective: Integers
    """Name of the collective that a kernel belongs to; text 0 is none."""
    shapes: Int32
    types: Int32
    values: Int32
    place: Integers
    """Number of the event in the file, for `args`."""
    instants: Instants
    counters: Counters
    flows: Flows
    memory: MemoryEvents
    phases: Mapping[str, int] = field(default_factory=dict)
    """How many events of each phase the file has, also of those that have no row here."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What stands around the events: device properties, rank, versions."""
    labels: Mapping[Track, str] = field(default_factory=dict)
    """Names of threads; a process has its name under `Track(pid, None)`."""
    sort_indices: Mapping[Track, int] = field(default_factory=dict)
    """Where the file wants a thread, or a process under `Track(pid, None)`: smaller is higher."""
    process_labels: Mapping[Any, str] = field(default_factory=dict)
    """What else the file calls a process: `CPU`, `GPU 0`."""
    health: tuple[HealthNote, ...] = ()
    """What reading it found: mended, put aside, missing."""
    args_reader: ArgsReader | None = None

    def __len__(self) -> int:
        return int(self.start_ns.size)

    @property
    def end_ns(self) -> Int64:
        """End of every event."""
        return self.start_ns + self.duration_ns

    def ends(self, rows: Integers | Bools) -> Int64:
        """End of some rows."""
        return self.start_ns[rows] + self.duration_ns[rows]

    @cached_property
    def span_ns(self) -> tuple[int, int]:
        """First beginning and last end of all rows; (0, 0) for an empty trace."""
        if not len(self):
            return (0, 0)
        return int(self.start_ns.min()), int((self.start_ns + self.duration_ns).max())

    def span_of(self, rows: Bools) -> tuple[int, int]:
        """First beginning and last end of some rows, of which there is at least one."""
        if rows.all():
            return self.span_ns
        return int(self.start_ns[rows].min()), int(self.ends(rows).max())

    @property
    def rank(self) -> int:
        """Of a distributed run; 0 when the file names none."""
        info = self.metadata.get("distributedInfo")
        rank = info.get("rank") if isinstance(info, dict) else None
        return rank if isinstance(rank, int) else 0

    def args(self, row: int) -> dict[str, Any]:
        """All arguments of a row as the file has them, read from the file now; empty when it has none or is gone."""
        return {} if self.args_reader is None else self.args_reader.of(int(self.place[row]))

    def name_of(self, row: int) -> str:
        """Name of a row."""
        return self.names[int(self.name[row])]

    def category_of(self, row: int) -> str:
        """The file's category of a row."""
        return self.categories[int(self.category[row])]

    def in_categories(self, *wanted: str) -> Bools:
        """Which rows are of one of these categories."""
        return self._lookup(np.array([c in wanted for c in self.categories], dtype=bool), self.category)

    def launches(self) -> Bools:
        """Which rows are calls into a device's runtime or driver, of any vendor."""
        return self._launches

    def named_like(self, *prefixes: str) -> Bools:
        """Which rows have a name with one of these prefixes."""
        return self.named_so(lambda name: name.startswith(prefixes))

    def named_so(self, fits: Callable[[str], bool]) -> Bools:
        """Which rows have a name that fits; asked once per name."""
        return self._lookup(np.array([fits(n) for n in self.names], dtype=bool), self.name)

    def _lookup(self, table: Bools, column: Int32) -> Bools:
        """Which rows have a number that `table` marks."""
        marked = np.flatnonzero(table)
        if marked.size == table.size > 0:
            return np.ones(column.size, dtype=bool)
        if marked.size > _FEW:
            return table[column]
        found = np.zeros(column.size, dtype=bool)
        for number in marked.tolist():  # comparing takes a tenth of the time of looking up
            found |= column == number
        return found

    def gpu_work(self) -> Bools:
        """Which rows occupied a device."""
        return self._gpu_work

    # Asked for again and again: kept, and never changed.

    @cached_property
    def process_of_track(self) -> Int32:
        """Number of the process of every track; tracks with the same process id share one."""
        numbers: dict[Any, int] = {}
        return np.array([numbers.setdefault(track.pid, len(numbers)) for track in self.tracks], dtype=np.int32)

    @cached_property
    def _launches(self) -> Bools:
        calls = [c.endswith(("_runtime", "_driver")) for c in self.categories]
        return _frozen(self._lookup(np.array(calls, dtype=bool), self.category))

    @cached_property
    def _gpu_work(self) -> Bools:
        return _frozen(self.in_categories(*GPU_CATEGORIES) & ~self.unfinished)

    @cached_property
    def _operators(self) -> Bools:
        operators = self.in_categories("cpu_op") & ~self.named_like(STEP_PREFIX)
        generated = self.named_like(GENERATED_PREFIX) & ~self.in_categories("gpu_user_annotation")
        return _frozen(operators | generated)

    def in_statistics(self) -> Bools:
        """Which rows are events of the program, not frames around the recording."""
        return ~self.in_categories(*NOT_STATISTICS)

    def operators(self) -> Bools:
        """Which rows are operators on the CPU, generated code included.

        Profiler steps are not, though old traces file them there.
        """
        return self._operators

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
        except BROKEN:
            return None


def some_rows(column: npt.NDArray[Any], rows: Integers) -> npt.NDArray[Any]:
    """A column at different rows in rising order; itself, not a copy, when they are all of them."""
    return column if rows.size == column.size else column[rows]


def _frozen(rows: Bools) -> Bools:
    rows.flags.writeable = False
    return rows
