"""Plain sentences about what would make the program faster, each with the numbers behind it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gptscope.profiling.trace.analysis.copies import copy_sums
from gptscope.profiling.trace.analysis.gaps import (
    DATA_LOADING,
    LAUNCH_BOUND,
    SYNCHRONISATION,
    GapSums,
    gap_sums,
    synchronising,
)
from gptscope.profiling.trace.analysis.kernels import CategorySums, category_sums
from gptscope.profiling.trace.analysis.launches import graph_sums
from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.analysis.tensor_cores import tensor_core_use
from gptscope.profiling.trace.analysis.utilisation import DeviceUse, device_use

_IDLE = 0.1
_EXPOSED = 0.05
_NOTABLE = 0.05
_SMALL_NS = 10_000
_LONG_GAP_NS = 200_000
"""Launching an operator takes no longer than this; the host did something else."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One finding."""

    topic: str
    sentence: str
    weight: float
    """Share of the time that it is about; larger ones come first."""
    numbers: dict[str, Any]
    """What the sentence rests on; times in nanoseconds."""


def advise(
    linked: Linked,
    categories: list[CategorySums] | None = None,
    gaps: list[GapSums] | None = None,
    devices: list[DeviceUse] | None = None,
) -> list[Advice]:
    """Findings, those about most time first. None is given where the numbers say nothing.

    Args:
        linked: The trace.
        categories: Its tables, where they are at hand; else they are made.
        gaps: As above.
        devices: As above.
    """
    found: list[Advice] = []
    categories = category_sums(linked) if categories is None else categories
    if linked.has_device:
        gaps = gap_sums(linked) if gaps is None else gaps
        for use in device_use(linked) if devices is None else devices:
            found += _of_device(linked, use, [g for g in gaps if g.device == use.device])
        found += _of_tensor_cores(linked)
        found += _of_copies(linked)
    found += _of_categories(categories, "GPU" if linked.has_device else "CPU")
    if linked.trace.in_categories("python_function").any():
        sentence = "Python stacks were recorded: host times are longer than without, so gaps seem wider than they are."
        found.append(Advice("overhead", sentence, 0.0, {}))
    return sorted(found, key=lambda a: -a.weight)


def _of_device(linked: Linked, use: DeviceUse, gaps: list[GapSums]) -> Iterator[Advice]:
    idle = use.idle_ns / use.window_ns if use.window_ns else 0.0
    if idle > _IDLE and gaps:
        yield _of_idle(linked, use, gaps, idle)
    if use.exposed_communication_ns > _EXPOSED * use.window_ns:
        share = use.exposed_communication_ns / use.window_ns
        hidden = 1 - use.exposed_communication_ns / max(use.communication_ns, 1)
        sentence = (
            f"GPU {use.device} spends {_percent(share)} of its time in communication that no computation hides"
            f" ({_time(use.exposed_communication_ns)}; {_percent(hidden)} of the communication is hidden): larger"
            " buckets, or overlapping it with the backward pass, would help."
        )
        numbers = {"exposed_ns": use.exposed_communication_ns, "communication_ns": use.communication_ns}
        yield Advice("communication", sentence, share, numbers)
    kernel_ns = linked.trace.duration_ns[linked.work[linked.trace.device[linked.work] == use.device]]
    small = kernel_ns < _SMALL_NS
    if kernel_ns.size >= 100 and small.mean() > 0.5 and not graph_sums(linked):
        sentence = (
            f"{_percent(small.mean())} of the {kernel_ns.size} kernels on GPU {use.device} last less than"
            f" {_time(_SMALL_NS)} (median {_time(float(np.median(kernel_ns)))}): fusing them (torch.compile, fused"
            " kernels) or CUDA graphs would save launches."
        )
        yield Advice("small kernels", sentence, float(kernel_ns[small].sum() / max(use.window_ns, 1)), {
            "kernels": int(kernel_ns.size), "small": int(small.sum()), "median_ns": float(np.median(kernel_ns)),
        })  # fmt: skip


