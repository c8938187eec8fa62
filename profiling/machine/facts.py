"""Facts about this computer: processor, memory, C++ compiler, GPU. Needs no torch.

What only one system can tell sits in a small function with a fallback; what stays unknown is None with the reason in
`MachineInfo.unknown`.
"""

import functools
import importlib.metadata
import os
import platform
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from gptscope.profiling.machine.compiler import Compiler, find_compiler
from gptscope.profiling.records import MachineInfo

_CPUINFO = Path("/proc/cpuinfo")
_CUDA_PACKAGES = ("transformer_engine", "transformer_engine_torch", "nvidia-ml-py")


@dataclass(frozen=True, slots=True)
class Gpu:
    """The first NVIDIA GPU as its driver describes it. Memory in bytes."""

    name: str
    driver: str
    memory_bytes: int
    compute_capability: tuple[int, int]


def machine_info(device: Literal["cpu", "cuda"] = "cpu", *, check_compiler: bool = True) -> MachineInfo:
    """Describe this computer.

    Args:
        device: Where the model runs; decides `device_name` only.
        check_compiler: Compile a trial file with the C++ compiler (about half a second, once per process). False
            leaves `compiler` None with that reason.

    Returns:
        Every fact that this system gives; the others are None with their reason in `unknown`.
    """
    unknown: dict[str, str] = {}
    compiler = find_compiler() if check_compiler else Compiler(None, "The compiler was not checked.")
    if compiler.reason is not None:
        unknown["compiler"] = compiler.reason
    gpu = find_gpu()
    if isinstance(gpu, str):
        unknown["gpu_name"] = gpu
    known_gpu = gpu if isinstance(gpu, Gpu) else None
    features = cpu_features()
    if not features:
        unknown["cpu_features"] = f"{platform.system()} does not list instruction sets where gptscope looks."
    name = cpu_name()
    return MachineInfo(
        hostname=socket.gethostname(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpu_name=name,
        physical_cores=physical_cores(),
        logical_cores=psutil.cpu_count() or os.cpu_count() or 1,
        memory_bytes=memory_limit_bytes(),
        cpu_features=features,
        device=device,
        device_name=(known_gpu.name if known_gpu else "CUDA device") if device == "cuda" else name,
        compiler=compiler.path,
        gpu_name=known_gpu.name if known_gpu else None,
        gpu_driver=known_gpu.driver if known_gpu else None,
        gpu_memory_bytes=known_gpu.memory_bytes if known_gpu else None,
        compute_capability=known_gpu.compute_capability if known_gpu else None,
        unknown=unknown,
    )


def physical_cores() -> int:
    """Cores that this process may use, hyper-threads counted once, as far as the system tells."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    quota = _cgroup_cores()
    physical = psutil.cpu_count(logical=False) or usable
    return max(1, min(physical, usable, quota or usable))


def _cgroup_cores() -> int | None:
    """Whole cores that the container's CPU quota allows (Linux, cgroup 2); None = no limit known."""
    limits = []
    for folder in _cgroup_folders():
        try:
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        except (OSError, ValueError):
            continue
        if quota != "max":
            limits.append(max(1, int(quota) // int(period)))
    return min(limits, default=None)


@functools.cache
def _cgroup_folders() -> tuple[Path, ...]:
    """This process's control group and the groups around it (Linux, cgroup 2), innermost first."""
    root = Path("/sys/fs/cgroup")
    try:
        found = re.search(r"^0::/(.*)$", Path("/proc/self/cgroup").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return ()
    own = root / found[1] if found else root
    return (own, *(folder for folder in own.parents if folder == root or root in folder.parents))


def memory_limit_bytes() -> int:
    """Memory of the computer, or of the container when that is less."""
    limits = (_cgroup_number(folder / "memory.max") for folder in _cgroup_folders())
    return min((int(psutil.virtual_memory().total), *(limit for limit in limits if limit is not None)))


def memory_available_bytes() -> int:
    """Memory that this process can still take without swapping; respects containers' limits (cgroup 2)."""
    available = int(psutil.virtual_memory().available)
    for folder in _cgroup_folders():
        limit, used = _cgroup_number(folder / "memory.max"), _cgroup_number(folder / "memory.current")
        if limit is not None and used is not None:
            available = min(available, max(0, limit - used + _reclaimable_bytes(folder)))
    return available


def _cgroup_number(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such group, or "max": no limit
        return None


def _reclaimable_bytes(folder: Path) -> int:
    """File cache that a container gives back under pressure."""
    try:
        text = (folder / "memory.stat").read_text(encoding="ascii")
    except OSError:
        return 0
    found = re.search(r"^inactive_file (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0


@functools.cache
def cpu_name() -> str:
    """The processor's marketing name, or its architecture where the system does not tell."""
    for key in ("model name", "Hardware", "Model"):
        if value := _cpuinfo().get(key):
            return value
    if sys.platform == "darwin":
        return _sysctl("machdep.cpu.brand_string") or platform.machine()
    if sys.platform == "win32":
        return _windows_cpu_name() or platform.processor() or platform.machine()
    return platform.processor() or platform.machine() or "unknown processor"


@functools.cache
def cpu_features() -> tuple[str, ...]:
    """Lower-case names of the instruction sets, sorted, as Linux names them; empty where the system does not tell."""
    info = _cpuinfo()
    listed = info.get("flags") or info.get("Features")
    if listed:
        return tuple(sorted(set(listed.lower().split())))
    if sys.platform == "darwin":
        names = " ".join(_sysctl(key) or "" for key in ("machdep.cpu.features", "machdep.cpu.leaf7_features"))
        return tuple(sorted({_LINUX_NAMES.get(name, name) for name in names.lower().replace(".", "_").split()}))
    return ()


_LINUX_NAMES = {"avx1_0": "avx", "avx512bf16": "avx512_bf16", "avx512fp16": "avx512_fp16"}


@functools.cache
def _cpuinfo() -> dict[str, str]:
    """The first processor's entries in Linux's /proc/cpuinfo; empty elsewhere."""
    try:
        text = _CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _sysctl(key: str) -> str | None:
    try:
        done = subprocess.run(["sysctl", "-n", key], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _windows_cpu_name() -> str | None:
    if sys.platform == "win32":
        import winreg  # exists on Windows only

        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"HARDWARE\DESCRIPTION\System\CentralProcessor\0") as key:
                return str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).strip()
        except OSError:
            return None
    return None


@functools.cache
def find_gpu() -> Gpu | str:
    """The first NVIDIA GPU, or a sentence why there is none."""
    try:
        import pynvml
    except ImportError:
        return "The package nvidia-ml-py is not installed, so NVIDIA GPUs cannot be looked for."
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return f"No NVIDIA driver answers ({error})."
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        return Gpu(
            name=_text(pynvml.nvmlDeviceGetName(handle)),
            driver=_text(pynvml.nvmlSystemGetDriverVersion()),
            memory_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
            compute_capability=tuple(pynvml.nvmlDeviceGetCudaComputeCapability(handle)),
        )
    except pynvml.NVMLError as error:
        return f"The NVIDIA driver lists no usable GPU ({error})."
    finally:
        pynvml.nvmlShutdown()


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide speed and numbers, or a sentence why one is missing."""
    versions = {"python": platform.python_version()}
    names = ("gptscope", "torch", "numpy", "transformers", "tokenizers", "safetensors", "gguf", *_CUDA_PACKAGES)
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = _ABSENT.get(name, "not installed")
    return versions


_ABSENT = {
    "transformer_engine": "not installed: needs Linux with an NVIDIA GPU and CUDA; pip install 'gptscope[te]'",
    "transformer_engine_torch": "not installed: comes with transformer_engine",
    "nvidia-ml-py": "not installed: NVIDIA GPUs cannot be sampled without it",
}
