"""Ceilings: measured once, kept, measured again when asked or when what was kept is damaged."""

import math
from types import SimpleNamespace

import msgspec
import pytest

from gptscope.profiling.machine import ceilings
from gptscope.profiling.machine.ceilings import PeaksCache, buffer_bytes, get_ceilings, measure_ceilings
from gptscope.profiling.machine.published import PUBLISHED, published_peaks

MIB = 1 << 20
GIB = 1 << 30


class FakeKernels:
    """A machine that reads 40 GB/s, copies 30 GB/s and multiplies at 0.1 TFLOP/s, sometimes disturbed."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def _noisy(self, seconds: float) -> float:
        return seconds * (1.0 if len(self.calls) % 3 == 0 else 1.7)

    def read(self, n_bytes: int) -> float:
        self.calls.append(("read", n_bytes))
        return self._noisy(n_bytes / 40e9)

    def copy(self, n_bytes: int) -> float:
        self.calls.append(("copy", n_bytes))
        return self._noisy(2 * n_bytes / 30e9)

    def gemm(self, precision: str, n: int) -> float:
        if precision == "tf32":
            raise ValueError("TF32 needs an NVIDIA GPU.")
        self.calls.append((precision, n))
        return self._noisy(2 * n**3 / 0.1e12)


def measure(kernels=None, **changes):
    values = {
        "device": "cpu",
        "device_name": "cpu",
        "threads": 2,
        "precisions": ("fp32", "tf32"),
        "available_bytes": 16 * GIB,
        "cache_bytes": 300 * MIB,
    }
    return measure_ceilings(kernels or FakeKernels(), **(values | changes))


def test_the_best_pass_counts_and_what_cannot_be_measured_says_why():
    peaks = measure()
    assert peaks.read_gbps == pytest.approx(40.0)
    assert peaks.copy_gbps == pytest.approx(30.0)  # bytes read plus bytes written
    assert peaks.gemm_tflops == {"fp32": pytest.approx(0.1)}
    assert peaks.unknown == {"tf32": "TF32 needs an NVIDIA GPU."}
    assert not peaks.reused


def test_progress_tells_every_measurement():
    told = []
    measure(progress=lambda done, total, note: told.append((done, total, note)))
    assert told == [(0, 4, "read_gbps"), (1, 4, "copy_gbps"), (2, 4, "fp32"), (3, 4, "tf32"), (4, 4, "")]


def test_products_grow_until_one_takes_long_enough():
    kernels = FakeKernels()
    measure(kernels)
    sizes = [n for what, n in kernels.calls if what == "fp32"]
    assert sizes[0] == 256
    assert max(sizes) in {1024, 2048}  # 2 x 1024^3 at 0.1 TFLOP/s takes 21 ms, or 36 when disturbed


@pytest.mark.parametrize(
    ("device", "free", "cache", "size"),
    [
        ("cpu", 16 * GIB, 300 * MIB, 1200 * MIB),  # four times the cache
        ("cpu", 16 * GIB, 8 * MIB, 256 * MIB),
        ("cpu", 16 * GIB, None, 256 * MIB),
        ("cpu", 3 * GIB, 300 * MIB, 512 * MIB),  # a sixth of what is free
        ("cpu", 1 * GIB, 300 * MIB, None),
        ("cpu", 1 * GIB, 8 * MIB, 1 * GIB // 6 // 4096 * 4096),
        ("cuda", 80 * GIB, 50 * MIB, 2 * GIB),
    ],
)
def test_buffers_exceed_the_cache_and_spare_the_memory(device, free, cache, size):
    assert buffer_bytes(device, free, cache) == size


def test_too_little_memory_leaves_the_bandwidth_unknown_with_a_reason():
    peaks = measure(available_bytes=512 * MIB)
    assert peaks.read_gbps is None
    assert "free memory" in peaks.unknown["read_gbps"]
    assert peaks.gemm_tflops


def test_kernels_that_run_out_of_memory_are_a_reason_not_a_crash():
    class Small(FakeKernels):
        def copy(self, n_bytes: int) -> float:
            raise MemoryError

    assert measure(Small()).unknown["copy_gbps"] == "not enough memory"


def test_slow_kernels_stop_at_the_budget(monkeypatch):
    now = [0.0]

    class Slow(FakeKernels):
        def read(self, n_bytes: int) -> float:
            now[0] += 1.0
            return 1.0

        copy = read

        def gemm(self, precision: str, n: int) -> float:
            now[0] += 1.0
            return 1.0

    monkeypatch.setattr(ceilings.time, "perf_counter", lambda: now[0])
    peaks = measure(Slow(), precisions=("fp32", "fp16"), budget_s=4.0)
    assert peaks.gemm_tflops
    assert now[0] <= 10.0  # two passes of each of four measurements are the least


@pytest.fixture
def quiet(monkeypatch):
    """Other processes of the machine that runs the tests do not decide what they say."""
    monkeypatch.setattr(ceilings.OtherLoad, "sentence", lambda _: None)


def test_peaks_of_a_busy_machine_are_told_and_not_kept(tmp_path, make, monkeypatch):
    clock = iter([(0.0, 100.0), (2.0, 101.6)])
    monkeypatch.setattr(ceilings.OtherLoad, "_now", staticmethod(lambda: next(clock)))
    cache = PeaksCache(tmp_path / "peaks")
    peaks, sentence = get_ceilings(measure, make.machine(), 2, ("fp32",), cache=cache)
    assert peaks.disturbed == "other processes used 80 % of a core"
    assert "too low and were not kept" in sentence
    assert cache.load(make.machine(), 2, ("fp32",)) is None


@pytest.mark.parametrize(("own_s", "sentence"), [(3.0, None), (1.0, "other processes used 100 % of a core")])
def test_the_measuring_process_itself_is_no_disturbance(own_s, sentence, monkeypatch):
    now = {"wall": 10.0, "user": 50.0, "own": 7.0}
    monkeypatch.setattr(ceilings.time, "perf_counter", lambda: now["wall"])
    monkeypatch.setattr(ceilings.time, "process_time", lambda: now["own"])
    monkeypatch.setattr(ceilings.psutil, "cpu_times", lambda: SimpleNamespace(user=now["user"], steal=0.5, idle=99.0))
    load = ceilings.OtherLoad()
    now.update(wall=12.0, user=53.0, own=7.0 + own_s)
    assert load.sentence() == sentence


def test_peaks_are_kept_per_machine_and_threads(tmp_path, make, quiet):
    cache, machine = PeaksCache(tmp_path / "peaks"), make.machine()
    first, warning = get_ceilings(measure, machine, 2, ("fp32",), cache=cache, run_id="a")
    assert (first.reused, first.run_id, warning) == (False, "a", None)

    def never():
        raise AssertionError("measured although kept")

    again, _ = get_ceilings(never, machine, 2, ("fp32", "tf32"), cache=cache, run_id="b")
    assert (again.reused, again.run_id) == (True, "b")
    assert msgspec.structs.replace(again, reused=False, run_id="a") == first
    for other in ({"threads": 4}, {"machine": msgspec.structs.replace(machine, cpu_name="another")}):
        arguments = {"machine": machine, "threads": 2} | other
        with pytest.raises(AssertionError):
            get_ceilings(never, arguments["machine"], arguments["threads"], ("fp32",), cache=cache)


@pytest.mark.parametrize("why", ["fresh", "damaged", "lacks a precision"])
def test_peaks_are_measured_again_when_needed(why, tmp_path, make, quiet):
    cache, machine = PeaksCache(tmp_path), make.machine()
    get_ceilings(measure, machine, 2, ("fp32",), cache=cache)
    if why == "damaged":
        (file,) = tmp_path.glob("*.json")
        file.write_bytes(b'{"type": "peaks", "device"')
    wanted = ("fp32", "bf16") if why == "lacks a precision" else ("fp32",)
    peaks, _ = get_ceilings(measure, machine, 2, wanted, cache=cache, fresh=why == "fresh")
    assert not peaks.reused


def test_a_folder_that_cannot_be_written_costs_only_the_keeping(tmp_path, make, quiet):
    (tmp_path / "file").write_text("")
    peaks, warning = get_ceilings(measure, make.machine(), 2, ("fp32",), cache=PeaksCache(tmp_path / "file" / "x"))
    assert peaks.read_gbps is not None
    assert "could not be kept" in warning


def test_published_peaks_need_the_whole_name():
    assert published_peaks("NVIDIA H100 80GB HBM3").figures["memory_gbps"] == 3350.0
    assert published_peaks("Tesla T4").figures["int8_tflops"] == 130.0
    assert published_peaks("NVIDIA GeForce RTX 4090 Laptop GPU") is None
    assert published_peaks("NVIDIA A10G") is None
    assert published_peaks("some CPU") is None


def test_published_figures_are_plausible_and_have_sources():
    keys = {"memory_gbps"} | {f"{p}_tflops" for p in ("fp32", "tf32", "bf16", "fp16", "fp8", "int8")}
    for one in PUBLISHED:
        assert one.source
        assert set(one.figures) <= keys
        assert all(math.isfinite(value) and value > 0 for value in one.figures.values())
        if "tf32_tflops" in one.figures and "fp16_tflops" in one.figures:
            # NVIDIA's tensor cores do TF32 at half the FP16 rate; the double would be a figure with sparsity
            assert one.figures["fp16_tflops"] / one.figures["tf32_tflops"] == pytest.approx(2.0, rel=0.03)
        if "fp8_tflops" in one.figures:
            assert one.figures["fp8_tflops"] / one.figures["fp16_tflops"] == pytest.approx(2.0, rel=0.03)


def test_a_gpu_gets_its_published_figures():
    peaks = measure(device="cuda", device_name="NVIDIA L4", available_bytes=20 * GIB, cache_bytes=48 * MIB)
    assert peaks.published["memory_gbps"] == 300.0
    assert "L4" in peaks.published_source