def _of_idle(linked: Linked, use: DeviceUse, gaps: list[GapSums], idle: float) -> Advice:
    main = gaps[0]
    between = sum(g.total_ns for g in gaps)
    share = main.total_ns / max(between, 1)
    lead = (
        f"GPU {use.device} is idle {_percent(idle)} of {_time(use.window_ns)}; {_percent(share)} of that is"
        f" {main.cause} ({main.gaps} gaps, half of the time in gaps of at least {_time(main.typical_ns)})"
    )
    advice = {
        LAUNCH_BOUND: "CUDA graphs, torch.compile or larger batches would help"
        if main.typical_ns < _LONG_GAP_NS
        else "the host's own work between the launches is the limit; see its operators and Python functions there",
        SYNCHRONISATION: _of_waiting(linked),
        DATA_LOADING: "more DataLoader workers, pinned memory or prefetching would help",
    }.get(main.cause, main.meaning)
    numbers: dict[str, Any] = {
        "idle_ns": use.idle_ns, "window_ns": use.window_ns, "cause": main.cause, "cause_ns": main.total_ns,
        "gaps": main.gaps, "median_gap_ns": main.median_ns, "typical_gap_ns": main.typical_ns,
    }  # fmt: skip
    return Advice("idle", f"{lead}: {advice}.", idle, numbers)


def _of_waiting(linked: Linked) -> str:
    trace = linked.trace
    rows = np.flatnonzero(synchronising(linked) & trace.launches() & ~trace.unfinished)
    time = int(trace.duration_ns[rows].sum())
    names = sorted({trace.name_of(row) for row in rows[:1000].tolist()})
    calls = f"{rows.size} calls ({', '.join(names[:3])})" if names else "calls such as .item()"
    return f"the host waits in {calls} for {_time(time)}; avoid reading results back in every step"


def _of_tensor_cores(linked: Linked) -> Iterator[Advice]:
    use = tensor_core_use(linked)
    share = use.unused_ns / max(int(linked.trace.duration_ns[linked.work].sum()), 1)
    if share < _NOTABLE or not _may_have_tensor_cores(linked):
        return
    sentence = (
        f"Matrix products that take {_time(use.unused_ns)} ({_percent(share)} of the GPU's work) do not run on tensor"
        " cores: BF16, FP16 or TF32 would use them."
    )
    numbers = {"unused_ns": use.unused_ns, "used_ns": use.used_ns, "unknown_ns": use.unknown_ns}
    yield Advice("tensor cores", sentence, share, numbers)


def _may_have_tensor_cores(linked: Linked) -> bool:
    properties = linked.trace.metadata.get("deviceProperties")
    for one in properties if isinstance(properties, list) else ():
        major = one.get("computeMajor") if isinstance(one, dict) else None
        if isinstance(major, int):
            return major >= 7
    return True


def _of_copies(linked: Linked) -> Iterator[Advice]:
    work_ns = max(int(linked.trace.duration_ns[linked.work].sum()), 1)
    for copy in copy_sums(linked):
        share = copy.total_ns / work_ns
        if copy.pageable and share > _NOTABLE:
            rate = "" if copy.bytes_per_s is None else f" at {copy.bytes_per_s / 1e9:.3g} GB/s"
            sentence = (
                f"{copy.calls} copies {copy.name.removeprefix('Memcpy ')} take {_time(copy.total_ns)}{rate}"
                f" ({_percent(share)} of the GPU's work): pin the host's memory and copy with non_blocking=True."
            )
            numbers = {"calls": copy.calls, "total_ns": copy.total_ns, "bytes": copy.bytes}
            yield Advice("copies", sentence, share, numbers)


def _of_categories(categories: list[CategorySums], device: str) -> Iterator[Advice]:
    by_name = {c.category: c for c in categories}
    light = [by_name[n] for n in ("elementwise", "norm", "copy", "quantize") if n in by_name]
    share, time = sum(c.share for c in light), sum(c.total_ns for c in light)
    if share > 0.3:
        parts = ", ".join(f"{c.category} {_percent(c.share)}" for c in sorted(light, key=lambda c: -c.share))
        sentence = (
            f"{_percent(share)} of the {device}'s work ({_time(time)}) only moves memory ({parts}): fused kernels or"
            " torch.compile would read and write it less often."
        )
        yield Advice("fusion", sentence, share, {"total_ns": time, "share": share})


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _time(ns: float) -> str:
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= factor:
            return f"{ns / factor:.3g} {unit}"
    return f"{ns:.0f} ns"
