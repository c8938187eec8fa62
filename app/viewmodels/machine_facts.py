"""What this machine can and cannot do, in one short line per fact, from the capabilities record."""

from dataclasses import dataclass
from typing import Literal

from gptscope.app.viewmodels import formatting as fmt
from gptscope.profiling.records import Capabilities, Peaks


@dataclass(frozen=True)
class MachineFact:
    """`action`: text of a link that mends it."""

    name: str
    text: str
    state: Literal["yes", "later", "no"]
    action: str = ""


def machine_facts(capabilities: Capabilities | None, peaks: Peaks | None) -> tuple[MachineFact, ...]:
    """The list of the first screen; while the engine has not answered, one line that says so."""
    if capabilities is None:
        return (MachineFact("Engine", "looking at this machine…", "later"),)
    machine = capabilities.machine
    bf16 = [f for f in machine.cpu_features if "bf16" in f]
    native = f"native BF16 ({', '.join(sorted(bf16))})" if bf16 else "no native BF16"
    facts = [
        MachineFact("CPU", f"{machine.cpu_name}, {machine.physical_cores} cores, {native}", "yes"),
        MachineFact("Memory", fmt.quantity(machine.memory_bytes, "bytes"), "yes"),
        _bandwidth(peaks),
        MachineFact("Graph compilation", *_compiler(capabilities)),
        _gpu(capabilities),
    ]
    missing = [
        lever for lever in capabilities.levers if lever.unavailable_reason is not None and lever.group == "precision"
    ]
    return (*facts, *(MachineFact(lever.title, f"n/a: {lever.unavailable_reason}", "no") for lever in missing))


def _bandwidth(peaks: Peaks | None) -> MachineFact:
    if peaks is None:
        return MachineFact("Memory bandwidth", "not measured yet", "later", "Measure")
    if peaks.read_gbps is None:
        return MachineFact("Memory bandwidth", fmt.unknown(peaks.unknown.get("read_gbps", "not measurable")), "no")
    text = (
        f"read {fmt.number(peaks.read_gbps)} GB/s, copy {fmt.number(peaks.copy_gbps)} GB/s with {peaks.threads} threads"
    )
    if peaks.disturbed is not None:
        return MachineFact("Memory bandwidth", f"{text}; too low: {peaks.disturbed}", "later", "Measure")
    return MachineFact("Memory bandwidth", text, "yes")


def _compiler(capabilities: Capabilities) -> tuple[str, Literal["yes", "later", "no"]]:
    lever = next((lever for lever in capabilities.levers if lever.name == "compile"), None)
    if lever is not None and lever.unavailable_reason is not None:
        return f"n/a: {lever.unavailable_reason}", "no"
    return (f"{capabilities.machine.compiler} found" if capabilities.machine.compiler else "available"), "yes"


def _gpu(capabilities: Capabilities) -> MachineFact:
    machine = capabilities.machine
    if machine.gpu_name is None:
        return MachineFact("GPU", fmt.unknown(machine.unknown.get("gpu_name", "none found")), "no")
    memory = fmt.quantity(machine.gpu_memory_bytes, "bytes") if machine.gpu_memory_bytes else ""
    return MachineFact("GPU", ", ".join(part for part in (machine.gpu_name, memory) if part), "yes")
