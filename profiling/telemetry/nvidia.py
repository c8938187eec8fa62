"""One NVIDIA GPU through NVML (package nvidia-ml-py, module pynvml). What it does not tell is None, never zero."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

from gptscope.profiling.records import GpuSample

_Value = TypeVar("_Value")

# Bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h). An idle GPU (bit 0) is not slowed down.
_REASONS = {
    0x2: "application clock setting",
    0x4: "power limit",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clock setting",
}
SLOWDOWNS = frozenset(
    {"hardware slowdown", "software thermal slowdown", "hardware thermal slowdown", "power brake"},
)
"""Reasons that spoil a measurement. A power limit does not: large GPUs reach it in normal work."""


class NvidiaSource:
    """Samples the GPU that the worker will use: the first of CUDA_VISIBLE_DEVICES, else GPU 0 of the machine.

    Args:
        nvml: The module `pynvml`, or something that behaves like it.
        handle: The device.
    """

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle
        self._gpm_before: Any = None
        self._gpm = self._ask(lambda: bool(nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice)) or False

    def sample(self) -> GpuSample:
        """One reading of everything."""
        nvml, handle = self._nvml, self._handle
        power_mw = self._ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        return GpuSample(
            utilisation_percent=_float(self._ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu)),
            memory_used_bytes=self._ask(lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).used)),
            power_w=None if power_mw is None else power_mw / 1000.0,
            temperature_c=_float(
                self._ask(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            ),
            sm_clock_mhz=_float(self._ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))),
            memory_clock_mhz=_float(self._ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM))),
            throttle_reasons=self.throttle_reasons(),
            dram_active_percent=self._dram_active() if self._gpm else None,
        )

    def throttle_reasons(self) -> tuple[str, ...]:
        """Why the clocks are below what they could be, in words; empty when they are not, or unknown."""
        nvml = self._nvml
        name = "nvmlDeviceGetCurrentClocksEventReasons"
        if not hasattr(nvml, name):
            name = "nvmlDeviceGetCurrentClocksThrottleReasons"  # before driver series 535
        bits = self._ask(lambda: int(getattr(nvml, name)(self._handle)))
        return tuple(text for bit, text in _REASONS.items() if (bits or 0) & bit)

    def free_bytes(self) -> int | None:
        """Device memory that nobody holds."""
        return self._ask(lambda: int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).free))

    def _dram_active(self) -> float | None:
        """Percent of the DRAM's bandwidth in use since the last call, by the hardware's counter (GPM)."""
        before, self._gpm_before = self._gpm_before, self._ask(self._gpm_sample)
        if before is None:
            return None
        value = None if self._gpm_before is None else self._ask(lambda: self._gpm_metric(before, self._gpm_before))
        self._ask(lambda: self._nvml.nvmlGpmSampleFree(before))
        return value

    def _gpm_sample(self) -> Any:
        sample = self._nvml.nvmlGpmSampleAlloc()
        self._nvml.nvmlGpmSampleGet(self._handle, sample)
        return sample

    def _gpm_metric(self, before: Any, after: Any) -> float:
        query = self._nvml.c_nvmlGpmMetricsGet_t()
        query.version = self._nvml.NVML_GPM_METRICS_GET_VERSION
        query.numMetrics = 1
        query.sample1, query.sample2 = before, after
        query.metrics[0].metricId = self._nvml.NVML_GPM_METRIC_DRAM_BW_UTIL
        self._nvml.nvmlGpmMetricsGet(query)
        if query.metrics[0].nvmlReturn != 0:
            raise self._nvml.NVMLError(query.metrics[0].nvmlReturn)
        return float(query.metrics[0].value)

    def _ask(self, question: Callable[[], _Value]) -> _Value | None:
        try:
            return question()
        except (self._nvml.NVMLError, AttributeError):  # not supported by this GPU, this driver, or this package
            return None


def open_nvidia(nvml: Any = None, visible: str | None = None) -> NvidiaSource | str:
    """The GPU's source, or a sentence why there is none.

    Args:
        nvml: Stands in for the module `pynvml` (tests).
        visible: Stands in for the environment variable CUDA_VISIBLE_DEVICES.
    """
    if nvml is None:
        try:
            import pynvml
        except ImportError:
            return "GPU readings need the package nvidia-ml-py, which is not installed."
        nvml = pynvml
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") if visible is None else visible
    first = "0" if visible is None else visible.split(",")[0].strip()
    if first in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides every GPU."
    try:
        nvml.nvmlInit()
        if first.isdigit():
            handle = nvml.nvmlDeviceGetHandleByIndex(int(first))
        else:
            handle = nvml.nvmlDeviceGetHandleByUUID(first)
    except nvml.NVMLError as error:
        return f"No NVIDIA GPU can be read here: {error}."
    return NvidiaSource(nvml, handle)


def _float(value: Any) -> float | None:
    return None if value is None else float(value)
