"""Byte and FLOP models against counts done by hand, and against torch's own counter on real models."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from gptscope.models.config import PRESETS, GPTConfig
from gptscope.models.gpt import GPT
from gptscope.profiling.metrics.bytes_model import StepBytes, ValueSizes, step_bytes, value_sizes
from gptscope.profiling.metrics.flops_model import step_flops
from gptscope.profiling.metrics.model_ops import ModelShape, shape_of
from gptscope.profiling.metrics.roofline import (
    kernel_gbps,
    kernel_tflops,
    ridge_intensity,
    roofline_points,
)
from gptscope.profiling.records import KernelRow, ModelInfo

FP32 = ValueSizes(weight=4, activation=4, kv=4)
BF16 = ValueSizes(weight=2, activation=2, kv=2)


def info_of(config: GPTConfig, bytes_per_value: int = 4) -> ModelInfo:
    return ModelInfo(
        name="x",
        source="preset",
        family=config.family,
        n_layer=config.n_layer,
        d_model=config.d_model,
        n_head=config.n_head,
        n_kv_head=config.n_kv_head,
        d_head=config.d_head,
        d_ff=config.d_ff,
        vocab_size=config.vocab_size,
        context_length=config.context_length,
        parameters=config.parameter_count,
        weight_bytes=config.parameter_count * bytes_per_value,
        kv_bytes_per_token=config.kv_bytes_per_token(bytes_per_value),
        random_weights=True,
        has_tokenizer=False,
        gated_mlp=config.mlp == "swiglu",
        tied_embeddings=config.tie_embeddings,
        learned_positions=config.position == "learned",
    )


def shape(name: str) -> ModelShape:
    return shape_of(info_of(PRESETS[name]))


def of_one_layer(name: str, cost: Callable[[ModelShape], float]) -> float:
    """What one more layer costs."""
    whole = shape(name)
    return cost(whole) - cost(replace(whole, n_layer=whole.n_layer - 1))


def test_gpt2_layer_flops_by_hand():
    """GPT-2 124M: D 768, 12 heads of 64, F 3072. Two sequences of five tokens, ten rows."""
    by_hand = (
        3 * (2 * 10 * 768 * 768)  # q, k, v
        + 2 * 2 * 12 * 5 * 5 * 64  # q kT: 2 sequences x 12 heads x 5 x 5 dot products of length 64
        + 2 * 2 * 12 * 5 * 5 * 64  # weights times v
        + 2 * 10 * 768 * 768  # out
        + 2 * 10 * 768 * 3072  # up
        + 2 * 10 * 3072 * 768  # down
    )
    assert by_hand == 141_711_360  # 35 389 440 + 153 600 + 11 796 480 + 2 x 47 185 920
    assert of_one_layer("gpt2-124m", lambda s: step_flops(s, "prefill", batch=2, context=5)) == by_hand


def test_llama_layer_flops_by_hand():
    """SmolLM2-135M's shape: D 576, 9 query heads, 3 key/value heads of 64, F 1536. One new token after 99 others."""
    by_hand = (
        2 * 1 * 576 * 576  # q
        + 2 * (2 * 1 * 576 * 192)  # k and v: 3 heads only
        + 2 * 9 * 1 * 100 * 64  # q kT: every query head, keys shared by three heads each
        + 2 * 9 * 1 * 100 * 64  # weights times v
        + 2 * 1 * 576 * 576  # out
        + 2 * (2 * 1 * 576 * 1536)  # gate and up
        + 2 * 1 * 1536 * 576  # down
    )
    assert by_hand == 7_308_288
    assert of_one_layer("llama-135m", lambda s: step_flops(s, "decode", batch=1, context=100)) == by_hand


def test_gpt2_layer_bytes_by_hand():
    """One decode step, FP32: one new token, 100 attended, keys and values from a cache."""
    d, f = 768, 3072
    matrices = 4 * d * d + 2 * d * f
    vectors = 2 * 2 * d + 3 * d + d + f + d  # two LayerNorms, q, k, v, out, up and down biases
    values = (
        matrices
        + vectors
        + (d + d)  # norm: read, write
        + 3 * (d + d)  # q, k, v: each reads its input and writes its output
        + (2 * d + 2 * d)  # new key and value into the cache
        + (d + 2 * 100 * d + d)  # attention: the query, 100 keys and values, the result
        + (d + d)  # out
        + (2 * d + d)  # residual
        + (d + d)  # norm
        + (d + f)  # up
        + (f + f)  # GELU
        + (f + d)  # down
        + (2 * d + d)  # residual
    )
    found = of_one_layer("gpt2-124m", lambda s: step_bytes(s, "decode", FP32, batch=1, context=100).total)
    assert found == 4 * values


