"""Bytes and FLOPs of single operators, counted by hand."""

import pytest

from gptscope.profiling.trace.categories import category_by_name, category_of
from gptscope.profiling.trace.names import collapse_layers, module_tail, short_name
from gptscope.profiling.trace.op_costs import operator_cost
from gptscope.profiling.trace.op_inputs import parse_inputs

F, H, L = "float", "c10::BFloat16", "long int"


def cost(name, dims, types, values=None, list_dtype=None):
    found = operator_cost(name, parse_inputs(dims, types, list_dtype), values)
    return None if found is None else (found.bytes, found.flops)


@pytest.mark.parametrize(
    ("name", "dims", "types", "values", "expected"),
    [
        ("aten::mm", [[3, 4], [4, 5]], [F, F], None, (4 * (12 + 20 + 15), 2 * 3 * 4 * 5)),
        ("aten::addmm", [[5], [3, 4], [4, 5]], [H, H, H], None, (2 * (5 + 12 + 20 + 15), 120)),
        ("aten::mv", [[5, 4], [4]], [H, H], None, (2 * (20 + 4 + 5), 40)),
        ("aten::addmv_", [[5], [5, 4], [4]], [H, H, H], ["", "", "", "0", "1"], (2 * (20 + 4 + 5), 40)),
        ("aten::addmv_", [[5], [5, 4], [4]], [H, H, H], ["", "", "", "1", "1"], (2 * (5 + 20 + 4 + 5), 40)),
        ("aten::bmm", [[2, 3, 4], [2, 4, 5]], [F, F], None, (4 * 2 * (12 + 20 + 15), 240)),
        ("aten::linear", [[2, 3, 4], [5, 4], []], [F, F, ""], None, (4 * (24 + 20 + 30), 2 * 6 * 4 * 5)),
        ("mkldnn::_linear_pointwise", [[1, 4], [5, 4], [5]], [H, H, H], None, (2 * (4 + 20 + 5 + 5), 40)),
        ("mkl::_mkl_linear", [[1, 4], [99], [5, 4], []], [F, F, F, ""], None, (4 * (4 + 20 + 5), 40)),
        ("aten::matmul", [[2, 3, 4], [4, 5]], [F, F], None, (4 * (24 + 20 + 30), 240)),
        ("aten::_int_mm", [[3, 4], [4, 5]], ["signed char"] * 2, None, (12 + 20 + 15 * 4, 120)),
        *(
            (
                "onednn::qlinear_pointwise",
                [[3, 4], [], [], [4, 5], [5], [5]],
                ["signed char", "Scalar", "Scalar", "signed char", "float", "int"],
                ["", "1.", "0", "", "", "", "", "1.", "0", result],
                (12 + 20 + 5 * 4 + 15 * size, 120),
            )
            for result, size in (("6", 4), ("15", 2))
        ),
        # 2 sequences, 4 query heads, 3 queries, 2 key heads, 7 keys, 8 features
        (
            "aten::scaled_dot_product_attention",
            [[2, 4, 3, 8], [2, 2, 7, 8], [2, 2, 7, 8], [1, 1, 3, 7]],
            [F, F, F, "bool"],
            None,
            (4 * (2 * 192 + 2 * 224) + 21, 2 * 2 * 4 * 3 * 7 * 16),
        ),
        ("aten::native_layer_norm", [[6, 8], [], [8], [8], []], [F, "", F, F, ""], None, (4 * (48 + 48 + 8 + 8), None)),
        ("aten::_softmax", [[6, 8], [], []], [F, "Scalar", "Scalar"], None, (4 * 96, None)),
        ("aten::add", [[6, 8], [8], []], [F, F, "Scalar"], None, (4 * (48 + 8 + 48), None)),
        ("aten::mul", [[6, 1], [1, 8]], [H, F], None, (6 * 2 + 8 * 4 + 48 * 4, None)),  # the result is FP32
        ("aten::mul", [[6, 8], []], [H, "double"], None, (48 * 2 + 8 + 48 * 2, None)),  # a number does not widen it
        ("aten::add_", [[6, 8], [8]], [F, F], None, (4 * (48 + 8 + 48), None)),
        ("aten::le", [[1, 8], [6, 1]], [L, L], None, (8 * 14 + 48, None)),
        ("aten::copy_", [[6, 8], [6, 8]], [F, H], None, (48 * 4 + 48 * 2, None)),
        ("aten::fill_", [[6, 8], []], [F, "Scalar"], None, (48 * 4, None)),
        ("aten::embedding", [[100, 8], [2, 3]], [F, L], None, (6 * 8 + 2 * 6 * 8 * 4, None)),
        ("aten::index_select", [[100, 8], [], [6]], [F, "Scalar", L], ["", "0", ""], (6 * 8 + 2 * 48 * 4, None)),
        ("aten::sum", [[6, 8], []], [F, "ScalarList"], ["", "[-1]"], (48 * 4 + 6 * 4, None)),
        ("aten::sum", [[6, 8]], [F], [""], (48 * 4 + 4, None)),
    ],
)
def test_costs_counted_by_hand(name, dims, types, values, expected):
    assert cost(name, dims, types, values) == expected


