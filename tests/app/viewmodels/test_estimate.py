import pytest
from tests_app_streams import MODEL, PEAKS

from gptscope.app.viewmodels.estimate import estimate, kv_bytes_per_token, weight_bytes
from gptscope.profiling.experiment import Variant, Workload


def test_half_the_bytes_double_the_ceiling_of_decoding() -> None:
    work = Workload(kind="decode", context=16, new_tokens=8)
    full = estimate(MODEL, work, Variant(), PEAKS)
    half = estimate(MODEL, work, Variant(precision="bf16"), PEAKS)
    assert full.ceiling_tokens_per_second == pytest.approx(48e9 / 538e6, rel=0.03)
    assert half.ceiling_tokens_per_second == pytest.approx(2 * full.ceiling_tokens_per_second, rel=0.01)
    assert half.bound_by == "memory"


def test_a_long_prompt_is_bound_by_arithmetic() -> None:
    assert estimate(MODEL, Workload(kind="prefill", context=2048), Variant(), PEAKS).bound_by == "compute"


def test_memory_grows_with_what_is_kept() -> None:
    def memory(**work: object) -> float:
        found = estimate(MODEL, Workload(**work), Variant(), None).memory_bytes
        assert found is not None
        return found

    assert memory(kind="decode", context=1024) > memory(kind="decode", context=64)
    assert memory(kind="decode", batch=8) > memory(kind="decode", batch=1)
    assert memory(kind="train", context=64) > 4 * MODEL.parameters * 3


def test_what_cannot_be_predicted_says_why() -> None:
    assert estimate(None, Workload(), Variant(), PEAKS).ceiling_reason == "choose a model"
    assert estimate(MODEL, Workload(), Variant(), None).ceiling_reason == "peak not measured yet"
    odd = estimate(MODEL, Workload(), Variant(precision="fp3"), PEAKS)
    assert odd.memory_bytes is None
    assert odd.memory_reason == "no byte model for FP3"


def test_sizes_follow_the_precision() -> None:
    assert weight_bytes(MODEL, Variant()) == 4 * MODEL.parameters
    assert kv_bytes_per_token(MODEL, Variant(precision="bf16")) == 23_040
    assert weight_bytes(MODEL, Variant(precision="fp3")) is None


def test_int8_weights_take_a_byte_and_emulated_formats_what_the_emulation_keeps() -> None:
    int8 = Variant(precision="int8-dynamic")
    assert weight_bytes(MODEL, int8) == pytest.approx(MODEL.parameters, rel=0.03)
    assert kv_bytes_per_token(MODEL, int8) == 23_040
    assert kv_bytes_per_token(MODEL, Variant(precision="int8-dynamic", kv_cache="int8")) == 23_040 / 2
    assert weight_bytes(MODEL, Variant(precision="nvfp4")) == 2 * MODEL.parameters
    base = Variant(precision="int8-dynamic", options={"int8-dynamic": {"base": "fp32"}})
    assert kv_bytes_per_token(MODEL, base) == 2 * 23_040


def test_a_ceiling_that_was_not_measured_or_depends_on_the_text_is_not_given() -> None:
    prompts = estimate(MODEL, Workload(kind="prefill"), Variant(precision="int8-static"), PEAKS)
    assert prompts.ceiling_tokens_per_second is None
    assert prompts.ceiling_reason == "no measured arithmetic peak for INT8 static"
    guessed = estimate(MODEL, Workload(), Variant(speculation="prompt-lookup"), PEAKS)
    assert guessed.ceiling_reason == "depends on how many guesses are right"
