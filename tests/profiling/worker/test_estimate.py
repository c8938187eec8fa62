"""The memory estimate agrees with what running really takes, and grows with everything that takes memory."""

import ctypes
import gc
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch

from gptscope.models.config import PRESETS, GPTConfig
from gptscope.models.decoding.session import DecodeSession
from gptscope.models.levers import LeverContext, Machine
from gptscope.models.training import TrainStep
from gptscope.profiling.experiment import Workload
from gptscope.profiling.worker import memory
from gptscope.profiling.worker.estimate import LeverSizes, MemoryEstimate, estimate_memory
from gptscope.profiling.worker.request import lever_sizes

FP32 = LeverSizes(4.0, fused_attention=False, kv_cache="dynamic")
WIDE = GPTConfig(
    family="gpt2", vocab_size=4096, context_length=1024, n_layer=2, d_model=256, n_head=8, n_kv_head=8, d_head=32,
    d_ff=1024, norm="layernorm", position="learned", mlp="gelu_tanh", qkv_bias=True, out_bias=True, mlp_bias=True,
)  # fmt: skip


def test_weights_gradients_and_optimizer_of_gpt2_are_known_sizes():
    config = PRESETS["gpt2-124m"]
    train = estimate_memory(config, Workload(kind="train", context=128), FP32)
    assert config.parameter_count == 124_439_808
    assert (train.weights, train.gradients, train.optimizer) == (497_759_232, 497_759_232, 995_518_464)
    decode = estimate_memory(config, Workload(context=1000, new_tokens=24), FP32)
    assert decode.kv_cache == 2 * 12 * 768 * 4 * 1024
    assert (decode.gradients, decode.optimizer) == (0, 0)


def test_sixteen_bits_halve_weights_and_cache():
    config = PRESETS["llama-135m"]
    full = estimate_memory(config, Workload(), FP32)
    half = estimate_memory(config, Workload(), LeverSizes(2.0, fused_attention=False, kv_cache="static"))
    assert half.weights * 2 == full.weights
    assert half.kv_cache * 2 == full.kv_cache
    assert estimate_memory(config, Workload(), LeverSizes(4.0, fused_attention=False, kv_cache="none")).kv_cache == 0


def test_int8_counts_what_its_preparation_holds_and_what_its_cache_keeps():
    config = PRESETS["llama-135m"]
    asked = LeverContext(
        machine=Machine(device="cpu", device_name="cpu", cores=1, memory_bytes=1 << 34),
        config=config,
        workload="decode",
        precision="int8-dynamic",
        kv_cache="int8",
    )
    sizes = lever_sizes(asked)
    assert (sizes.activation, sizes.kv_bytes) == (2.0, 1 + 4 / config.d_head)
    found = estimate_memory(config, Workload(), sizes)
    assert found.weights == int(4.5 * config.parameter_count), "FP32 while it is quantized"
    plain = estimate_memory(config, Workload(), FP32)
    assert found.kv_cache / plain.kv_cache == pytest.approx((1 + 4 / config.d_head) / 4)
    in_fp32 = lever_sizes(replace(asked, kv_cache="static", options={"int8-dynamic": {"base": "fp32"}}))
    assert (in_fp32.activation, in_fp32.kv_bytes) == (4.0, 4.0)


def test_a_draft_model_counts_with_its_weights_and_its_cache():
    work = Workload(kind="decode", context=64, new_tokens=64)
    alone = LeverSizes(bytes_per_value=4.0, fused_attention=True, kv_cache="static")
    plain = estimate_memory(PRESETS["gpt2-355m"], work, alone)
    with_draft = estimate_memory(PRESETS["gpt2-355m"], work, replace(alone, draft=PRESETS["gpt2-124m"]))
    assert with_draft.weights - plain.weights == 4 * PRESETS["gpt2-124m"].parameter_count
    assert with_draft.kv_cache - plain.kv_cache == 128 * PRESETS["gpt2-124m"].kv_bytes_per_token(4.0)


@pytest.mark.parametrize("kind", ["train", "prefill", "decode", "generate"])
def test_more_of_anything_needs_more(kind):
    def total(**changes: object) -> int:
        values = {"batch": 2, "context": 64, "new_tokens": 16} | changes
        return estimate_memory(PRESETS["llama-135m"], Workload(kind=kind, **values), FP32).total

    assert total(batch=3) > total()
    assert total(context=65) > total()
    assert total(new_tokens=17) >= total()


def test_fused_attention_needs_no_matrix_of_scores():
    work = Workload(kind="train", context=1024)
    fused = estimate_memory(WIDE, work, LeverSizes(4.0, fused_attention=True, kv_cache="none"))
    plain = estimate_memory(WIDE, work, FP32)
    assert plain.activations - fused.activations == 2 * 8 * 1024 * 1024 * 4


def test_the_sentence_names_the_large_parts_in_gb():
    estimate = MemoryEstimate(weights=6_200_000_000, gradients=0, optimizer=0, kv_cache=70_000_000, activations=10)
    assert estimate.sentence() == "weights 6.2 GB, KV cache 0.1 GB, libraries 0.4 GB"


def grown_peak(run) -> int:
    """How much larger this process's peak gets while `run` runs."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what earlier tests freed but the heap keeps would be used again, unseen
    memory.reset_peak(torch.device("cpu"))
    before = psutil.Process().memory_info().rss
    run()
    return memory.process_peak_bytes() - before


needs_reset = pytest.mark.skipif(
    sys.platform != "linux" or not Path("/proc/self/clear_refs").exists(), reason="the peak cannot be reset here"
)


@needs_reset
def test_training_takes_about_what_was_estimated(kit):
    work = Workload(kind="train", batch=2, context=768)
    prepared = kit.prepared(workload="train", config=WIDE)
    step = TrainStep(prepared)
    tokens_BL = torch.zeros(2, 768, dtype=torch.long)
    needed = estimate_memory(WIDE, work, FP32)
    expected = needed.total - needed.base - needed.weights
    assert grown_peak(lambda: step(tokens_BL)) == pytest.approx(expected, rel=0.35)


@needs_reset
def test_a_long_prefill_takes_about_what_was_estimated(kit):
    work = Workload(batch=6, context=800, new_tokens=1)
    prepared = kit.prepared(config=WIDE)
    DecodeSession(prepared, 6, 65).prefill(torch.zeros(6, 64, dtype=torch.long))  # libraries set up their buffers once
    session = DecodeSession(prepared, 6, 801)
    tokens_BL = torch.zeros(6, 800, dtype=torch.long)
    needed = estimate_memory(WIDE, work, FP32)
    assert grown_peak(lambda: session.prefill(tokens_BL)) == pytest.approx(
        needed.activations + needed.kv_cache, rel=0.35
    )


def test_the_peak_is_at_least_what_is_resident():
    assert memory.process_peak_bytes() >= psutil.Process().memory_info().rss * 0.9
    assert memory.device_peak_bytes(torch.device("cpu")) is None
