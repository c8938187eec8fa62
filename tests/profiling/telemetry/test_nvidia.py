# ruff: noqa: N802, N815 - names as in pynvml
"""NVML through a stand-in for the module pynvml: readings, what is missing, and no GPU at all."""

import types

import pytest

from gptscope.profiling.records import GpuSample
from gptscope.profiling.telemetry.nvidia import NvidiaSource, open_nvidia


class NVMLError(Exception):
    pass


class FakeNvml:
    """Behaves like pynvml with one H200; functions in `refused` raise as on a GPU that lacks them."""

    NVMLError = NVMLError
    NVML_TEMPERATURE_GPU = 0
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_GPM_METRICS_GET_VERSION = 1
    NVML_GPM_METRIC_DRAM_BW_UTIL = 10

    def __init__(self, refused=(), reasons=0):
        self.refused, self.reasons = set(refused), reasons
        self.samples = self.freed = 0
        self.opened: list[object] = []

    def __getattribute__(self, name):
        if name.startswith("nvml") and name in super().__getattribute__("refused"):

            def refuse(*_):
                raise NVMLError("Not Supported")

            return refuse
        return super().__getattribute__(name)

    def nvmlInit(self):
        self.opened.append("init")

    def nvmlDeviceGetHandleByIndex(self, index):
        self.opened.append(index)
        return "handle"

    def nvmlDeviceGetHandleByUUID(self, uuid):
        self.opened.append(uuid)
        return "handle"

    def nvmlDeviceGetUtilizationRates(self, handle):
        return types.SimpleNamespace(gpu=87, memory=40)

    def nvmlDeviceGetMemoryInfo(self, handle):
        return types.SimpleNamespace(used=5 << 30, free=100 << 30, total=105 << 30)

    def nvmlDeviceGetPowerUsage(self, handle):
        return 412_500

    def nvmlDeviceGetTemperature(self, handle, sensor):
        return 61

    def nvmlDeviceGetClockInfo(self, handle, clock):
        return {1: 1980, 2: 3201}[clock]

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle):
        return self.reasons

    def nvmlGpmQueryDeviceSupport(self, handle):
        return types.SimpleNamespace(isSupportedDevice=1)

    def nvmlGpmSampleAlloc(self):
        self.samples += 1
        return types.SimpleNamespace(number=self.samples)

    def nvmlGpmSampleGet(self, handle, sample):
        return sample

    def nvmlGpmSampleFree(self, sample):
        self.freed += 1

    def c_nvmlGpmMetricsGet_t(self):
        return types.SimpleNamespace(metrics=[types.SimpleNamespace(nvmlReturn=0, value=0.0)])

    def nvmlGpmMetricsGet(self, query):
        assert (query.numMetrics, query.metrics[0].metricId) == (1, 10)
        assert query.sample2.number == query.sample1.number + 1
        query.metrics[0].value = 64.5


def test_a_gpu_that_tells_everything():
    nvml = FakeNvml(reasons=0x4 | 0x40 | 0x1)
    source = open_nvidia(nvml, visible="0")
    assert isinstance(source, NvidiaSource)
    first = source.sample()
    assert first.dram_active_percent is None, "a rate needs two looks at the counter"
    assert source.sample() == GpuSample(
        utilisation_percent=87.0,
        memory_used_bytes=5 << 30,
        power_w=412.5,
        temperature_c=61.0,
        sm_clock_mhz=1980.0,
        memory_clock_mhz=3201.0,
        throttle_reasons=("power limit", "hardware thermal slowdown"),
        dram_active_percent=64.5,
    )
    assert source.free_bytes() == 100 << 30
    for _ in range(5):
        source.sample()
    assert nvml.samples - nvml.freed == 1, "samples are given back"


def test_what_a_gpu_does_not_tell_is_unknown_and_never_zero():
    refused = [name for name in dir(FakeNvml) if name.startswith(("nvmlDeviceGetU", "nvmlDeviceGetP", "nvmlGpm"))]
    refused += ["nvmlDeviceGetTemperature", "nvmlDeviceGetClockInfo", "nvmlDeviceGetMemoryInfo"]
    source = open_nvidia(FakeNvml(refused), visible="0")
    assert isinstance(source, NvidiaSource)
    source.sample()
    assert source.sample() == GpuSample()
    assert source.free_bytes() is None


def test_an_older_package_has_the_older_name_for_throttle_reasons():
    class Older(FakeNvml):
        nvmlDeviceGetCurrentClocksEventReasons = property()  # no such attribute
        nvmlDeviceGetCurrentClocksThrottleReasons = FakeNvml.nvmlDeviceGetCurrentClocksEventReasons

    source = open_nvidia(Older(reasons=0x8), visible="0")
    assert isinstance(source, NvidiaSource)
    assert source.throttle_reasons() == ("hardware slowdown",)


@pytest.mark.parametrize(
    ("visible", "opened"), [("2,3", 2), ("GPU-1f2e", "GPU-1f2e"), (" 1 ", 1), ("MIG-77", "MIG-77")]
)
def test_the_gpu_that_the_worker_will_use_is_sampled(visible, opened):
    nvml = FakeNvml()
    assert isinstance(open_nvidia(nvml, visible=visible), NvidiaSource)
    assert nvml.opened == ["init", opened]


@pytest.mark.parametrize("visible", ["", "-1"])
def test_a_hidden_gpu_is_a_reason(visible):
    assert "CUDA_VISIBLE_DEVICES" in open_nvidia(FakeNvml(), visible=visible)


def test_a_missing_driver_is_a_reason():
    reason = open_nvidia(FakeNvml(refused=["nvmlInit"]), visible="0")
    assert reason == "No NVIDIA GPU can be read here: Not Supported."


def test_the_real_package_has_every_name_that_is_used():
    pynvml = pytest.importorskip("pynvml")
    missing = [name for name in dir(FakeNvml) if name[:1] != "_" and not hasattr(pynvml, name)]
    assert missing == []
    assert "value" in dict(pynvml.c_nvmlGpmMetric_t._fields_)


def test_a_machine_without_a_driver_gives_a_sentence():
    source = open_nvidia(visible="0")
    assert isinstance(source, NvidiaSource) or source.startswith("No NVIDIA GPU can be read here")
