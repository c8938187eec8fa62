"""Fusions are recognised by the names that kernels have on an NVIDIA GPU, as seen in real traces."""

import pytest

from gptscope.models.config import PRESETS
from gptscope.models.fusion import FUSIONS
from gptscope.models.gemm import is_gemm, is_linear
from gptscope.models.levers import KernelFact, LeverContext, Machine, ProfileFacts, WorkloadKind


def kernel(name: str, calls: int = 24) -> KernelFact:
    return KernelFact(name=name, calls=calls, self_time_us=1.0)


FLASH = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::half_t> >"
CUDNN = "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x64_4x1x1_kernel0_0"
EFFICIENT = "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<...>::Params)"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>"
LAYER_NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, false>"
RSQRT = "void at::native::vectorized_elementwise_kernel<4, at::native::rsqrt_kernel_cuda(at::TensorIteratorBase&)>"
GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)>"
TANH = "void at::native::vectorized_elementwise_kernel<4, at::native::tanh_kernel_cuda(at::TensorIteratorBase&)>"
FUSED_ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>, FusedAdam>"
)
FOREACH = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOpScalarFunctor>"
)
ADDCDIV = "void at::native::vectorized_elementwise_kernel<4, at::native::addcdiv_cuda_kernel(at::TensorIteratorBase&)>"


@pytest.mark.parametrize(
    ("lever", "workload", "name", "in_effect"),
    [
        ("attention", "prefill", FLASH, True),
        ("attention", "prefill", CUDNN, True),
        ("attention", "prefill", EFFICIENT, True),
        ("attention", "prefill", SOFTMAX, False),
        ("attention", "prefill", "graph_1_cpp_fused__scaled_dot_product_flash_attention_for_cpu_add_3", False),
        ("norm", "prefill", LAYER_NORM, True),
        ("norm", "prefill", RSQRT, False),
        ("mlp", "prefill", GELU, True),
        ("mlp", "prefill", TANH, False),
        ("optimizer", "train", FUSED_ADAM, True),
        ("optimizer", "train", FOREACH, True),
        ("optimizer", "train", ADDCDIV, False),
    ],
)
def test_a_fusion_is_seen_by_its_kernel(
    lever: str, workload: WorkloadKind, name: str, in_effect: bool, machine: Machine
) -> None:
    context = LeverContext(machine=machine, config=PRESETS["gpt2-124m"], workload=workload, precision="bf16")
    facts = ProfileFacts(kernels=[kernel(name)], steps=2, n_layer=12, workload=workload, device="cuda")
    evidence = FUSIONS[lever].evidence(facts, context)
    assert evidence.in_effect is in_effect, evidence.sentence


@pytest.mark.parametrize(("qkv_products", "in_effect"), [(1, True), (3, False)])
def test_merged_qkv_is_counted_apart_from_textbook_attentions_own_products(
    qkv_products: int, in_effect: bool, machine: Machine
) -> None:
    layers, steps = 12, 2
    products = (qkv_products + 3 + 2) * layers + 1  # q, k, v; out, up, down; scores and sum of textbook attention; head
    facts = ProfileFacts(
        kernels=[kernel("nvjet_sm90_tst_64x8_64x16_1x4_h_bz_TNT", products * steps), kernel("splitKreduce_kernel", 99)],
        steps=steps,
        n_layer=layers,
        workload="decode",
        device="cuda",
    )
    context = LeverContext(machine=machine, config=PRESETS["gpt2-124m"], workload="decode", precision="bf16")
    assert FUSIONS["qkv"].evidence(facts, context).in_effect is in_effect


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("ampere_sgemm_32x128_tn", True),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_32x6_tn_align8>", True),
        ("nvjet_sm90_tst_64x8_64x16_1x4_h_bz_TNT", True),
        ("void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128, 16, 4, 4>", True),
        (FLASH, False),
        (CUDNN, False),
        (EFFICIENT, False),
        (LAYER_NORM, False),
    ],
)
def test_weight_products_are_told_from_attention(name: str, product: bool) -> None:
    assert is_linear(kernel(name)) is product


def test_textbook_attentions_products_are_products_but_not_with_weights() -> None:
    assert is_gemm(kernel("aten::bmm"))
    assert not is_linear(kernel("aten::bmm"))