def test_fused_adamw_reads_four_and_writes_three_values_per_parameter():
    lists = [[[3, 4], [5]]] * 4
    assert cost("aten::_fused_adamw_", lists, ["TensorList"] * 4, None, F) == (7 * 4 * 17, None)


@pytest.mark.parametrize(
    ("name", "dims", "types"),
    [
        ("aten::unknown_op", [[3]], [F]),
        ("aten::mm", [[3, 4], [9, 5]], [F, F]),  # sizes that do not fit
        ("aten::mm", [[3, 4]], [F]),
        ("aten::cat", [[[3], [4]], []], ["TensorList", "Scalar"]),  # the type of its elements is not recorded
        ("aten::embedding", [[], []], ["", ""]),
    ],
)
def test_what_the_record_does_not_tell_is_unknown(name, dims, types):
    assert cost(name, dims, types) is None


def test_without_shapes_there_are_no_inputs():
    assert parse_inputs(None, None) is None


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("aten::addmm", "GEMM"),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", "attention"),
        ("aten::native_layer_norm", "norm"),
        ("aten::add_", "elementwise"),
        ("aten::_softmax", "reduction"),
        ("aten::copy_", "copy"),
        ("aten::view", "other"),
        ("aten::empty", "other"),
        ("autograd::engine::evaluate_function: MmBackward0", "other"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256", "GEMM"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64", "GEMM"),
        ("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128> >", "attention"),
        ("triton_poi_fused_add_0", "elementwise"),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", "GEMM"),
        ("dynamic_per_token_quant_kernel", "quantize"),
        ("triton_red_fused_mean_1", "reduction"),
        ("triton_red_fused__to_copy_mean_mul_1", "reduction"),
        ("triton_per_fused__to_copy_add_mean_mul_pow_rsqrt_2", "norm"),
        ("triton_per_fused_embedding_native_layer_norm_1", "norm"),
        ("triton_poi_fused__to_copy_add_mul_5", "elementwise"),
        ("triton_poi_fused__to_copy_transpose_5", "copy"),
        ("triton_poi_fused_embedding_0", "copy"),
        ("triton_for_fused_0", "elementwise"),
        ("triton_tem_fused_mm_4", "GEMM"),
        ("triton_tem_fused__scaled_mm_3", "GEMM"),
        ("triton_tem_fused_flex_attention_0", "attention"),
        ("void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(int)", "reduction"),
        ("void at::native::RowwiseMomentsCUDAKernel<float>(long)", "norm"),
        ("void transformer_engine::normalization::ln_fwd_tuned_kernel<Traits>(Params)", "norm"),
        ("fused_moe_kernel", "GEMM"),
        ("Memcpy HtoD (Pageable -> Device)", "copy"),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)", "norm"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>{lambda()#1}", "elementwise"),
        ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<AdamFunctor>", "optimizer"),
    ],
)
def test_categories_by_name(name, category):
    assert category_by_name(name) == category


def test_owner_module_and_scope_decide_before_the_name():
    assert category_of("aten::copy_", owner="GEMM") == "GEMM"
    assert category_of("aten::mul", module="blocks.*.attn_norm") == "norm"
    assert category_of("aten::bmm", module="blocks.*.attn.core") == "attention"
    assert category_of("aten::mul", in_optimizer=True, module="blocks.*.attn_norm") == "optimizer"
    assert category_of("aten::copy_", owner="copy", casts=True) == "quantize"
    assert category_of("nccl_kernel", owner="GEMM") == "communication"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("aten::addmm", "addmm"),
        ("mkldnn::_linear_pointwise", "_linear_pointwise"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, X >(int, Y<3>)",
            "add (vectorized_elementwise_kernel)",
        ),
        (
            "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>(Params)",
            "bf16 GEMM 32x32 tn (CUTLASS sm80)",
        ),
        ("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Traits<64, 128> >(Params)", "flash_fwd_kernel"),
    ],
)
def test_short_names(name, short):
    assert short_name(name) == short


def test_module_paths_lose_their_layer_number():
    assert collapse_layers("blocks.11.mlp.down") == "blocks.*.mlp.down"
    assert collapse_layers("transformer.h.0.attn") == "transformer.h.*.attn"
    assert collapse_layers("lm_head") == "lm_head"
    assert module_tail("blocks.*.mlp.down") == "mlp.down"
    assert module_tail("blocks.*") == "block"
    assert module_tail("lm_head") == "lm_head"
