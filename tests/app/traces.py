"""A small trace that looks like one of a GPU: steps, modules, operators, launches, kernels, flows, counters, memory."""

import gzip
import json
from pathlib import Path
from typing import Any

KINDS = (
    ("norm", "aten::layer_norm", "void layer_norm_kernel<float>(int)", 6),
    ("attn.qkv", "aten::linear", "ampere_bf16_s16816gemm_bf16_128x128_tn", 30),
    ("attn.core", "aten::scaled_dot_product_attention", "flash_fwd_kernel", 22),
    ("mlp.up", "aten::linear", "ampere_bf16_s16816gemm_bf16_128x256_tn", 40),
    ("mlp.act", "aten::gelu", "void vectorized_elementwise_kernel<GeluFunctor>(int)", 9),
)
STEPS, LAYERS = 3, 4


def slice_event(
    name: str, category: str, start: float, duration: float, pid: int, tid: int, **args: Any
) -> dict[str, Any]:
    """An event with a duration; times in microseconds."""
    at = {"pid": pid, "tid": tid, "ts": start, "dur": duration}
    return {"ph": "X", "cat": category, "name": name, **at, "args": args}


def gpu_trace() -> dict[str, Any]:
    """Times in microseconds from a million on; every kernel starts 8 us after its launch or when the stream is free."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 10, "args": {"name": "thread 10 (main)"}},
    ]
    now, free, number = 1_000_000.0, 0.0, 0

    def span(name: str, category: str, start: float, end: float, pid: int = 1, tid: int = 10, **args: Any) -> None:
        events.append(
            {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid}
            | {"ts": round(start, 3), "dur": round(end - start, 3), "args": args}
        )

    for step in range(STEPS):
        step_begin = now
        now += 5
        for layer in range(LAYERS):
            layer_begin = now
            for module, operator, kernel, length in KINDS:
                number += 1
                begin = now
                launch = begin + 6
                span(
                    "cudaLaunchKernel",
                    "cuda_runtime",
                    launch,
                    launch + 5,
                    correlation=number,
                    **{"External id": number},
                )
                start = max(launch + 8, free)
                free = start + length + step
                span(
                    kernel,
                    "kernel",
                    start,
                    free,
                    0,
                    7,
                    device=0,
                    stream=7,
                    correlation=number,
                    **{"External id": number},
                )
                for phase, pid, tid, time in (("s", 1, 10, launch), ("f", 0, 7, start)):
                    arrow = {"ph": phase, "id": number, "pid": pid, "tid": tid, "ts": round(time, 3), "bp": "e"}
                    events.append(arrow | {"cat": "ac2g", "name": "ac2g"})
                now = begin + 14
                span(operator, "cpu_op", begin + 1, now, **{"External id": number, "Input Dims": [[8, 64], [64, 64]]})
                span(f"module: blocks.{layer}.{module}", "user_annotation", begin + 0.5, now + 0.5)
                now += 2
            span(f"module: blocks.{layer}", "user_annotation", layer_begin, now)
            memory = {"Device Type": 1, "Device Id": 0, "Bytes": 1024, "Total Allocated": 1e6 + number * 4096}
            events.append({"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 10, "ts": now, "args": memory})
            events.append({"ph": "C", "name": "GPU Utilization", "pid": 0, "ts": now, "args": {"percent": 40 + layer}})
            now += 1
        now = max(now, free) + 4
        span("cudaDeviceSynchronize", "cuda_runtime", now - 4, now)
        span(f"ProfilerStep#{step}", "user_annotation", step_begin, now)
        events.append({"ph": "X", "cat": "cpu_op", "name": "marker", "pid": 1, "tid": 11, "ts": now - 1, "dur": 0})
        now += 10
    device = {"id": 0, "name": "Made-up GPU", "totalGlobalMem": 1 << 33}
    return {"schemaVersion": 1, "deviceProperties": [device], "distributedInfo": {"rank": 2}, "traceEvents": events}


def write_trace(path: Path, *, slower: float = 1.0) -> Path:
    """Write it, gzipped when the name says so; `slower` stretches the kernels."""
    trace = gpu_trace()
    for event in trace["traceEvents"]:
        if event.get("cat") == "kernel":
            event["dur"] = round(event["dur"] * slower, 3)
    text = json.dumps(trace).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    return path