def test_llama_layer_bytes_by_hand():
    """One decode step of 2 sequences, BF16, grouped queries: keys and values are a third of the queries' width."""
    d, q, kv, f, b = 576, 576, 192, 1536, 2
    values = (
        (2 * d * q + 2 * d * kv + 3 * d * f)  # q and out, k and v, gate, up and down
        + 2 * d  # two RMSNorm scales, no biases
        + b * (d + d)  # norm
        + b * (d + q)  # q
        + 2 * b * (d + kv)  # k, v
        + 2 * b * (q + kv)  # RoPE reads and writes q and k
        + 2 * (2 * b * kv)  # new keys and values read and stored
        + b * (q + 2 * 100 * kv + q)  # attention
        + b * (q + d)  # out
        + b * 3 * d  # residual
        + b * (d + d)  # norm
        + 2 * b * (d + f)  # gate, up
        + b * (2 * f + f)  # SiLU(gate) times up
        + b * (f + d)  # down
        + b * 3 * d  # residual
    )
    found = of_one_layer("llama-135m", lambda s: step_bytes(s, "decode", BF16, batch=2, context=100).total)
    assert found == 2 * values


def test_a_whole_decode_step_reads_all_weights_but_unread_table_rows():
    config = PRESETS["llama-1.1b"]  # untied: the embedding table is only looked up
    step = step_bytes(shape_of(info_of(config)), "decode", FP32, batch=1, context=100)
    assert step.weights == 4 * (config.parameter_count - 32000 * 2048)
    assert step.kv_read == 100 * config.kv_bytes_per_token(4)
    assert step.kv_written == config.kv_bytes_per_token(4)
    assert step.gradients == step.optimizer == 0
    tied = PRESETS["gpt2-124m"]  # tied: the table is read as the output projection; positions are looked up
    step = step_bytes(shape_of(info_of(tied)), "decode", FP32, batch=1, context=100)
    assert step.weights == 4 * (tied.parameter_count - 1024 * 768)


def test_a_training_step_moves_gradients_and_optimizer_state():
    config = PRESETS["tiny"]
    step = step_bytes(shape_of(info_of(config)), "train", FP32, batch=2, context=8)
    assert step.kv_read == step.kv_written == 0
    assert step.optimizer == 7 * 4 * config.parameter_count
    # Every weight is read again and its gradient written; activations come on top.
    assert step.gradients > 2 * step.weights
    total = step.weights + step.activations + step.gradients + step.optimizer
    assert step.total == total
    assert isinstance(step, StepBytes)


@pytest.mark.parametrize("name", PRESETS)
def test_every_parameter_is_accounted_for(name):
    config = PRESETS[name]
    found = shape(name)
    assert found.parameters == config.parameter_count
    norm = config.d_model * (2 if config.norm == "layernorm" else 1)
    biases = 9 * config.d_model if config.family == "gpt2" else 0  # q, k, v, out, down: 5 D; up: F = 4 D
    assert found.layer_vectors == 2 * norm + biases
    assert found.final_vectors == norm


