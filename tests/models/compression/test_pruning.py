"""Pruning: what goes and what stays, what it does together with other levers, and how a profile proves it."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from gptscope.models.compression import PRUNINGS
from gptscope.models.compression.pruning import keep_largest
from gptscope.models.compression.two_four import two_four_mask
from gptscope.models.decoding.session import DecodeSession
from gptscope.models.gpt import GPT
from gptscope.models.levers import LeverContext, LeverError, Machine
from gptscope.models.prepare import PreparedModel

Prepared = Callable[..., PreparedModel]
STRUCTURED = {"structured": {"heads": 0.5, "mlp": 0.4}}
ALL_FUSIONS = ("attention", "qkv", "mlp", "norm")


def zeros(model: GPT, name: str) -> float:
    return (model.get_parameter(name) == 0).float().mean().item()


def test_exactly_as_many_values_stay_as_asked_also_among_equal_ones() -> None:
    kept = keep_largest(torch.tensor([[1.0, 3.0, 1.0], [1.0, 2.0, 1.0]]), 4)
    assert kept.tolist() == [[True, True, True], [False, True, False]]
    assert not keep_largest(torch.ones(3), 0).any()
    assert keep_largest(torch.ones(3), 3).all()


def test_magnitude_pruning_removes_the_smallest_of_each_matrix(prepared: Prepared, tiny_model) -> None:
    before = tiny_model("llama").get_parameter("blocks.1.mlp.up.weight").detach()
    pruned = prepared("llama", pruning="magnitude", options={"magnitude": {"amount": 0.3}}).model
    after = pruned.get_parameter("blocks.1.mlp.up.weight")
    gone = after == 0
    assert int(gone.sum()) == int(0.3 * before.numel())
    assert before[gone].abs().max() <= before[~gone].abs().min()
    assert torch.equal(after[~gone], before[~gone])
    assert zeros(pruned, "lm_head.weight") == 0.0


def test_one_threshold_for_the_whole_model_takes_more_from_smaller_matrices(machine: Machine, tiny_model) -> None:
    model = tiny_model("llama")
    with torch.no_grad():
        model.get_parameter("blocks.0.mlp.up.weight").mul_(0.1)
    options = {"magnitude": {"amount": 0.3, "scope": "model"}}
    context = LeverContext(machine=machine, config=model.config, workload="decode", precision="fp32", options=options)
    PRUNINGS["magnitude"].apply(model, context)
    assert zeros(model, "blocks.0.mlp.up.weight") > 0.7 > 0.3 > zeros(model, "blocks.1.mlp.up.weight")


def test_two_of_every_four_neighbours_stay_the_larger_ones() -> None:
    weight = torch.tensor([[1.0, -4.0, 3.0, 2.0, 0.5, 0.1, 0.2, -0.3, 9.0, 8.0]])
    expected = [[False, True, True, False, True, False, False, True, True, True]]
    assert two_four_mask(weight).tolist() == expected


@pytest.mark.parametrize("pruning", ["magnitude", "2:4"])
def test_masks_survive_fusion_and_show_in_the_profile(pruning: str, prepared: Prepared, judge) -> None:
    found = judge(prepared("llama", *ALL_FUSIONS, pruning=pruning))[pruning]
    assert found.in_effect, found.sentence
    assert "no speedup" in found.sentence


@pytest.mark.parametrize("pruning", ["magnitude", "2:4"])
def test_a_mask_without_effect_is_caught(
    pruning: str, prepared: Prepared, judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(PRUNINGS[pruning]), "apply", lambda *_args: None)
    found = judge(prepared("llama", pruning=pruning))[pruning]
    assert found.in_effect is False
    assert found.sentence.startswith("Only 0.0% of the")


def test_weights_that_exist_only_packed_cannot_be_counted(prepared: Prepared) -> None:
    facts = replace_facts(prepared("llama", pruning="magnitude"), {})
    assert facts.in_effect is None


def replace_facts(model: PreparedModel, counters: dict[str, float]):
    from gptscope.models.levers import ProfileFacts

    facts = ProfileFacts(kernels=[], steps=1, n_layer=2, workload="decode", device="cpu", counters=counters)
    return PRUNINGS["magnitude"].evidence(facts, model.context)


def test_structured_pruning_makes_every_matrix_smaller(family: str, prepared: Prepared, tiny_model) -> None:
    before = tiny_model(family).config
    pruned = prepared(family, pruning="structured", options=STRUCTURED)
    after = pruned.config
    groups = before.n_kv_head // 2
    assert (after.n_kv_head, after.n_head) == (groups, groups * before.n_head // before.n_kv_head)
    assert after.d_ff == 32  # 48 less 40 %, up to a multiple of 16
    assert sum(p.numel() for p in pruned.model.parameters()) == after.parameter_count < before.parameter_count
    attention = pruned.model.get_submodule("blocks.1.attn")
    assert attention.qkv.q.weight.shape == (after.n_head * after.d_head, after.d_model)
    assert attention.qkv.v.weight.shape == (after.n_kv_head * after.d_head, after.d_model)
    assert attention.out.weight.shape == (after.d_model, after.n_head * after.d_head)


def test_heads_that_add_nothing_go_first_and_the_output_stays(
    family: str, prepared: Prepared, tiny_model, text_BL
) -> None:
    model = tiny_model(family)
    config = model.config
    per_group = config.n_head // config.n_kv_head * config.d_head
    with torch.no_grad():
        for block in model.blocks:
            block.attn.out.weight[:, :per_group] = 0.0  # the first group
            block.mlp.down.weight[:, 5:24] = 0.0
    with torch.inference_mode():
        expected = model(text_BL)
    options = {"structured": {"heads": 1.0 / config.n_kv_head, "mlp": 0.34}}
    context = replace(prepared(family).context, options=options)
    PRUNINGS["structured"].apply(model, context)
    assert model.config.n_kv_head == config.n_kv_head - 1
    assert model.config.d_ff == 32
    with torch.inference_mode():
        torch.testing.assert_close(model(text_BL), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_fused_and_cached_decoding_works_on_what_is_left(
    precision: str, family: str, prepared: Prepared, text_BL
) -> None:
    levers = {"pruning": "structured", "options": STRUCTURED, "precision": precision}
    plain, fused = (
        prepared(family, kv_cache="none", **levers),
        prepared(family, *ALL_FUSIONS, kv_cache="static", **levers),
    )
    sessions = [DecodeSession(model, 2, 40) for model in (plain, fused)]
    logits = []
    for session in sessions:
        session.prefill(text_BL)
        session.step()
        logits.append(session.logits_BV.float())
    tolerance = {"fp32": 1e-4, "bf16": 0.1}[precision]
    assert ((logits[0] - logits[1]).norm() / logits[0].norm()).item() < tolerance
    cache_bytes = sessions[1].cache_bytes
    assert cache_bytes is not None
    whole = DecodeSession(prepared(family, kv_cache="static", precision=precision), 2, 40).cache_bytes
    assert cache_bytes * 2 == whole


def test_smaller_products_show_in_the_profile(family: str, prepared: Prepared, judge) -> None:
    found = judge(prepared(family, *ALL_FUSIONS, pruning="structured", options=STRUCTURED))["structured"]
    assert found.in_effect, found.sentence
    assert "32 of 48 MLP channels" in found.sentence
    assert "2 products per step have that width" in found.sentence


def test_structured_pruning_without_effect_is_caught(
    prepared: Prepared, judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(PRUNINGS["structured"]), "apply", lambda *_args: None)
    found = judge(prepared("llama", pruning="structured", options=STRUCTURED))["structured"]
    assert found.in_effect is False
    assert found.sentence.startswith("All 4 of 4 heads and 48 of 48")


def test_shares_too_small_to_remove_anything_are_refused(prepared: Prepared) -> None:
    with pytest.raises(LeverError, match="Nothing would be removed"):
        prepared("llama", pruning="structured", options={"structured": {"heads": 0.4, "mlp": 0.1}})


def test_prunings_say_what_they_cost_and_that_training_has_no_part(machine: Machine, tiny_model) -> None:
    config = tiny_model("llama").config
    context = LeverContext(machine=machine, config=config, workload="train", precision="fp32")
    for pruning in PRUNINGS.values():
        assert "train" in str(pruning.unavailable_reason(context))
    context = replace(context, workload="decode", options=STRUCTURED)
    assert "keeps 2 of 4 heads (1 of 2 key/value groups) and 32 of 48" in str(PRUNINGS["structured"].warning(context))
    assert "sparse tensor cores" in str(PRUNINGS["2:4"].warning(context))
