"""Large traces as Kineto lays them out, for measurements: operators with shapes, or operators, launches and kernels."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

_SHAPES = (
    "[[32, 1024], [1024, 4096]]", "[[32, 4096], [4096, 1024]]", "[[8, 16, 128, 64], [8, 16, 64, 128]]", "[[32, 1024]]",
)  # fmt: skip
_TYPES = ('["float", "float"]', '["c10::BFloat16", "c10::BFloat16"]', '["float", "float"]', '["float"]')
_NAMES = ("aten::mm", "aten::linear", "aten::bmm", "aten::add", "aten::mul", "aten::native_layer_norm", "aten::copy_")
_ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_{name}<float>, at::detail::Array<char*,"
    " 3> >(int, at::native::CUDAFunctor_{name}<float>, at::detail::Array<char*, 3>)"
)
_KERNELS = (
    *(_ELEMENTWISE.format(name=name) for name in ("add", "mul", "gelu", "silu", "copy", "sum")),
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1",
    "flash_fwd_kernel",
)
_SLICE = """  {{
    "ph": "X", "cat": "{cat}", "name": "{name}", "pid": {pid}, "tid": {tid},
    "ts": {ts}, "dur": {dur},
    "args": {{
      {args}
    }}
  }}"""
_FLOW = """  {{
    "ph": "{ph}", "id": {id}, "pid": {pid}, "tid": {tid}, "ts": {ts},
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }}"""
_CPU_ARGS = (
    '"External id": {n},"Record function id": 0, "Sequence number": {group}, "Fwd thread id": 0, '
    '"Concrete Inputs": ["", "", ""], "Input type": {types}, "Input Strides": {shapes}, "Input Dims": {shapes}, '
    '"Ev Idx": {n}'
)
_KERNEL_ARGS = (
    '"External id": {n}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {n}, '
    '"registers per thread": 32, "shared memory": 0, "blocks per SM": 1.5, "warps per SM": 12.0, '
    '"grid": [{grid}, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 38'
)


def generate(path: Path, kind: str, count: int) -> None:
    """Write a trace of about `count` events: `cpu` or `gpu`; gzipped when the name ends in `.gz`."""
    events = cpu_events(count) if kind == "cpu" else gpu_events(count)
    devices = [{"id": 0, "name": "Test GPU", "computeMajor": 9}] if kind == "gpu" else []
    with gzip.open(path, "wt", compresslevel=3) if path.suffix == ".gz" else path.open("w") as file:
        file.write(f'{{\n  "schemaVersion": 1,\n  "deviceProperties": {json.dumps(devices)},\n  "traceEvents": [\n')
        for i, event in enumerate(events):
            file.write((",\n" if i else "") + event)
        file.write("\n  ]\n}\n")


def cpu_events(count: int) -> Iterator[str]:
    """Operators in operators, with shapes, types and values, as `record_shapes` writes them."""
    for i in range(count):
        group, level = divmod(i, 4)
        kind = group % len(_SHAPES)
        args = _CPU_ARGS.format(n=i + 1, group=group, types=_TYPES[kind], shapes=_SHAPES[kind])
        yield _SLICE.format(
            cat="cpu_op", name=_NAMES[(group + level) % len(_NAMES)], pid=4242, tid=4242, args=args,
            ts=f"{1_000_000 + group * 100 + level * 2}.{i % 1000:03d}",
            dur=f"{90 - level * 20}.{i * 7 % 1000:03d}",
        )  # fmt: skip


def gpu_events(count: int) -> Iterator[str]:
    """An operator, its launch, its kernel and the arrow between them, again and again."""
    for i in range(count // 5):
        start, n = 1_000_000 + i * 20, i + 1
        host = {"pid": 4242, "tid": 4242}
        yield _SLICE.format(
            cat="cpu_op", name=_NAMES[i % len(_NAMES)], ts=f"{start}.125", dur="15.5", **host,
            args=f'"External id": {n}, "Ev Idx": {i}',
        )  # fmt: skip
        yield _SLICE.format(
            cat="cuda_runtime", name="cudaLaunchKernel", ts=f"{start + 4}.250", dur="5.25", **host,
            args=f'"External id": {n}, "cbid": 211, "correlation": {n}',
        )  # fmt: skip
        yield _SLICE.format(
            cat="kernel", name=_KERNELS[i % len(_KERNELS)], pid=0, tid=7, ts=f"{start + 12}.375", dur=f"1{i % 8}.125",
            args=_KERNEL_ARGS.format(n=n, grid=i % 997),
        )  # fmt: skip
        yield _FLOW.format(ph="s", id=n, ts=f"{start + 4}.250", **host)
        yield _FLOW.format(ph="f", id=n, ts=f"{start + 12}.375", pid=0, tid=7)
