"""The last touches to a trace's columns: modern categories, numbers of devices, what lies outside its time."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.grouping import group_by
from gptscope.profiling.trace.growing import Interner, narrow
from gptscope.profiling.trace.table import GPU_CATEGORIES, OLD_CATEGORIES, Bools, Int32, Int64, Track

_INT64 = range(-(2**63), 2**63)
_HOUR_NS = 3_600_000_000_000
_LAST_DIGITS = re.compile(r"\d{1,9}$")
_LEGACY_CATEGORIES = {"CUDA functions": "kernel", "CPU functions": "cpu_op"}
"""Process names of PyTorch before 1.8, whose events have no category."""


def modern_categories(
    written: list[str], category: Int32, tracks: list[Track], track: Int32
) -> tuple[list[str], Int32]:
    """Categories by their names of today; legacy events get theirs from their process."""
    names = Interner()
    number = np.array([names[OLD_CATEGORIES.get(one, one)] for one in written], dtype=np.int32)
    result = number[category] if category.size else category
    for pid, meant in _LEGACY_CATEGORIES.items():
        of_pid = np.array([t.pid == pid for t in tracks], dtype=bool)
        if of_pid.any() and "" in names:
            result = np.where(of_pid[track] & (result == names[""]), names[meant], result).astype(np.int32)
    return names.values_in_order, result


def device_numbers(
    device: npt.NDArray[Any], categories: list[str], category: Int32, tracks: list[Track], track: Int32
) -> npt.NDArray[Any]:
    """Device numbers; device work that does not name its device has it as process id.

    A number that stands in several processes' rows is as many devices (merged ranks number theirs alike), and then the
    process ids tell them apart.
    """
    on_device = np.array([c in GPU_CATEGORIES for c in categories], dtype=bool)
    if not on_device.any():
        return device
    work = on_device[category]
    pid = np.array([_device_of(t) for t in tracks], dtype=np.int64)[track]
    rows = np.flatnonzero(work & (device >= 0) & (pid >= 0))
    pairs = group_by(device[rows], pid[rows])
    numbers, times = np.unique(device[rows][pairs.first], return_counts=True)
    apart = work & np.isin(device, numbers[times > 1]) & (pid >= 0)
    renamed = (work & (device < 0)) | apart
    return narrow(np.where(renamed, pid, device)) if renamed.any() else device


def _device_of(track: Track) -> int:
    """The device that a track's ids stand for: a number, or the one at the end of a text; -1 for none."""
    ident = track.tid if track.pid in _LEGACY_CATEGORIES else track.pid
    if isinstance(ident, int):
        return ident if ident in _INT64 else -1
    digits = _LAST_DIGITS.search(ident) if isinstance(ident, str) else None
    return int(digits.group()) if digits else -1


def at_zero_among_absolute(start_ns: Int64) -> Bools:
    """Events at time 0 while the others lie at times since the machine's start or since 1970."""
    at_zero = start_ns == 0
    if not at_zero.any() or at_zero.all():
        return np.zeros(start_ns.size, dtype=bool)
    return at_zero if int(np.median(start_ns[~at_zero])) > _HOUR_NS else np.zeros(start_ns.size, dtype=bool)
