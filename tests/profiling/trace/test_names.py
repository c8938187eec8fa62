"""Short names that a person can read."""

import time

import pytest

from gptscope.profiling.trace.categories import category_by_name
from gptscope.profiling.trace.names import collapse_layers, short_name
from gptscope.profiling.trace.product_names import demangled

VECTORIZED = "void at::native::vectorized_elementwise_kernel<4, at::native::{}, std::array<char*, 3ul> >(int)"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("aten::mm", "mm"),
        ("<string>(1): <module>", "<string>: <module>"),
        ("train.py(30): <lambda>", "train.py: <lambda>"),
        (VECTORIZED.format("CUDAFunctor_add<float>"), "add (vectorized_elementwise_kernel)"),
        ("triton_poi_fused_add_mul_0", "triton_poi_fused_add_mul_0"),
        ("triton_red_fused__softmax_3", "triton_red_fused__softmax_3"),
        (
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off",
            "bf16 GEMM 128x128x64 tn (xmma sm90)",
        ),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>(Params)",
            "bf16 GEMM 64x64 tn (CUTLASS sm80)",
        ),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(P)", "GEMM 128x32 nn (CUTLASS simt sm80)"),
        (
            "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64_2x1x1_0_tnn_align8_pingpong",
            "bf16 GEMM 128x128x64 tn (CUTLASS sm90)",
        ),
        ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>>>(P)", "GemmUniversal"),
        ("void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<X<2>>>>(P)", "FlashAttnFwdSm90"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x64_MI16x16x1_SN", "bf16 GEMM 64x32x64 tn (Tensile)"),
        ("Cijk_Ailk_Bjlk_S_B_Bias_HA_S_SAV_UserArgs_MT16x16x128_MI16", "fp32 GEMM 16x16x128 nt (Tensile)"),
        ("ampere_sgemm_32x32_sliced1x4_tn", "ampere_sgemm_32x32_sliced1x4_tn"),
        ("void pytorch_flash::flash_fwd_kernel<Traits<64, 128>, false>(Params)", "flash_fwd_kernel"),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bLi256EEvPT0_", "add_rmsnorm_quant_kernel"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
    ],
)
def test_kernels_have_short_names(name: str, short: str):
    assert short_name(name) == short


@pytest.mark.parametrize(
    "name", ["_ZN", "_ZN5ab", "_ZN99999999999999999999x", "<", ">>", "(", "", "cutlass_80_tensorop_x"]
)
def test_odd_names_do_not_break_it(name: str):
    assert short_name(name) is not None
    assert demangled(name) is not None


@pytest.mark.parametrize(
    ("path", "collapsed"),
    [
        ("blocks.3.mlp.down", "blocks.*.mlp.down"),
        ("GPT_0.Block_11.Linear_7", "GPT.Block.Linear"),
        ("model.layers.0", "model.layers.*"),
        ("lm_head", "lm_head"),
    ],
)
def test_layers_share_a_path(path: str, collapsed: str):
    assert collapse_layers(path) == collapsed


@pytest.mark.parametrize("part", ["a", "9", "(", "<", "cudnn", "sm90_xmma_gemm_a1_", "_ZN9", "kernel"])
def test_very_long_names_take_no_time(part: str):
    name = "_ZN" + part * (30_000 // len(part))
    begun = time.perf_counter()
    short_name(name)
    category_by_name(name)
    assert time.perf_counter() - begun < 5
