"""What a machine offers: its parts, its levers, its measured ceilings."""

from typing import Literal

import msgspec

from gptscope.profiling.experiment import OptionValue
from gptscope.profiling.records.message import Message


class LeverOptionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of a lever, as forms show it."""

    name: str
    title: str
    kind: Literal["choice", "whole", "number", "switch", "text", "file"]
    default: OptionValue
    summary: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None


class LeverInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One choice of one lever, as menus and forms show it."""

    name: str
    group: Literal["precision", "fusion", "kv_cache", "pruning", "speculation"]
    title: str
    summary: str
    """One or two sentences: what it does and when it helps."""
    unavailable_reason: str | None = None
    warning: str | None = None
    workloads: tuple[str, ...] = ("train", "prefill", "decode", "generate")
    options: tuple[LeverOptionInfo, ...] = ()


class MachineInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The computer a run happened on. None means unknown; the reason is in `unknown` under the field's name."""

    hostname: str
    system: str
    cpu_name: str
    physical_cores: int
    logical_cores: int
    memory_bytes: int
    cpu_features: tuple[str, ...]
    device: Literal["cpu", "cuda"]
    device_name: str
    compiler: str | None
    gpu_name: str | None = None
    gpu_driver: str | None = None
    gpu_memory_bytes: int | None = None
    compute_capability: tuple[int, int] | None = None
    unknown: dict[str, str] = msgspec.field(default_factory=dict)


class Capabilities(Message, frozen=True):
    """What this machine offers, every unavailable lever with its reason."""

    machine: MachineInfo
    levers: tuple[LeverInfo, ...]
    versions: dict[str, str]
    """Package name -> version, or a sentence why it is missing."""
    presets: tuple[str, ...] = ()
    catalogue: tuple[str, ...] = ()


class Peaks(Message, frozen=True):
    """Ceilings measured on this machine with large buffers. None = not measurable, reason in `unknown`."""

    device: Literal["cpu", "cuda"]
    device_name: str
    threads: int
    read_gbps: float | None
    """10^9 bytes read per second."""
    copy_gbps: float | None
    """10^9 bytes per second, bytes read plus bytes written."""
    gemm_tflops: dict[str, float]
    """Precision name -> 10^12 floating point operations per second of a large matrix product."""
    measured_unix_ns: int
    published: dict[str, float] = msgspec.field(default_factory=dict)
    """Published figures (`memory_gbps`, `bf16_tflops`, ...), when the device is in our table."""
    published_source: str | None = None
    unknown: dict[str, str] = msgspec.field(default_factory=dict)
    reused: bool = False
    disturbed: str | None = None
    """What else kept the processor busy meanwhile; such peaks are too low, and are not kept. None: nothing."""
    run_id: str | None = None
