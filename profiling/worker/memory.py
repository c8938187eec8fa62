"""Peak memory of this process and of its GPU."""

import sys
from pathlib import Path

import psutil
import torch

_RESET_PEAK = "5"  # proc_pid_clear_refs(5): "reset the peak resident set size"


def reset_peak(device: torch.device) -> None:
    """Forget the peak so far, so that what loading needed does not count. Linux and CUDA only; else the peak stays."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    try:
        Path("/proc/self/clear_refs").write_text(_RESET_PEAK, encoding="ascii")
    except OSError:
        return  # other systems have no such file; some containers forbid it


def process_peak_bytes() -> int:
    """Largest resident memory of this process since `reset_peak`, or since its start where that has no effect."""
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    memory = psutil.Process().memory_info()
    if sys.platform == "win32":
        return int(memory.peak_wset)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)


def device_peak_bytes(device: torch.device) -> int | None:
    """Largest memory that tensors took on the GPU since `reset_peak`; None on a CPU."""
    return int(torch.cuda.max_memory_allocated(device)) if device.type == "cuda" else None
