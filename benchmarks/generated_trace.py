"""Made-up traces of any size for the benchmarks: GPU-like, with threads, nested operators, launches and streams.

    python -P benchmarks/generated_trace.py EVENTS FILE.json

The same pattern of a transformer's step is repeated; durations vary, so that all sums and orders are honest work.
"""

import dataclasses
import sys
from pathlib import Path

import numpy as np

from gptscope.profiling.trace import Counters, Flows, Instants, MemoryEvents, Trace, Track

STREAMS = 4
OPERATORS = ("aten::linear", "aten::addmm", "aten::native_layer_norm", "aten::gelu", "aten::add", "aten::softmax")
KERNELS = (
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)>",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int, float)",
    "flash_fwd_kernel",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(int)",
)


def rows(events: int) -> dict[str, np.ndarray]:
    """Columns of a trace with about this many events: per operator an outer and an inner call, a launch, a kernel."""
    random = np.random.default_rng(7)
    calls = events // 4
    length = random.integers(4_000, 60_000, calls)
    outer = np.cumsum(length + random.integers(0, 3_000, calls)) - length
    inner = outer + length // 8
    launch = outer + length // 4
    kernel_length = random.integers(1_000, 40_000, calls) // 16 * STREAMS
    kernel = np.zeros(calls, np.int64)
    for stream in range(STREAMS):
        here = np.arange(stream, calls, STREAMS)
        earliest = launch[here] + 8_000
        end = np.maximum.accumulate(earliest - _before(kernel_length[here]))
        kernel[here] = end + _before(kernel_length[here])
    kind = random.integers(0, len(OPERATORS), calls)
    return {
        "kind": kind,
        "outer": outer,
        "length": length,
        "inner": inner,
        "launch": launch,
        "kernel": kernel,
        "kernel_length": kernel_length,
    }


def _before(lengths: np.ndarray) -> np.ndarray:
    """Sum of all lengths before each."""
    return np.cumsum(lengths) - lengths


def as_trace(events: int) -> Trace:
    """The same as columns, without a file between."""
    made = rows(events)
    calls = made["kind"].size
    number = np.arange(1, calls + 1)
    stream = np.arange(calls) % STREAMS
    zero = np.zeros(calls, np.int64)
    names = [*OPERATORS, *(f"{name}_impl" for name in OPERATORS), "cudaLaunchKernel", *KERNELS]
    kernel_name = made["kind"] + 2 * len(OPERATORS) + 1
    known = {
        "names": names,
        "categories": ["cpu_op", "cuda_runtime", "kernel"],
        "tracks": [Track(1, 10), *(Track(0, 7 + one) for one in range(STREAMS))],
        "texts": [b""],
        "name": _ints(made["kind"], made["kind"] + len(OPERATORS), zero + 2 * len(OPERATORS), kernel_name),
        "category": _ints(zero, zero, zero + 1, zero + 2),
        "track": _ints(zero, zero, zero, stream + 1),
        "start_ns": np.concatenate((made["outer"], made["inner"], made["launch"], made["kernel"])),
        "duration_ns": np.concatenate(
            (made["length"], made["length"] * 3 // 4, made["length"] // 4, made["kernel_length"])
        ),
        "unfinished": np.zeros(4 * calls, bool),
        "correlation": _ints(zero, zero, number, number),
        "external_id": _ints(number, number, number, number),
        "device": _ints(zero - 1, zero - 1, zero - 1, zero),
        "stream": _ints(zero - 1, zero - 1, zero - 1, stream + 7),
        "sequence": _ints(*(zero - 1,) * 4),
        "moved_bytes": _ints(*(zero - 1,) * 4),
        "place": np.arange(4 * calls),
        "instants": Instants(),
        "counters": Counters(),
        "flows": Flows(),
        "memory": MemoryEvents(),
    }
    needed = [one.name for one in dataclasses.fields(Trace) if one.default is one.default_factory]
    empty = {name: np.zeros(4 * calls, np.int32) for name in needed if name not in known}  # inputs, sequences: none
    return Trace(**known, **empty)


def _ints(*columns: np.ndarray) -> np.ndarray:
    return np.concatenate(columns).astype(np.int32)


def write(path: Path, events: int) -> None:
    """Write it as Kineto does, with arguments."""
    made = rows(events)
    columns = zip(*(made[name].tolist() for name in made), strict=True)
    calls_in_step = max(len(made["kind"]) // 50, 1)
    begins = made["outer"][::calls_in_step].tolist()
    ends = [*(made["outer"] + made["length"])[calls_in_step - 1 :: calls_in_step].tolist()]
    top = '{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"Made-up GPU"}],"traceEvents":[\n'
    with path.open("w") as file:
        file.write(top)
        for number, (begin, end) in enumerate(zip(begins, ends, strict=False)):
            file.write(_event(f"ProfilerStep#{number}", "user_annotation", 1, 10, begin, end - begin, "{}"))
        for number, (kind, outer, length, inner, launch, kernel, kernel_length) in enumerate(columns, 1):
            dims = f'"Input Dims":[[8,{kind * 64},768]]'
            args = f'{{"External id":{number},"Record function id":0,"Ev Idx":{number},{dims}}}'
            file.write(_event(OPERATORS[kind], "cpu_op", 1, 10, outer, length, args))
            file.write(_event(OPERATORS[kind] + "_impl", "cpu_op", 1, 10, inner, length * 3 // 4, args))
            link = f'"correlation":{number},"External id":{number}'
            file.write(_event("cudaLaunchKernel", "cuda_runtime", 1, 10, launch, length // 4, f'{{"cbid":211,{link}}}'))
            stream = (number - 1) % STREAMS
            shape = '"registers per thread":32,"grid":[256,1,1],"block":[128,1,1]'
            args = f'{{"device":0,"stream":{7 + stream},{link},{shape}}}'
            file.write(_event(KERNELS[kind], "kernel", 0, 7 + stream, kernel, kernel_length, args))
        file.write('{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"python"}}\n]}\n')


def _event(name: str, category: str, pid: int, tid: int, start_ns: int, length_ns: int, args: str) -> str:
    ts, dur = f"{start_ns // 1000}.{start_ns % 1000:03}", f"{length_ns // 1000}.{length_ns % 1000:03}"
    where = f'"pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur}'
    return f'{{"ph":"X","cat":"{category}","name":"{name}",{where},"args":{args}}},\n'


if __name__ == "__main__":
    write(Path(sys.argv[2]), int(sys.argv[1]))
