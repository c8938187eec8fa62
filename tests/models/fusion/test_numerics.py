"""A fusion changes the speed, never the result."""

from collections.abc import Callable
from itertools import combinations

import pytest
import torch

from gptscope.models.decoding.session import DecodeSession
from gptscope.models.fusion.packed_linear import onednn_runs
from gptscope.models.prepare import PreparedModel

EAGER = ("attention", "qkv", "mlp", "norm", "packed_linear")
COMBINATIONS = [*combinations(EAGER, 1), *combinations(EAGER, 2), EAGER[:4], EAGER]

Prepare = Callable[..., PreparedModel]


def greedy(model: PreparedModel, prompt_BL: torch.Tensor, new_tokens: int, padding_B: torch.Tensor | None = None):
    session = DecodeSession(model, prompt_BL.shape[0], prompt_BL.shape[1] + new_tokens)
    tokens = [session.prefill(prompt_BL, padding_B)]
    tokens += [session.step() for _ in range(new_tokens - 1)]
    return torch.stack(tokens, dim=1)


@pytest.mark.usefixtures("pack_everything")
def test_logits_stay_within_1e_4_with_every_combination(family: str, prepared: Prepare, text_BL: torch.Tensor) -> None:
    expected = prepared(family).logits(text_BL)
    assert expected.std() > 0.1, "a model whose logits are all alike proves nothing"
    for fusions in COMBINATIONS:
        found = prepared(family, *fusions).logits(text_BL)
        assert (found - expected).abs().max() < 1e-4, fusions


@pytest.mark.usefixtures("pack_everything")
@pytest.mark.parametrize("kv_cache", ["none", "dynamic", "static"])
def test_greedy_tokens_stay_the_same(family: str, kv_cache: str, prepared: Prepare, text_BL: torch.Tensor) -> None:
    expected = greedy(prepared(family), text_BL, 16)
    assert len(expected.unique()) > 3, "a model that repeats one token proves nothing"
    for fusions in (EAGER[:4], EAGER):
        assert torch.equal(greedy(prepared(family, *fusions, kv_cache=kv_cache), text_BL, 16), expected), fusions


def test_left_padding_changes_no_sequence(family: str, prepared: Prepare, text_BL: torch.Tensor) -> None:
    padded_BL = text_BL.clone()
    padded_BL[1, :9] = 0
    padding_B = torch.tensor([0, 9])
    for fusions in ((), EAGER[:4]):
        for kv_cache in ("none", "dynamic", "static"):
            model = prepared(family, *fusions, kv_cache=kv_cache)
            together = greedy(model, padded_BL, 12, padding_B)
            assert torch.equal(together[:1], greedy(model, padded_BL[:1], 12)), (fusions, kv_cache)
            assert torch.equal(together[1:], greedy(model, padded_BL[1:, 9:], 12)), (fusions, kv_cache)


@pytest.mark.usefixtures("pack_everything")
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_16_bit_logits_point_the_same_way(
    family: str, precision: str, prepared: Prepare, text_BL: torch.Tensor
) -> None:
    expected = prepared(family).logits(text_BL).flatten()
    limit = 0.995 if precision == "bf16" else 0.9999
    for fusions in ((), EAGER[:4], EAGER):
        if "packed_linear" in fusions and not onednn_runs(precision):
            continue
        found = prepared(family, *fusions, precision=precision).logits(text_BL)
        assert found.dtype == {"bf16": torch.bfloat16, "fp16": torch.float16}[precision]
        assert torch.cosine_similarity(found.float().flatten(), expected, dim=0) > limit, fusions


def test_one_bf16_row_through_a_fused_layer_equals_many(prepared: Prepare) -> None:
    """A single row takes the matrix-vector kernel, several rows the matrix-matrix one."""
    for name in ("llama", "qwen2"):  # without and with a bias
        layer = prepared(name, "qkv", precision="bf16").model.blocks[0].attn.qkv.proj
        layer.by_rows = True  # whether that is quicker here is another question
        rows_LD = torch.randn(3, layer.in_features).bfloat16()
        with torch.inference_mode():
            together = layer(rows_LD).float()
            alone = torch.cat([layer(row_D[None]) for row_D in rows_LD]).float()
        assert (together - alone).abs().max() <= 0.02 * together.abs().max()