class ConcatenatingCache:
    """The simplest KV cache: `length` earlier tokens of zeros."""

    def __init__(self, config: GPTConfig, batch: int, length: int) -> None:
        self.length = length
        self._past = torch.zeros(batch, config.n_kv_head, length, config.d_head, device="meta")

    def update(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.cat((self._past, k), dim=2), torch.cat((self._past, v), dim=2)

    def advance(self, tokens: int) -> None:
        self.length += tokens


def counted(config: GPTConfig, kind: str, batch: int, context: int) -> int:
    """What torch counts while the real model runs; tensors without data, so the largest shapes cost nothing."""
    with torch.device("meta"):
        model = GPT(config)
        tokens = torch.zeros(batch, 1 if kind == "decode" else context, dtype=torch.long)
    cache = ConcatenatingCache(config, batch, context - 1) if kind == "decode" else None
    with FlopCounterMode(display=False) as counter:
        logits = model(tokens, cache, last_only=kind == "prefill")
        if kind == "train":
            loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
            loss.backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("kind", ["prefill", "decode", "train"])
@pytest.mark.parametrize("name", PRESETS)
def test_flops_equal_torchs_counter_on_the_real_model(name, kind):
    config = replace(PRESETS[name], n_layer=2)
    assert step_flops(shape_of(info_of(config)), kind, batch=3, context=32) == counted(config, kind, 3, 32)


@pytest.mark.parametrize(
    "change",
    [
        {"family": "gpt_neox", "norm": "layernorm", "mlp": "gelu", "parallel_residual": True, "mlp_bias": True},
        {"family": "qwen3", "qk_norm": True, "d_head": 32, "rotary_dim": 32},
        {"family": "qwen2", "qkv_bias": True},
    ],
)
def test_other_families_count_alike(change):
    config = replace(PRESETS["tiny"], **change)
    for kind in ("prefill", "decode", "train"):
        assert step_flops(shape_of(info_of(config)), kind, batch=2, context=9) == counted(config, kind, 2, 9)
    assert shape_of(info_of(config)).parameters == config.parameter_count


def test_without_a_cache_a_decode_step_is_a_whole_prefill():
    one = shape("gpt2-124m")
    assert step_flops(one, "decode", batch=2, context=50, kv_cache="none") == step_flops(
        one, "prefill", batch=2, context=50
    )
    step = step_bytes(one, "decode", FP32, batch=2, context=50, kv_cache="none")
    assert step.kv_read == step.kv_written == 0
    assert step.activations > step_bytes(one, "decode", FP32, batch=2, context=50).activations * 40


def test_sizes_come_from_the_loaded_model():
    info = info_of(PRESETS["llama-135m"], bytes_per_value=2)
    found = value_sizes(
        precision="bf16",
        parameters=info.parameters,
        weight_bytes=info.weight_bytes,
        kv_bytes_per_token=info.kv_bytes_per_token,
        shape=shape_of(info),
    )
    assert found == BF16
    with pytest.raises(ValueError, match=r"does not know the precision 'int3'"):
        value_sizes(precision="int3", parameters=1, weight_bytes=1, kv_bytes_per_token=1, shape=shape_of(info))


def test_what_a_quantized_model_says_of_itself_goes_before_its_precisions_name():
    info = info_of(replace(PRESETS["llama-135m"], tie_embeddings=False))
    shape_found = shape_of(info)
    found = value_sizes(
        precision="int8-dynamic",
        parameters=info.parameters,
        weight_bytes=info.weight_bytes,
        kv_bytes_per_token=info.kv_bytes_per_token / 4,
        shape=shape_found,
        activation_bytes=2.0,
        read_weight_bytes=info.parameters - shape_found.lookup_tables,
    )
    assert (found.weight, found.activation, found.kv) == (1.0, 2.0, 1.0)
    moved = step_bytes(shape_found, "decode", found, batch=1, context=100)
    assert moved.weights == info.parameters - shape_found.lookup_tables, "a byte per weight, the table left out"


def test_memory_is_the_limit_below_the_ridge():
    assert ridge_intensity(peak_tflops=1.0, peak_gbps=50.0) == pytest.approx(20.0)


def test_kernel_rates_use_the_time_of_everything_inside_the_operator():
    row = KernelRow(
        name="aten::mm",
        category="GEMM",
        calls=1,
        self_time_us=80.0,
        total_time_us=100.0,
        share=1.0,
        bytes=1_000_000,
        flops=5_000_000,
    )
    assert kernel_gbps(row) == pytest.approx(10.0)  # 1 MB in 100 us
    assert kernel_tflops(row) == pytest.approx(0.05)
    (point,) = roofline_points([row])
    assert point.intensity == pytest.approx(5.0)
    unknown = KernelRow(name="x", category="other", calls=1, self_time_us=1.0, total_time_us=1.0, share=0.0)
    assert kernel_gbps(unknown) is kernel_tflops(unknown) is None
    assert roofline_points([unknown]) == []
