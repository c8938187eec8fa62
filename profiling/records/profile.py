"""What the profiled steps consisted of: kernels, operators, evidence, and the trace itself."""

from typing import Literal

import msgspec

from gptscope.profiling.records.message import Message


class KernelRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel (CPU: one operator that does work itself) summed over the profiled steps."""

    name: str
    category: str
    calls: int
    self_time_us: float
    total_time_us: float
    share: float
    """Self time over the self time of all kernels, 0 to 1."""
    module: str = ""
    input_shapes: str = ""
    dtypes: tuple[str, ...] = ()
    bytes: int | None = None
    """Modelled: each input read once, each output written once, all calls together; None when shapes are unknown."""
    flops: int | None = None
    label: str = ""
    """Short name for people, such as `mlp.down, bf16 GEMV`; empty: use `name`."""


class OperatorRow(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of one operator on tensors of the same shapes in the profiled steps, on the CPU's threads."""

    name: str
    calls: int
    self_time_us: float
    """Without the operators inside it."""
    total_time_us: float
    """With everything inside it; a call within a call of the same operator is counted once."""
    input_shapes: str = ""
    category: str = "other"
    module: str = ""
    """Where most of its time was spent; empty: outside any module."""
    modules: int = 1
    """How many different modules call it."""
    device_self_time_us: float | None = None
    """Time of the kernels that it launched itself; None without a device."""
    device_total_time_us: float | None = None
    """The same with the operators inside it."""
    kernels: tuple[str, ...] = ()
    """Names of the kernels that it launched itself, longest first; empty on a CPU, where operators are the kernels."""


class EvidenceItem(msgspec.Struct, frozen=True, kw_only=True):
    """What the profile says about one lever that is on."""

    lever: str
    in_effect: bool | None
    sentence: str


class Profile(Message, frozen=True):
    """Kernel table of the profiled steps."""

    run_id: str
    steps: int
    """Profiled steps (train, prefill) or tokens (decode, generate)."""
    overhead: float
    """Median profiled step time over median unprofiled step time."""
    wall_us: float
    busy_us: float
    """Union of kernel intervals per device, inside the profiled steps."""
    kernels: tuple[KernelRow, ...]
    device: Literal["cpu", "cuda"]
    notes: tuple[str, ...] = ()
    operators: tuple[OperatorRow, ...] = ()
    """By falling self time; empty in profiles that were recorded before there was this table."""


class EvidenceReport(Message, frozen=True):
    """For every lever that is on: what in the profile proves it."""

    run_id: str
    items: tuple[EvidenceItem, ...]


class TraceChunk(Message, frozen=True):
    """A piece (the frame's payload) of the gzipped Kineto trace as it was recorded."""

    run_id: str
    offset: int
    last: bool
