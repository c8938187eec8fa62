"""Peaks that vendors publish for common NVIDIA GPUs, with where they stand.

Dense figures, without sparsity (vendors often print the double, with 2:4 sparsity). What no source that we read states
is left out: it is unknown, not derived. A published peak is an upper bound at boost clock; the measured one beside it
is what this machine really gives.

Keys: `memory_gbps` in 10^9 bytes/s; `fp32_tflops` (no tensor cores), `tf32_tflops`, `bf16_tflops`, `fp16_tflops`,
`fp8_tflops` in 10^12 FLOP/s; `int8_tflops` in 10^12 operations/s.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PublishedPeaks:
    """Figures of one device and the title of the document that states them."""

    pattern: str
    """Regular expression that a device name as the driver gives it must match as a whole."""
    figures: dict[str, float]
    source: str


_HOPPER_SXM = {"fp32": 67.0, "tf32": 494.7, "bf16": 989.4, "fp16": 989.4, "fp8": 1978.9, "int8": 1978.9}
_A100 = {"fp32": 19.5, "tf32": 156.0, "bf16": 312.0, "fp16": 312.0, "int8": 624.0}


def _entry(pattern: str, source: str, *, memory: float, **compute: float) -> PublishedPeaks:
    """One row of the table; `compute` is by precision."""
    return PublishedPeaks(pattern, {"memory_gbps": memory} | {f"{k}_tflops": v for k, v in compute.items()}, source)


PUBLISHED: tuple[PublishedPeaks, ...] = (
    _entry(
        r"(NVIDIA )?B200",
        "NVIDIA Blackwell Architecture Technical Brief (HGX B200, 1000 W)",
        memory=8000.0,
        fp32=80.0,
        tf32=1100.0,
        bf16=2250.0,
        fp16=2250.0,
        fp8=4500.0,
        int8=4500.0,
    ),
    _entry(
        r"(NVIDIA )?H200",
        "NVIDIA H200 Tensor Core GPU Datasheet; NVIDIA H100 Tensor Core GPU Architecture whitepaper",
        memory=4800.0,
        **_HOPPER_SXM,
    ),
    _entry(
        r"(NVIDIA )?H100 80GB HBM3",
        "NVIDIA H100 Tensor Core GPU Datasheet; NVIDIA H100 Tensor Core GPU Architecture whitepaper",
        memory=3350.0,
        **_HOPPER_SXM,
    ),
    _entry(
        r"(NVIDIA )?H100 PCIe",
        "NVIDIA H100 Tensor Core GPU Datasheet (figures with sparsity, halved)",
        memory=2000.0,
        fp32=51.0,
        tf32=378.0,
        bf16=756.5,
        fp16=756.5,
        fp8=1513.0,
        int8=1513.0,
    ),
    _entry(r"(NVIDIA )?A100-SXM4-80GB", "NVIDIA A100 Tensor Core GPU Datasheet", memory=2039.0, **_A100),
    _entry(r"(NVIDIA )?A100 80GB PCIe", "NVIDIA A100 Tensor Core GPU Datasheet", memory=1935.0, **_A100),
    _entry(r"(NVIDIA )?A100-(SXM4|PCIE)-40GB", "NVIDIA A100 Tensor Core GPU Datasheet", memory=1555.0, **_A100),
    _entry(
        r"(NVIDIA )?L40S",
        "NVIDIA L40S Datasheet",
        memory=864.0,
        fp32=91.6,
        tf32=183.0,
        bf16=362.05,
        fp16=362.05,
        fp8=733.0,
        int8=733.0,
    ),
    _entry(
        r"(NVIDIA )?L40",
        "NVIDIA L40 Datasheet",
        memory=864.0,
        fp32=90.5,
        tf32=90.5,
        bf16=181.05,
        fp16=181.05,
        fp8=362.0,
        int8=362.0,
    ),
    _entry(
        r"(NVIDIA )?L4",
        "NVIDIA L4 Tensor Core GPU Datasheet (figures with sparsity, halved)",
        memory=300.0,
        fp32=30.3,
        tf32=60.0,
        fp16=121.0,
        fp8=242.5,
        int8=242.5,
    ),
    _entry(
        r"(NVIDIA )?A40",
        "NVIDIA A40 Datasheet",
        memory=696.0,
        fp32=37.4,
        tf32=74.8,
        bf16=149.7,
        fp16=149.7,
        int8=299.3,
    ),
    _entry(r"(NVIDIA )?A10", "NVIDIA A10 Tensor Core GPU Datasheet", memory=600.0, fp32=31.2, fp16=125.0),
    _entry(
        r"(NVIDIA |Tesla )?V100-SXM2-(16|32)GB.*",
        "NVIDIA V100 Tensor Core GPU Datasheet",
        memory=900.0,
        fp32=15.7,
        fp16=125.0,
    ),
    _entry(
        r"(NVIDIA |Tesla )?T4",
        "NVIDIA T4 Tensor Core GPU Datasheet",
        memory=320.0,
        fp32=8.1,
        fp16=65.0,
        int8=130.0,
    ),
    _entry(r"(NVIDIA )?GeForce RTX 5090", "NVIDIA RTX Blackwell GPU Architecture whitepaper", memory=1792.0),
    _entry(
        r"(NVIDIA )?GeForce RTX 4090",
        "NVIDIA Ada GPU Architecture whitepaper (tensor cores with FP32 accumulation)",
        memory=1008.0,
        fp32=82.6,
        tf32=82.6,
        bf16=165.2,
        fp16=165.2,
        fp8=330.3,
        int8=660.6,
    ),
    _entry(r"(NVIDIA )?GeForce RTX 3090", "NVIDIA Ampere GA102 GPU Architecture whitepaper", memory=936.0, fp32=35.6),
    _entry(r"(NVIDIA )?RTX A6000", "NVIDIA RTX A6000 Datasheet", memory=768.0, fp32=38.7),
)


def published_peaks(device_name: str) -> PublishedPeaks | None:
    """The published figures of a device, or None when it is not in the table.

    The whole name must match: a laptop's GPU or another memory size is another device.
    """
    for one in PUBLISHED:
        if re.fullmatch(one.pattern, device_name.strip()):
            return one
    return None
