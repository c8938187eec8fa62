"""The kernels behind the ceilings do what they say, and a measurement leaves the process as it was."""

from pathlib import Path

import msgspec
import platformdirs
import pytest
import torch

from gptscope.models.gemm import W8A8_OPS
from gptscope.models.precision import RECIPES
from gptscope.profiling.machine import ceilings
from gptscope.profiling.metrics.mfu_mbu import peak_name
from gptscope.profiling.records import MeasurePeaks, Peaks
from gptscope.profiling.worker import peaks
from gptscope.profiling.worker.failures import RequestError
from gptscope.profiling.worker.peaks import TorchKernels, measure_peaks


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small buffers, a short budget, a cache folder of our own."""
    monkeypatch.setattr(ceilings, "MIN_BUFFER_BYTES", {"cpu": 1 << 20, "cuda": 1 << 20})
    monkeypatch.setattr(peaks, "last_level_cache_bytes", lambda: None)
    monkeypatch.setattr(ceilings, "BUDGET_S", 0.2)
    monkeypatch.setattr(ceilings, "LARGEST_GEMM", 256)

    def undisturbed(*values, **options) -> Peaks:
        """Other tests and programs may use this machine; whether that matters is not the worker's to judge."""
        return msgspec.structs.replace(ceilings.measure_ceilings(*values, **options), disturbed=None)

    monkeypatch.setattr(peaks, "measure_ceilings", undisturbed)
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda _name: str(tmp_path))
    return tmp_path


def test_every_kernel_takes_time_and_more_for_more():
    kernels = TorchKernels(torch.device("cpu"))
    for run in (kernels.read, kernels.copy):
        run(1 << 24)
        assert min(run(1 << 24) for _ in range(3)) > 0
    least = [min(kernels.gemm("fp32", n) for _ in range(4)) for n in (64, 512)]
    assert 0 < least[0] < least[1]


def test_peaks_are_measured_once_and_then_kept(kit, small):
    output = kit.collected()
    output.run_id = "r"
    measure_peaks(MeasurePeaks(device="cpu", threads=1), output)
    measure_peaks(MeasurePeaks(device="cpu", threads=1), output)
    first, second = output.of(Peaks)
    assert (first.reused, second.reused) == (False, True)
    assert first.read_gbps == second.read_gbps > 0
    assert {"fp32", "bf16", "fp16"} <= first.gemm_tflops.keys() | first.unknown.keys()
    assert first.gemm_tflops["fp32"] > 0
    assert first.gemm_tflops["int8"] > 0
    assert not {"int8-dynamic", "int8-weight-only", "fp8-delayed"} & first.gemm_tflops.keys(), "they share a peak"
    assert (first.threads, first.run_id, second.run_id) == (1, "r", "r")
    measure_peaks(MeasurePeaks(device="cpu", threads=1, fresh=True), output)
    assert output.of(Peaks)[2].reused is False


def test_threads_and_matrix_settings_are_restored(kit, small):
    before = torch.get_num_threads(), torch.backends.cuda.matmul.fp32_precision
    measure_peaks(MeasurePeaks(device="cpu", threads=before[0] + 1), kit.collected())
    assert (torch.get_num_threads(), torch.backends.cuda.matmul.fp32_precision) == before


def test_no_threads_are_refused(kit, small):
    with pytest.raises(RequestError, match="threads is 0"):
        measure_peaks(MeasurePeaks(device="cpu", threads=0), kit.collected())


def test_every_recipe_is_held_against_a_peak_that_is_measured():
    plain = {"fp32", "tf32", "bf16", "fp16"}
    for name in RECIPES:
        assert peak_name(name) in plain | {"int8"}, name
        assert (name in plain) == (peak_name(name) == name), name
    with_products = {name for name, recipe in RECIPES.items() if getattr(recipe, "products", None) == W8A8_OPS}
    assert {name for name in RECIPES if peak_name(name) == "int8"} == with_products
