"""What a cache returns is what was put in, and it costs what its kind says."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from gptscope.models.config import GPTConfig
from gptscope.models.decoding.session import DecodeSession
from gptscope.models.gpt import GPT
from gptscope.models.kv_cache import KV_CACHES, AnyCache, DynamicCache, StaticCache
from gptscope.models.levers import LeverContext, Machine, ProfileFacts
from gptscope.models.prepare import PreparedModel


def make(kind: str, config: GPTConfig, batch: int, capacity: int, dtype: torch.dtype = torch.float32) -> AnyCache:
    made = KV_CACHES[kind].make(config, batch, capacity, dtype, torch.device("cpu"))
    assert made is not None
    return made


@pytest.fixture(params=["dynamic", "static"])
def cache(request: pytest.FixtureRequest, tiny_model: Callable[[str], GPT]) -> AnyCache:
    return make(request.param, tiny_model("llama").config, 2, 24)


@pytest.mark.parametrize("pieces", [[24], [1] * 24, [5, 1, 1, 10, 7]])
def test_a_text_in_pieces_gives_the_logits_of_the_whole(
    pieces: list[int], cache: AnyCache, tiny_model: Callable[[str], GPT], text_BL: torch.Tensor
) -> None:
    model = tiny_model("llama").eval()
    with torch.inference_mode():
        expected = model(text_BL)
        found = torch.cat([model(piece_BL, cache) for piece_BL in text_BL.split(pieces, dim=1)], dim=1)
    assert (found - expected).abs().max() < 1e-4
    assert cache.length == 24


def test_reset_forgets_the_text(cache: AnyCache, tiny_model: Callable[[str], GPT], text_BL: torch.Tensor) -> None:
    model = tiny_model("llama").eval()
    with torch.inference_mode():
        first = model(text_BL[:, :9], cache)
        cache.reset()
        assert cache.length == 0
        assert torch.equal(model(text_BL[:, :9], cache), first)


def test_a_dynamic_cache_allocates_at_every_step_and_holds_no_more_than_the_text(
    tiny_model: Callable[[str], GPT], text_BL: torch.Tensor
) -> None:
    model = tiny_model("llama").eval()
    cache = make("dynamic", model.config, 2, 24)
    assert isinstance(cache, DynamicCache)
    with torch.inference_mode():
        for tokens, piece_BL in zip((4, 5), text_BL[:, :5].split([4, 1], dim=1), strict=True):
            before = cache.allocations
            model(piece_BL, cache)
            assert cache.allocations - before == 2 * model.config.n_layer
            assert cache.storage_bytes == 2 * tokens * model.config.kv_bytes_per_token(4)


def test_a_static_cache_returns_views_of_the_buffers_that_it_began_with(tiny_model: Callable[[str], GPT]) -> None:
    config = tiny_model("llama").config
    cache = make("static", config, 2, 10, torch.bfloat16)
    assert isinstance(cache, StaticCache)
    assert cache.storage_bytes == 2 * (10 + 1) * config.kv_bytes_per_token(2)
    new = torch.ones(2, config.n_kv_head, 3, config.d_head, dtype=torch.bfloat16)
    for step in range(3):
        keys, values = cache.update(1, new, new)
        assert keys.untyped_storage().data_ptr() == cache.layers[1].keys.untyped_storage().data_ptr()
        assert values.untyped_storage().data_ptr() == cache.layers[1].values.untyped_storage().data_ptr()
        cache.advance(3)
        assert keys.shape[2] == 3 * (step + 1)
    assert cache.allocations == 2 * config.n_layer


def test_a_full_static_cache_says_so(tiny_model: Callable[[str], GPT]) -> None:
    config = tiny_model("llama").config
    cache = make("static", config, 1, 4)
    new = torch.ones(1, config.n_kv_head, 5, config.d_head)
    with pytest.raises(ValueError, match="5 tokens do not fit into a static KV cache made for 4"):
        cache.update(0, new, new)


@pytest.mark.parametrize(
    ("kind", "counters", "in_effect"),
    [
        ("none", {"tokens_per_forward": 33.5}, True),
        ("none", {"tokens_per_forward": 1.0}, False),
        ("dynamic", {"tokens_per_forward": 1.0, "kv_cache_allocations_per_step": 4.0}, True),
        ("dynamic", {"tokens_per_forward": 1.0, "kv_cache_allocations_per_step": 0.0}, False),
        ("dynamic", {"tokens_per_forward": 33.5, "kv_cache_allocations_per_step": 4.0}, False),
        ("static", {"tokens_per_forward": 1.0, "kv_cache_allocations_per_step": 0.0, "kv_cache_bytes": 1e6}, True),
        ("static", {"tokens_per_forward": 1.0, "kv_cache_allocations_per_step": 4.0}, False),
        ("static", {"tokens_per_forward": 33.5}, False),
        ("static", {}, None),
        ("int8", {"tokens_per_forward": 1.0, "kv_cache_value_bytes": 1.06, "kv_cache_bytes": 1e6}, True),
        ("int8", {"tokens_per_forward": 1.0, "kv_cache_value_bytes": 4.0}, False),
        ("int8", {"tokens_per_forward": 1.0}, False),
        ("int8", {"tokens_per_forward": 33.5, "kv_cache_value_bytes": 1.06}, False),
    ],
)
def test_evidence_follows_what_decode_steps_did(
    kind: str, counters: dict[str, float], in_effect: bool | None, machine: Machine
) -> None:
    context = LeverContext(machine=machine, config=None, workload="decode", precision="fp32", kv_cache=kind)
    facts = ProfileFacts(kernels=[], steps=4, n_layer=2, workload="decode", device="cpu", counters=counters)
    evidence = KV_CACHES[kind].evidence(facts, context)
    assert evidence.in_effect is in_effect
    assert evidence.sentence.endswith(".")


def test_an_int8_cache_gives_back_what_each_head_of_each_token_rounds_to(tiny_model: Callable[[str], GPT]) -> None:
    config = tiny_model("llama").config
    cache = make("int8", config, 2, 10)
    generator = torch.Generator().manual_seed(5)
    pieces = [torch.randn(2, config.n_kv_head, length, config.d_head, generator=generator) for length in (4, 1, 5)]
    for piece in pieces:
        for layer in range(config.n_layer):
            keys, values = cache.update(layer, piece, -2 * piece)
        cache.advance(piece.shape[2])
    whole = torch.cat(pieces, dim=2).numpy()
    scale = np.abs(whole).max(-1, keepdims=True) / np.float32(127)
    assert np.array_equal(keys.numpy(), np.rint(whole / scale).astype(np.int8).astype(np.float32) * scale)
    assert torch.allclose(values, -2 * keys, rtol=1e-6)
    cache.truncate(3)
    keys, _ = cache.update(0, pieces[1], pieces[1])
    assert keys.shape[2] == 4
    with pytest.raises(ValueError, match="11 tokens do not fit into an INT8 KV cache made for 10"):
        cache.update(0, torch.cat(pieces, dim=2)[:, :, :8], torch.cat(pieces, dim=2)[:, :, :8])


@pytest.mark.parametrize("fusions", [(), ("attention", "qkv", "mlp", "norm")])
def test_an_int8_cache_changes_the_output_a_little_and_needs_a_quarter_of_the_memory(
    fusions: tuple[str, ...], prepared: Callable[..., PreparedModel], text_BL: torch.Tensor, family: str
) -> None:
    exact, rounded = (prepared(family, *fusions, kv_cache=kind) for kind in ("static", "int8"))
    outputs = []
    for model in (exact, rounded):
        session = DecodeSession(model, 2, 30)
        session.prefill(text_BL)
        session.step()
        outputs.append(session.logits_BV.float())
    error = (outputs[1] - outputs[0]).norm() / outputs[0].norm()
    assert 0 < error < 0.03
    sizes = [model.new_cache(2, 30).storage_bytes for model in (exact, rounded)]
    assert sizes[1] / sizes[0] == pytest.approx((1 + 4 / exact.config.d_head) / 4)
