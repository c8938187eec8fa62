"""Runs the machine's ceilings with torch kernels; how they are measured and kept is in `profiling.machine.ceilings`."""

import time
from collections.abc import Callable

import torch
from torch import Tensor

from gptscope.models.levers import LeverContext
from gptscope.models.precision import RECIPES
from gptscope.profiling.experiment import Variant
from gptscope.profiling.machine import ceilings, facts
from gptscope.profiling.machine.ceilings import get_ceilings, last_level_cache_bytes, measure_ceilings
from gptscope.profiling.metrics.mfu_mbu import peak_name
from gptscope.profiling.records import MachineInfo, MeasurePeaks, Peaks
from gptscope.profiling.worker.output import Output
from gptscope.profiling.worker.request import choose_device, choose_threads, free_memory, to_lever_machine

INT8 = peak_name("int8-dynamic")


class TorchKernels:
    """Large reads, copies and matrix products. Buffers of the latest size are kept, so that a pass makes none."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._source = self._target = torch.empty(0)
        self._matrices: tuple[str, Tensor, Tensor, Tensor] | None = None

    def read(self, n_bytes: int) -> float:
        """Sum a buffer; seconds of the pass."""
        buffer = self._read_buffer(n_bytes)
        return self._seconds(buffer.sum)

    def copy(self, n_bytes: int) -> float:
        """Copy one buffer into another; seconds of the pass."""
        source = self._read_buffer(n_bytes)
        if self._target.nbytes != source.nbytes:
            self._target = torch.empty_like(source)
        target = self._target
        return self._seconds(lambda: target.copy_(source))

    def gemm(self, precision: str, n: int) -> float:
        """Multiply two n x n matrices; seconds of the pass.

        Raises:
            ValueError: This device cannot compute in that precision.
        """
        self._source = self._target = torch.empty(0)  # memory is needed elsewhere now
        if precision == INT8:
            return self._int8_gemm(n)
        if self._matrices is None or self._matrices[0] != precision or self._matrices[1].shape[0] != n:
            dtype = RECIPES[precision].dtype
            self._matrices = None
            a_NN, b_NN = (torch.randn(n, n, device=self._device).to(dtype) for _ in range(2))
            self._matrices = (precision, a_NN, b_NN, torch.empty_like(a_NN))
            RECIPES[precision].apply(torch.nn.Identity(), training=False)  # sets what is process-wide
        _, a_NN, b_NN, out_NN = self._matrices
        return self._seconds(lambda: torch.mm(a_NN, b_NN, out=out_NN))

    def _int8_gemm(self, n: int) -> float:
        if self._matrices is None or self._matrices[0] != INT8 or self._matrices[1].shape[0] != n:
            self._matrices = None
            a_NN, b_NN = (torch.randint(-127, 128, (n, n), dtype=torch.int8, device=self._device) for _ in range(2))
            self._matrices = (INT8, a_NN, b_NN, torch.empty(n, n, dtype=torch.int32, device=self._device))
        _, a_NN, b_NN, out_NN = self._matrices
        # the second matrix transposed, as a layer's weight is
        return self._seconds(lambda: torch._int_mm(a_NN, b_NN.t(), out=out_NN))  # noqa: SLF001  has no other name

    def _read_buffer(self, n_bytes: int) -> Tensor:
        if self._source.nbytes != n_bytes // 4 * 4:
            self._source = self._target = torch.empty(0)
            self._source = torch.ones(n_bytes // 4, device=self._device)
        return self._source

    def _seconds(self, run: Callable[[], object]) -> float:
        self._wait()
        begun_ns = time.perf_counter_ns()
        run()
        self._wait()
        return (time.perf_counter_ns() - begun_ns) / 1e9

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


def measure_peaks(command: MeasurePeaks, output: Output) -> None:
    """Send this machine's ceilings, kept ones unless fresh ones are asked for.

    Raises:
        RequestError: The device cannot be used, or fewer than one thread is asked for.
    """
    device = choose_device(command.device)
    machine = facts.machine_info("cuda" if device.type == "cuda" else "cpu")
    threads = choose_threads(Variant(threads=command.threads))
    before = torch.get_num_threads(), torch.backends.cuda.matmul.fp32_precision
    torch.set_num_threads(threads)
    try:
        peaks, problem = get_ceilings(
            lambda: _measure(device, machine, threads, output),
            machine,
            threads,
            _precisions(machine),
            fresh=command.fresh,
            run_id=output.run_id,
        )
    finally:
        torch.set_num_threads(before[0])
        torch.backends.cuda.matmul.fp32_precision = before[1]
        if device.type == "cuda":
            torch.cuda.empty_cache()
    if problem is not None:
        output.warn(problem)
    output.emit(peaks)


def _measure(device: torch.device, machine: MachineInfo, threads: int, output: Output) -> Peaks:
    on_gpu = device.type == "cuda"
    return measure_ceilings(
        TorchKernels(device),
        device=machine.device,
        device_name=machine.device_name,
        threads=threads,
        precisions=_precisions(machine),
        available_bytes=free_memory(device)[0],
        cache_bytes=torch.cuda.get_device_properties(device).L2_cache_size if on_gpu else last_level_cache_bytes(),
        run_id=output.run_id,
        budget_s=ceilings.BUDGET_S,
        progress=lambda done, total, note: output.progress("peaks", done, total, "measurements", note),
    )


def _precisions(machine: MachineInfo) -> list[str]:
    """Formats of matrix products that this machine can run; recipes that compute in the same one share it."""
    lever_machine = to_lever_machine(machine)
    contexts = {
        name: LeverContext(machine=lever_machine, config=None, workload="decode", precision=name) for name in RECIPES
    }
    able = [name for name, recipe in RECIPES.items() if recipe.unavailable_reason(contexts[name]) is None]
    return list(dict.fromkeys(peak_name(name) for name in able))
