"""The decode loop that worker, quality checks and benchmarks share."""

from collections.abc import Callable

import pytest
import torch

from gptscope.models.decoding.session import DecodeSession
from gptscope.models.prepare import PreparedModel

Prepare = Callable[..., PreparedModel]
CACHES = ["none", "dynamic", "static"]


@pytest.mark.parametrize("kv_cache", CACHES)
def test_each_token_is_the_most_likely_one_after_the_whole_text(
    kv_cache: str, prepared: Prepare, text_BL: torch.Tensor
) -> None:
    model = prepared("llama", kv_cache=kv_cache)
    session = DecodeSession(model, 2, 32)
    next_B = session.prefill(text_BL)
    whole_BL = text_BL
    for _ in range(8):
        logits_BV = model.logits(whole_BL)[:, -1]
        assert torch.equal(next_B, logits_BV.argmax(-1))
        assert (session.logits_BV - logits_BV).abs().max() < 1e-4
        assert session.length == whole_BL.shape[1]
        whole_BL = torch.cat((whole_BL, next_B[:, None]), dim=1)
        next_B = session.step()


@pytest.mark.parametrize("kv_cache", CACHES)
def test_a_second_prompt_starts_from_nothing(kv_cache: str, prepared: Prepare, text_BL: torch.Tensor) -> None:
    session = DecodeSession(prepared("llama", kv_cache=kv_cache), 2, 32)
    first = [session.prefill(text_BL), session.step(), session.step()]
    second = [session.prefill(text_BL), session.step(), session.step()]
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize(("kv_cache", "tokens"), [("none", 26.0), ("dynamic", 1.0), ("static", 1.0)])
def test_the_tokens_that_a_step_really_puts_through_the_model_are_counted(
    kv_cache: str, tokens: float, prepared: Prepare, text_BL: torch.Tensor
) -> None:
    model = prepared("llama", kv_cache=kv_cache)
    seen = []
    model.model.embed.register_forward_hook(lambda _module, inputs, _output: seen.append(inputs[0].shape[1]))
    session = DecodeSession(model, 2, 32)
    session.prefill(text_BL)
    seen.clear()
    for _ in range(3):
        session.step()
    counters = model.counters()
    assert counters["tokens_per_forward"] == tokens == sum(seen) / 3
    assert counters["decode_forwards"] == 3
    assert counters["kv_cache_bytes"] == session.cache_bytes
    model.reset_counters()
    assert "decode_forwards" not in model.counters()


@pytest.mark.parametrize("kv_cache", CACHES)
def test_a_text_longer_than_the_context_is_refused_before_anything_runs(kv_cache: str, prepared: Prepare) -> None:
    with pytest.raises(ValueError, match=r"65 tokens .* do not fit into this model's context of 64"):
        DecodeSession(prepared("llama", kv_cache=kv_cache), 1, 65)


@pytest.mark.parametrize("kv_cache", CACHES)
def test_a_step_beyond_the_capacity_is_refused(kv_cache: str, prepared: Prepare, text_BL: torch.Tensor) -> None:
    session = DecodeSession(prepared("llama", kv_cache=kv_cache), 2, 25)
    session.prefill(text_BL)
    session.step()
    with pytest.raises(ValueError, match="26 tokens do not fit into this session, which was made for 25"):
        session.step()


def test_another_batch_than_the_session_was_made_for_is_refused(prepared: Prepare, text_BL: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="decodes 3 sequences, but 2 prompts came"):
        DecodeSession(prepared("llama"), 3, 32).prefill(text_BL)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_the_cache_has_the_models_type(precision: str, prepared: Prepare, text_BL: torch.Tensor) -> None:
    for kv_cache, rows in (("dynamic", 24), ("static", 25)):
        model = prepared("llama", precision=precision, kv_cache=kv_cache)
        session = DecodeSession(model, 2, 24)
        session.prefill(text_BL)
        assert session.logits_BV.dtype == model.dtype
        assert session.cache_bytes == 2 * rows * model.config.kv_bytes_per_token(model.dtype.itemsize)
