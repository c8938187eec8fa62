"""Number formats: where they run, what they warn of, and how a profile proves them."""

from dataclasses import replace

import pytest
import torch

from gptscope.models.levers import KernelFact, LeverContext, Machine, ProfileFacts
from gptscope.models.precision import RECIPES


def question(machine: Machine, precision: str) -> LeverContext:
    return LeverContext(machine=machine, config=None, workload="decode", precision=precision)


def facts(*kernels: KernelFact, device: str = "cpu") -> ProfileFacts:
    return ProfileFacts(kernels=kernels, steps=1, n_layer=2, workload="decode", device=device)


@pytest.mark.parametrize(
    ("device", "capability", "reason"),
    [
        ("cpu", None, "TF32 needs an NVIDIA GPU, Ampere or newer. This machine has none."),
        ("cpu", (9, 0), "TF32 needs an NVIDIA GPU, Ampere or newer. This run is on the CPU."),
        ("cuda", (7, 5), "TF32 needs an NVIDIA GPU, Ampere or newer. This machine's GPU is older."),
        ("cuda", (8, 0), None),
    ],
)
def test_tf32_needs_ampere(
    device: str, capability: tuple[int, int] | None, reason: str | None, machine: Machine
) -> None:
    here = replace(machine, device=device, compute_capability=capability)
    assert RECIPES["tf32"].unavailable_reason(question(here, "tf32")) == reason


@pytest.mark.parametrize(
    ("precision", "features", "warns"),
    [
        ("fp32", set(), False),
        ("bf16", set(), True),
        ("bf16", {"avx512_bf16"}, False),
        ("bf16", {"amx_bf16"}, False),
        ("fp16", {"avx512_bf16"}, True),
        ("fp16", {"avx512_fp16"}, False),
        ("fp16", {"amx_fp16"}, False),
    ],
)
def test_formats_without_native_instructions_warn(
    precision: str, features: set[str], warns: bool, machine: Machine
) -> None:
    here = replace(machine, cpu_features=frozenset(features))
    warning = RECIPES[precision].warning(question(here, precision))
    assert (warning is not None) is warns
    if warning:
        assert precision.upper() in warning
    on_gpu = replace(here, device="cuda")
    assert RECIPES[precision].warning(question(on_gpu, precision)) is None


def test_only_tf32_lets_cuda_round_fp32_products() -> None:
    settings = torch.backends.cuda.matmul
    before = settings.fp32_precision
    try:
        for name, expected in (("tf32", "tf32"), ("fp32", "ieee"), ("tf32", "tf32"), ("bf16", "ieee")):
            RECIPES[name].apply(torch.nn.Linear(2, 2), training=False)
            assert settings.fp32_precision == expected
    finally:
        settings.fp32_precision = before


@pytest.mark.parametrize(
    ("precision", "kernels", "in_effect"),
    [
        ("bf16", [KernelFact(name="aten::mm", calls=9, self_time_us=1, dtypes=("c10::BFloat16",) * 2)], True),
        ("bf16", [KernelFact(name="aten::mm", calls=9, self_time_us=1, dtypes=("float", "float"))], False),
        ("fp16", [KernelFact(name="aten::addmm", calls=9, self_time_us=1, dtypes=("c10::Half",))], True),
        ("fp32", [KernelFact(name="mkl::_mkl_linear", calls=9, self_time_us=1, dtypes=("float",))], True),
        ("fp32", [KernelFact(name="aten::mm", calls=9, self_time_us=1, dtypes=("c10::BFloat16",))], False),
        ("bf16", [KernelFact(name="nvjet_tst_128x64_bf16gemm", calls=9, self_time_us=1)], True),
        ("bf16", [KernelFact(name="ampere_sgemm_128x64_tn", calls=9, self_time_us=1)], False),
        ("fp16", [KernelFact(name="ampere_fp16_s16816gemm_fp16_64x64", calls=9, self_time_us=1)], True),
        ("bf16", [KernelFact(name="aten::mm", calls=9, self_time_us=1)], None),
        ("bf16", [KernelFact(name="aten::add", calls=9, self_time_us=1, dtypes=("c10::BFloat16",))], None),
        ("tf32", [KernelFact(name="cutlass_80_tensorop_s1688gemm_tf32", calls=9, self_time_us=1)], True),
        ("tf32", [KernelFact(name="ampere_sgemm_128x64_tn", calls=9, self_time_us=1)], False),
        ("tf32", [KernelFact(name="gemmk1_kernel", calls=9, self_time_us=1)], None),
    ],
)
def test_evidence_is_the_type_of_the_matrix_products(
    precision: str, kernels: list[KernelFact], in_effect: bool | None, machine: Machine
) -> None:
    evidence = RECIPES[precision].evidence(facts(*kernels), question(machine, precision))
    assert evidence.in_effect is in_effect, evidence.sentence


def test_a_mixture_counts_by_the_majority_of_calls(machine: Machine) -> None:
    mixed = facts(
        KernelFact(name="aten::mm", calls=30, self_time_us=1, dtypes=("c10::BFloat16",)),
        KernelFact(name="aten::mm", calls=2, self_time_us=99, dtypes=("float",)),
    )
    evidence = RECIPES["bf16"].evidence(mixed, question(machine, "bf16"))
    assert evidence.in_effect
    assert "94%" in evidence.sentence
    assert "float32" in evidence.sentence
