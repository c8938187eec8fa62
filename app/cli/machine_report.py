"""Prints what `doctor` and `bench-machine` know about the machine."""

from collections.abc import Mapping, Sequence

from gptscope.app.cli.console import Cell, Column, Console
from gptscope.app.viewmodels import formatting as f
from gptscope.profiling.records import LeverInfo, MachineInfo, Peaks

_TELLING_FEATURES = ("avx", "amx", "fma", "f16c", "sse4", "neon", "asimd", "sve", "sme", "bf16", "i8mm", "fp16", "dot")
_PUBLISHED_UNITS = {"gbps": "GB/s", "tflops": "TFLOP/s"}


def print_peaks(console: Console, peaks: Peaks) -> None:
    """Measured ceilings, published ones beside them, and where they come from."""
    kept = f"kept from {f.when(peaks.measured_unix_ns)}; --fresh measures again"
    console.line(f"{peaks.device_name}, {peaks.threads} threads ({kept if peaks.reused else 'measured now'})")
    rows: list[tuple[str, str, str]] = [
        ("memory read", _or_reason(peaks.read_gbps, "GB/s", peaks, "read_gbps"), _published(peaks, "memory_gbps")),
        ("memory copy (read + write)", _or_reason(peaks.copy_gbps, "GB/s", peaks, "copy_gbps"), "n/a"),
    ]
    names = dict.fromkeys([*peaks.gemm_tflops, *(n for n in peaks.unknown if not n.endswith("_gbps"))])
    for name in names:
        rate = _or_reason(peaks.gemm_tflops.get(name), "TFLOP/s", peaks, name)
        rows.append((f"matrix product {name}", rate, _published(peaks, f"{name}_tflops")))
    columns = (Column("ceiling", "left"), Column("measured", "left"), Column("published", "left"))
    shown = len(columns) if peaks.published else len(columns) - 1
    console.table(columns[:shown], [row[:shown] for row in rows])
    console.line(f"  published figures: {peaks.published_source or 'none for this device'}", "dim")
    if peaks.disturbed is not None:
        console.line(f"Warning: {peaks.disturbed}: the true peaks are higher, so these are not kept.", "warn")


def _or_reason(value: float | None, unit: str, peaks: Peaks, name: str) -> str:
    return f.unknown(peaks.unknown.get(name, "")) if value is None else f"{f.number(value)} {unit}"


def _published(peaks: Peaks, key: str) -> str:
    value = peaks.published.get(key)
    return "n/a" if value is None else f"{f.number(value)} {_PUBLISHED_UNITS[key.rsplit('_', 1)[-1]]}"


def print_machine(console: Console, machine: MachineInfo) -> None:
    """CPU, memory, GPU, compiler; what is unknown says why."""
    unknown = machine.unknown
    gpu = machine.gpu_name or f.unknown(unknown.get("gpu_name", "no NVIDIA GPU found"))
    if machine.gpu_name:
        details = [f.quantity(machine.gpu_memory_bytes, "bytes", unknown.get("gpu_memory_bytes", ""))]
        if machine.compute_capability is not None:
            details.append("compute capability " + ".".join(map(str, machine.compute_capability)))
        details.append(f"driver {machine.gpu_driver or f.unknown(unknown.get('gpu_driver', ''))}")
        gpu += f" ({', '.join(details)})"
    console.pairs(
        (
            ("System", machine.system),
            ("Processor", machine.cpu_name),
            ("Cores", f"{machine.physical_cores} physical, {machine.logical_cores} logical"),
            ("Memory", f.quantity(machine.memory_bytes, "bytes")),
            ("CPU features", _features(machine)),
            ("GPU", gpu),
            ("Runs on", f"{machine.device} ({machine.device_name})"),
            ("C++ compiler", machine.compiler or f.unknown(unknown.get("compiler", "none found"))),
        ),
        "Machine",
    )


def _features(machine: MachineInfo) -> str:
    """The vector and matrix instruction sets; --json has them all."""
    if not machine.cpu_features:
        return f.unknown(machine.unknown.get("cpu_features", ""))
    telling = [name for name in machine.cpu_features if name.startswith(_TELLING_FEATURES) and name != "smep"]
    return ", ".join(telling or machine.cpu_features)


def print_versions(console: Console, versions: Mapping[str, str]) -> None:
    """Packages, or why they are missing."""
    console.pairs(tuple(versions.items()), "Versions")


def print_levers(console: Console, levers: Sequence[LeverInfo]) -> None:
    """Every lever: available, with a warning, or not, with the reason."""
    console.line("Levers", "title")
    width = max((len(f"{lever.group} {lever.name}") for lever in levers), default=0)
    for lever in levers:
        cell = _state(lever)
        console.line(f"  {f'{lever.group} {lever.name}':<{width}}  {cell.text}", cell.style)


def _state(lever: LeverInfo) -> Cell:
    if lever.unavailable_reason is not None:
        return Cell(f"✗ {lever.unavailable_reason}", "dim")
    return Cell(f"✓ but: {lever.warning}", "warn") if lever.warning is not None else Cell("✓")
