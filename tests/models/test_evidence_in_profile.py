"""Real profiles: a lever that is on is proven, and one that changed nothing is caught."""

import copy
from collections.abc import Callable
from dataclasses import replace

import pytest

from gptscope.models.fusion.packed_linear import onednn_runs
from gptscope.models.gpt import GPT
from gptscope.models.levers import Evidence, ProfileFacts
from gptscope.models.prepare import PreparedModel

Prepare = Callable[..., PreparedModel]
Judge = Callable[..., dict[str, Evidence]]
INFERENCE = ("attention", "qkv", "mlp", "norm", "packed_linear")
TRAINING = ("attention", "qkv", "mlp", "norm", "optimizer")


def pretend(model: PreparedModel, **levers: object) -> PreparedModel:
    """The same model, but with levers said to be on that were never applied."""
    return replace(copy.copy(model), context=replace(model.context, **levers))


@pytest.mark.usefixtures("pack_everything")
def test_every_lever_that_is_on_shows_in_a_decode_profile(family: str, prepared: Prepare, judge: Judge) -> None:
    for fusions in (INFERENCE[:4], INFERENCE, ("packed_linear",)):
        for kv_cache in ("none", "dynamic", "static"):
            evidence = judge(prepared(family, *fusions, kv_cache=kv_cache))
            assert set(evidence) == {"fp32", *fusions, kv_cache}
            for one in evidence.values():
                assert one.in_effect, (fusions, kv_cache, one)


def test_merged_products_show_without_module_names_too(family: str, prepared: Prepare, judge: Judge) -> None:
    """Compiled code has no modules any more."""
    for workload in ("decode", "train"):
        for claimed, in_effect in ((("qkv", "mlp"), True), ((), False)):
            model = prepared(family, *claimed, workload=workload)
            evidence = judge(pretend(model, fusions=frozenset({"qkv", "mlp"})), modules=False)
            assert {evidence["qkv"].in_effect, evidence["mlp"].in_effect} == {in_effect}, (workload, evidence)


def test_every_norm_counts_once(prepared: Prepare, judge: Judge) -> None:
    """Two in each of two layers and one at the end; Qwen3 has one more for queries and one for keys in each layer."""
    for name, norms in (("gpt2", 5), ("llama", 5), ("qwen3", 9)):
        for workload in ("decode", "train"):
            evidence = judge(prepared(name, "norm", workload=workload))["norm"]
            assert evidence.sentence == f"{norms} fused norm operators per step.", (name, workload)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.usefixtures("pack_everything")
def test_16_bit_products_show_in_a_decode_profile(precision: str, prepared: Prepare, judge: Judge) -> None:
    for name in ("gpt2", "llama"):
        for fusions in ((), INFERENCE[:4], INFERENCE):
            if "packed_linear" in fusions and not onednn_runs(precision):
                continue
            for one in judge(prepared(name, *fusions, precision=precision)).values():
                assert one.in_effect, (name, fusions, one)


@pytest.mark.parametrize("lever", INFERENCE)
def test_a_fusion_that_was_never_applied_is_caught(family: str, lever: str, prepared: Prepare, judge: Judge) -> None:
    textbook = pretend(prepared(family), fusions=frozenset({lever}))
    evidence = judge(textbook)[lever]
    assert evidence.in_effect is False, evidence.sentence
    assert evidence.sentence.endswith(".")


@pytest.mark.parametrize("lever", ["qkv", "mlp"])
def test_a_missing_merge_is_caught_beside_the_other_fusions(lever: str, prepared: Prepare, judge: Judge) -> None:
    others = [name for name in INFERENCE[:4] if name != lever]
    evidence = judge(pretend(prepared("llama", *others), fusions=frozenset(INFERENCE[:4])))
    assert [name for name, one in evidence.items() if not one.in_effect] == [lever]


def test_a_precision_or_cache_that_was_never_applied_is_caught(prepared: Prepare, judge: Judge) -> None:
    evidence = judge(pretend(prepared("llama"), precision="bf16"))
    assert evidence["bf16"].in_effect is False
    assert "float32" in evidence["bf16"].sentence
    for claimed, real in (("static", "dynamic"), ("static", "none"), ("dynamic", "none"), ("none", "static")):
        model = prepared("llama", kv_cache=real)
        claiming = pretend(model, kv_cache=claimed)
        claiming.new_cache = model.new_cache  # type: ignore[method-assign]
        assert judge(claiming)[claimed].in_effect is False, (claimed, real)


@pytest.mark.parametrize("lever", ["prompt-lookup", "draft-model"])
def test_a_speculation_that_was_never_applied_is_caught(lever: str, prepared: Prepare, judge: Judge) -> None:
    evidence = judge(pretend(prepared("llama"), speculation=lever))[lever]
    assert evidence.in_effect is False
    assert "No token was guessed" in evidence.sentence


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_every_lever_that_is_on_shows_in_a_training_profile(
    family: str, precision: str, prepared: Prepare, judge: Judge
) -> None:
    evidence = judge(prepared(family, *TRAINING, workload="train", precision=precision))
    assert set(evidence) == {precision, *TRAINING}
    for one in evidence.values():
        assert one.in_effect, one


@pytest.mark.parametrize("lever", TRAINING)
def test_a_training_fusion_that_was_never_applied_is_caught(lever: str, prepared: Prepare, judge: Judge) -> None:
    for name in ("gpt2", "llama"):
        textbook = prepared(name, workload="train")
        claiming = pretend(textbook, fusions=frozenset({lever}))
        claiming.make_optimizer = textbook.make_optimizer  # type: ignore[method-assign]
        assert judge(claiming)[lever].in_effect is False, name


def test_too_little_of_a_profile_is_no_proof_either_way(prepared: Prepare, tiny_model: Callable[[str], GPT]) -> None:
    model = prepared("llama", "qkv", "mlp")
    facts = ProfileFacts(kernels=[], steps=3, n_layer=2, workload="decode", device="cpu")
    found = {one.lever: one.in_effect for one in model.evidence(facts)}
    assert found == {"fp32": None, "qkv": None, "mlp": None, "dynamic": None}
